"""The chart on a real cluster: what its accounts may do, and installing, upgrading, uninstalling.

The operator of ``wavetank-system`` runs as the demo installs it. What is destroyed here is another
installation, for one namespace that nobody else uses.
"""

import asyncio
import json
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from wavetank.kube.client import Client
from wavetank.kube.objects import Resource
from wavetank.testing import chart

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

Kubectl = Callable[..., str]

REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)
OPERATOR = "system:serviceaccount:wavetank-system:wavetank-operator"
STORE = "system:serviceaccount:wavetank-system:wavetank-store"
HOME = "wavetank-system"
RESTRICTED = "pod-security.kubernetes.io/enforce=restricted"


async def may(client: Client, user: str, namespace: str, *asked: str) -> dict[str, bool]:
    """What the API server answers: may the user do ``verb group/resource[/subresource][:name]``?"""

    async def answer(question: str) -> bool:
        verb, _, rest = question.partition(" ")
        path, _, name = rest.partition(":")
        group, resource, *subresource = path.split("/")
        attributes = {
            "namespace": namespace,
            "verb": verb,
            "group": group,
            "resource": resource,
            "subresource": "".join(subresource),
            "name": name,
        }
        spec = {"user": user, "groups": groups_of(user), "resourceAttributes": attributes}
        review = {"apiVersion": REVIEWS.api_version, "kind": REVIEWS.kind, "spec": spec}
        return bool((await client.create(REVIEWS, None, review))["status"]["allowed"])

    answers = await asyncio.gather(*(answer(question) for question in asked))
    return dict(zip(asked, answers, strict=True))


def groups_of(user: str) -> list[str]:
    parts = user.split(":")
    accounts = ["system:serviceaccounts", f"system:serviceaccounts:{parts[2]}"] if parts[2:] else []
    return ["system:authenticated", *accounts]


@pytest.mark.usefixtures("operator")
async def test_the_operator_may_do_its_work_and_read_no_secret(client: Client, namespace: str):
    allowed = (
        "list wavetank.dev/runs",
        "watch wavetank.dev/worlds",
        "patch wavetank.dev/runs/status",
        "update wavetank.dev/benchmarks/finalizers",
        "create /pods",
        "delete batch/jobs",
        "patch /configmaps",
        "patch /secrets:crm-tokens",
        "create events.k8s.io/events",
    )
    forbidden = (
        "get /secrets:crm-tokens",
        "list /secrets",
        "watch /secrets",
        "delete /secrets:crm-tokens",
        "create /pods/exec",
        "create /pods/attach",
        "create /pods/ephemeralcontainers",
        "get /pods/log",
        "patch /pods",
        "update wavetank.dev/runs",
        "patch wavetank.dev/runs",
        "delete wavetank.dev/runs",
        "watch /configmaps",
        "delete /configmaps",
        "get /services:wavetank-store",
        "create /serviceaccounts/token",
        "get /namespaces",
        "list apiextensions.k8s.io/customresourcedefinitions",
        "create rbac.authorization.k8s.io/rolebindings",
    )

    found = await may(client, OPERATOR, namespace, *allowed, *forbidden)

    assert found == dict.fromkeys(allowed, True) | dict.fromkeys(forbidden, False)


@pytest.mark.usefixtures("operator")
async def test_at_home_the_operator_reads_its_own_key_alone(client: Client):
    allowed = ("get /secrets:wavetank-signing-key", "get /services:wavetank-store")
    forbidden = ("get /secrets:sh.helm.release.v1.wavetank.v1", "list /secrets", "get /services:x")

    found = await may(client, OPERATOR, HOME, *allowed, *forbidden)

    assert found == dict.fromkeys(allowed, True) | dict.fromkeys(forbidden, False)


@pytest.mark.usefixtures("operator")
async def test_the_stores_account_may_do_nothing(client: Client):
    asked = ("get /pods", "list /secrets", "get /configmaps:wavetank-public-key", "get /services")

    assert await may(client, STORE, HOME, *asked) == dict.fromkeys(asked, False)


