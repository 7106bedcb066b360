"""The Pods of operator and store: the restricted Pod Security Standard, and what they are told."""

import pytest

from wavetank.controller import settings
from wavetank.kube.objects import Manifest
from wavetank.store.settings import read_settings
from wavetank.testing import chart

pytestmark = pytest.mark.chart


def pods(objects: list[Manifest]) -> dict[str, Manifest]:
    """The specs of Pods by the Deployment's name."""
    return {
        item["metadata"]["name"]: item["spec"]["template"]["spec"]
        for item in objects
        if item["kind"] == "Deployment"
    }


def environment(pod: Manifest) -> dict[str, str]:
    (container,) = pod["containers"]
    return {entry["name"]: entry.get("value", "from the Pod") for entry in container["env"]}


@pytest.fixture(params=["wavetank-operator", "wavetank-store"])
def pod(request: pytest.FixtureRequest, objects: list[Manifest]) -> Manifest:
    return pods(objects)[request.param]


def test_they_keep_to_the_restricted_standard(pod: Manifest):
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "fsGroup": 65532,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert [container["securityContext"] for container in pod["containers"]] == [
        {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }
    ]
    assert "initContainers" not in pod
    assert not {"hostNetwork", "hostPID", "hostIPC", "hostUsers"} & set(pod)
    assert all("hostPort" not in p for c in pod["containers"] for p in c["ports"])
    kinds = {kind for volume in pod["volumes"] for kind in volume if kind != "name"}
    assert kinds <= {"configMap", "emptyDir", "persistentVolumeClaim"}


def test_no_variable_comes_from_services_beside_them(pod: Manifest):
    assert pod["enableServiceLinks"] is False


def test_they_can_be_ended_while_they_start(pod: Manifest):
    assert pod["shareProcessNamespace"] is True, "process 1 has no default for SIGTERM"


def test_they_have_requests_limits_and_bounded_scratch_space(pod: Manifest):
    amounts = {"cpu", "memory", "ephemeral-storage"}

    (container,) = pod["containers"]
    assert set(container["resources"]["requests"]) == amounts
    assert set(container["resources"]["limits"]) == amounts
    scratch = [volume["emptyDir"] for volume in pod["volumes"] if "emptyDir" in volume]
    assert scratch == [{"sizeLimit": "64Mi"}]


def test_one_process_each_that_ends_before_the_next_begins(objects: list[Manifest]):
    deployments = [item["spec"] for item in objects if item["kind"] == "Deployment"]

    assert [(spec["replicas"], spec["strategy"]) for spec in deployments] == [
        (1, {"type": "Recreate"})
    ] * 2
    grace = {name: pod["terminationGracePeriodSeconds"] for name, pod in pods(objects).items()}
    assert grace == {"wavetank-operator": 60, "wavetank-store": 30}


def test_the_operator_is_told_every_setting_it_can_read():
    told = environment(pods(chart.documents(chart.rendered("default")))["wavetank-operator"])

    read = settings.from_environment(told)
    assert read == settings.Settings(
        namespace="from the Pod",
        image_world="wavetank.local/world:0.1.0",
        image_agent="wavetank.local/agent:0.1.0",
        image_verifier="wavetank.local/verifier:0.1.0",
        version="0.1.0",
    )


def test_the_operator_is_told_what_the_values_say():
    told = environment(pods(chart.documents(chart.rendered("namespaced")))["wavetank-operator"])

    digest = "sha256:" + "0123456789abcdef" * 4
    assert settings.from_environment(told) == settings.Settings(
        namespace="from the Pod",
        image_world="registry.example.org/wavetank/world:1.2.3",
        image_agent="registry.example.org/wavetank/agent:1.2.3",
        image_verifier=f"registry.example.org/wavetank/verifier@{digest}",
        version="1.2.3",
        watch_namespace="team-a",
        log_format=settings.LogFormat.JSON,
    )


def test_the_store_is_told_where_its_volumes_are(objects: list[Manifest]):
    pod = pods(objects)["wavetank-store"]

    read = read_settings(environment(pod))
    (container,) = pod["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts == {
        "data": str(read.folder),
        "key": str(read.public_key_file.parent),
        "tmp": "/tmp",
    }
    assert [port["containerPort"] for port in container["ports"]] == [read.port]


def test_services_reach_the_pods_and_nothing_else(objects: list[Manifest]):
    found = {
        item["metadata"]["name"]: (
            [port["port"] for port in item["spec"]["ports"]],
            [
                each["metadata"]["name"]
                for each in objects
                if each["kind"] == "Deployment"
                and item["spec"]["selector"].items()
                <= each["spec"]["template"]["metadata"]["labels"].items()
            ],
        )
        for item in objects
        if item["kind"] == "Service"
    }

    assert found == {
        "wavetank-store": ([8081], ["wavetank-store"]),
        "wavetank-operator-metrics": ([8080], ["wavetank-operator"]),
    }


def test_nothing_of_the_chart_is_taken_for_something_of_the_operator(objects: list[Manifest]):
    labels = [item["metadata"].get("labels", {}) for item in objects]
    labels += [
        i["spec"]["template"]["metadata"]["labels"]
        for i in objects
        if "template" in i.get("spec", {})
    ]

    assert {label.get("app.kubernetes.io/managed-by") for label in labels} <= {"Helm", None}