@pytest.fixture
def chart_roles(kubectl: Kubectl, crds: None, tmp_path: Path) -> None:
    """The ClusterRoles for people, which the demo's manifest also has."""
    file = tmp_path / "roles.yaml"
    asked = ("--values", chart.file_of("demo"), "--show-only", "templates/access/aggregate.yaml")
    file.write_text(chart.template(*asked).stdout)
    kubectl("apply", "--server-side", "--force-conflicts", "-f", file)


@pytest.mark.usefixtures("chart_roles")
@pytest.mark.parametrize(
    ("role", "works"), [("view", False), ("edit", True), ("admin", True)], ids=lambda value: value
)
async def test_the_clusters_own_roles_hold_for_the_three_kinds(
    client: Client, namespace: str, kubectl: Kubectl, role: str, works: bool
):
    user = f"{role}-person"
    kubectl(
        "-n", namespace, "create", "rolebinding", user, f"--clusterrole={role}", f"--user={user}"
    )
    kinds = [f"wavetank.dev/{plural}" for plural in ("worlds", "benchmarks", "runs")]
    reads = [f"{verb} {kind}" for verb in ("get", "list", "watch") for kind in kinds]
    writes = [f"{verb} {kind}" for verb in ("create", "patch", "delete") for kind in kinds]
    status = [f"patch {kind}/status" for kind in kinds]

    async def settled() -> dict[str, bool]:
        # Roles are put together by a controller, a moment after they are made.
        for _ in range(50):
            found = await may(client, user, namespace, *reads, *writes, *status)
            if found == expected:
                break
            await asyncio.sleep(0.2)
        return found

    expected = (
        dict.fromkeys(reads, True) | dict.fromkeys(writes, works) | dict.fromkeys(status, False)
    )
    assert await settled() == expected


@pytest.mark.usefixtures("operator")
def test_who_has_the_stores_role_reaches_the_store_which_still_asks_for_a_token(
    kubectl: Kubectl, kubeconfig: Path
):
    name = f"evidence-{uuid.uuid4().hex[:6]}"
    proxy = f"/api/v1/namespaces/{HOME}/services"
    grant = ("create", "rolebinding", name, "--role=wavetank-store-access", f"--user={name}")

    def asked(*arguments: str) -> str:
        command = ["kubectl", "--kubeconfig", kubeconfig, "--as", name, *arguments]
        ended = subprocess.run(command, check=False, capture_output=True, text=True, input="x")
        return ended.stdout + ended.stderr

    store = f"{proxy}/wavetank-store:8081/proxy"
    before = asked("get", "--raw", f"{store}/healthz")
    kubectl("-n", HOME, *grant)
    try:
        health = asked("get", "--raw", f"{store}/healthz")
        listing = asked("get", "--raw", f"{store}/v1/list?prefix=/v1/runs/")
        upload = asked("replace", "--raw", f"{store}/v1/bundles/sha256:{'0' * 64}", "-f", "-")
        metrics = asked("get", "--raw", f"{proxy}/wavetank-operator-metrics:8080/proxy/metrics")
    finally:
        kubectl("-n", HOME, "delete", "rolebinding", name)

    assert "forbidden" in before
    assert json.loads(health) == {"status": "alive"}
    refused = "the server has asked for the client to provide credentials"  # kubectl's word for 401
    assert refused in listing
    assert refused in upload
    assert "forbidden" in metrics


@pytest.mark.usefixtures("operator")
def test_prometheus_finds_the_metrics_behind_their_service(kubectl: Kubectl):
    path = f"/api/v1/namespaces/{HOME}/services/wavetank-operator-metrics:metrics/proxy/metrics"

    assert "\nwavetank_build_info{" in kubectl("get", "--raw", path)


@dataclass(frozen=True)
class Other:
    """An installation of its own, by helm: where it is and what it serves."""

    home: str
    served: str
    kubectl: Kubectl
    kubeconfig: Path
    folder: Path

    def helm(self, verb: str, *arguments: str) -> str:
        said = chart.helm_says(
            verb, "--kubeconfig", self.kubeconfig, "--namespace", self.home, "other", *arguments
        )
        assert said.returncode == 0, said.stderr + self.state()
        return said.stdout

    def state(self) -> str:
        """What there is to see when something does not come up."""
        return "".join(
            self.kubectl("-n", self.home, *asked.split())
            for asked in (
                "get pods,pvc,configmaps,secrets",
                "get events --sort-by=.metadata.creationTimestamp",
                "logs deployment/wavetank-operator",
            )
        )

    def install(self, verb: str = "install", *settings: str) -> str:
        told = [
            f"watchNamespace={self.served}",
            "crds.install=false",
            "access.aggregate=false",
            "images.tag=dev",
            "store.persistence.size=1Gi",
            f"store.persistence.localPath={self.folder}",
            *settings,
        ]
        return self.helm(
            verb, str(chart.CHART), "--set", ",".join(told), "--wait", "--timeout", "240s"
        )

    def uninstall(self) -> str:
        foreground = ("--cascade", "foreground")  # else Pods are still ending when helm is done
        return self.helm("uninstall", "--wait", *foreground, "--timeout", "120s")

    def uid(self, kind: str, name: str) -> str:
        return self.kubectl("-n", self.home, "get", kind, name, "-o", "jsonpath={.metadata.uid}")

    def log(self) -> str:
        return self.kubectl("-n", self.home, "logs", "deployment/wavetank-operator")

    def left(self) -> set[str]:
        """All that is in its namespaces or carries its release's label, but what every namespace has."""
        everything = ",".join(
            line
            for line in self.kubectl(
                "api-resources", "--namespaced", "--verbs=list", "-o", "name"
            ).split()
            if "event" not in line
        )
        names = "custom-columns=KIND:.kind,NAME:.metadata.name"
        found = "".join(
            self.kubectl("-n", place, "get", everything, "--no-headers", "-o", names)
            for place in (self.home, self.served)
        )
        lines = {" ".join(line.split()) for line in found.splitlines()}
        labelled = self.kubectl(
            "get",
            "clusterroles,clusterrolebindings,persistentvolumes",
            "-l",
            "app.kubernetes.io/instance=other",
            "--no-headers",
            "-o",
            names,
        )
        lines |= {" ".join(line.split()) for line in labelled.splitlines()}
        return lines - {"ConfigMap kube-root-ca.crt", "ServiceAccount default"}


@pytest.fixture
def other(kubectl: Kubectl, kubeconfig: Path, crds: None, tmp_path: Path) -> Iterator[Other]:
    suffix = uuid.uuid4().hex[:6]
    home, served = f"wt-chart-home-{suffix}", f"wt-chart-served-{suffix}"
    folder = tmp_path / "store"
    folder.mkdir()
    for name in (home, served):
        kubectl("create", "namespace", name)
        kubectl("label", "namespace", name, RESTRICTED)
    yield Other(home, served, kubectl, kubeconfig, folder)
    # Waits: what a finalizer or an owner holds would show here.
    kubectl("delete", "namespace", home, served, "--timeout=90s")
    volumes = ("delete", "persistentvolume", f"wavetank-store-{home}", "--ignore-not-found")
    kubectl(*volumes, "--timeout=60s")


@pytest.mark.parametrize("values", ["default", "namespaced"])
def test_the_api_server_knows_every_field(other: Other, kubectl: Kubectl, values: str):
    without = "crds.install=false,monitoring.serviceMonitor.enabled=false,"
    without += f"monitoring.prometheusRule.enabled=false,watchNamespace={other.served}"
    told = ("--values", chart.file_of(values), "--set", without, "--namespace", other.home)
    file = other.folder.with_name("rendered.yaml")
    file.write_text(chart.template(*told).stdout)

    said = kubectl("create", "--dry-run=server", "--validate=strict", "-f", file)

    assert "deployment.apps/wavetank-operator created" in said
    assert "role.rbac.authorization.k8s.io/wavetank-operator created" in said


KEPT = {
    "ConfigMap wavetank-public-key",
    "PersistentVolumeClaim wavetank-store",
    "Secret wavetank-signing-key",
}


def test_an_installation_for_one_namespace_comes_and_goes_and_comes_again(other: Other):
    notes = other.install()
    first = other.log()
    key, claim = other.uid("secret", "wavetank-signing-key"), other.uid("pvc", "wavetank-store")
    mode = other.folder.stat()
    other.install("upgrade", "operator.workers=4", "operator.logFormat=json")
    upgraded = other.log()
    other.uninstall()
    left = other.left()
    other.install()
    again = other.log()
    keys = other.uid("secret", "wavetank-signing-key"), other.uid("pvc", "wavetank-store")
    other.uninstall()

    assert f"serving the namespace {other.served}" in notes
    for log in (first, upgraded, again):
        assert "operator is ready" in log
        assert "forbidden" not in log.lower()
    assert upgraded.startswith("{")
    assert left == KEPT | {f"PersistentVolume wavetank-store-{other.home}"}
    assert keys == (key, claim), "the key and what is stored under it are taken up again"
    assert (mode.st_uid, mode.st_gid) == (0, 65532), "the kubelet gives the folder to the group"


def test_a_pod_that_still_starts_is_ended_at_once(other: Other, kubectl: Kubectl):
    other.install()
    pods = ("-l", "app.kubernetes.io/component=operator")
    kubectl("-n", other.home, "delete", "pod", *pods)
    running = ("--for=jsonpath={.status.phase}=Running", "--timeout=60s")
    kubectl("-n", other.home, "wait", "pod", *pods, *running)

    began = time.monotonic()
    kubectl("-n", other.home, "delete", "pod", *pods)
    seconds = time.monotonic() - began
    other.uninstall()

    assert seconds < 45, "it took its grace period of 60 s"


async def test_an_operator_for_one_namespace_may_do_nothing_in_others(
    other: Other, client: Client, namespace: str
):
    other.install()
    user = f"system:serviceaccount:{other.home}:wavetank-operator"
    asked = ("list wavetank.dev/runs", "create /pods", "create /secrets", "create /configmaps")

    served = await may(client, user, other.served, *asked)
    at_home = await may(client, user, other.home, *asked)
    elsewhere = await may(client, user, namespace, *asked)
    other.uninstall()

    assert served == dict.fromkeys(asked, True)
    assert at_home == dict.fromkeys(asked, False) | {"create /secrets": True}
    assert elsewhere == dict.fromkeys(asked, False)


def test_uninstalling_keeps_the_kinds_and_what_is_of_them(other: Other, kubectl: Kubectl):
    names = [f"{plural}.wavetank.dev" for plural in ("benchmarks", "runs", "worlds")]
    uids = ("get", "crd", *names, "-o", "jsonpath={.items[*].metadata.uid}")
    before = kubectl(*uids)
    try:
        told = f"watchNamespace={other.served},access.aggregate=false,images.tag=dev"
        folder = f"store.persistence.localPath={other.folder}"
        # The kinds are there already, not by helm.
        other.helm("install", str(chart.CHART), "--set", f"{told},{folder}", "--take-ownership")
        owned = kubectl("get", "crd", "-l", "app.kubernetes.io/managed-by=Helm", "-o", "name")
        kept = other.uninstall()
    finally:
        notes = ("meta.helm.sh/release-name-", "meta.helm.sh/release-namespace-")
        kubectl("annotate", "crd", *names, *notes, "helm.sh/resource-policy-")
        own = ("name", "instance", "component", "part-of", "version", "managed-by")
        labels = (*(f"app.kubernetes.io/{label}-" for label in own), "helm.sh/chart-")
        kubectl("label", "crd", *names, *labels)

    assert len(owned.split()) == 3
    assert all(f"[CustomResourceDefinition] {name}" in kept for name in names)
    assert kubectl(*uids) == before
