"""What the chart renders to, whole, and which values it refuses."""

from pathlib import Path

import pytest
import yaml

from wavetank.testing import chart

pytestmark = pytest.mark.chart

KEEP = "helm.sh/resource-policy"
CRDS = sorted((chart.REPOSITORY / "crds").glob("*.yaml"))


def test_helm_lint_has_nothing_to_say(values: str):
    linted = chart.helm_says("lint", "--strict", chart.CHART, "--values", chart.file_of(values))

    assert linted.returncode == 0, linted.stdout
    assert "[WARNING]" not in linted.stdout
    assert "[ERROR]" not in linted.stdout


def test_what_it_renders_to_is_what_was_looked_at(values: str):
    kept = chart.GOLDEN[values].read_text()

    assert chart.rendered(values) == kept, "run `make chart` and look at what changes"


@pytest.mark.parametrize("file", CRDS, ids=lambda file: file.stem)
def test_the_chart_brings_the_crds_of_this_repository(file: Path):
    assert (chart.CHART / "files" / "crds" / file.name).read_text() == file.read_text(), "make crds"


def test_crds_are_rendered_whole_and_kept_at_uninstall():
    rendered = chart.documents(chart.template("--show-only", "templates/crds/crds.yaml").stdout)

    annotations = [crd["metadata"].pop("annotations") for crd in rendered]
    labels = [crd["metadata"].pop("labels") for crd in rendered]
    assert rendered == [yaml.safe_load(file.read_text()) for file in CRDS]
    assert annotations == [{KEEP: "keep"}] * 3
    assert {label["app.kubernetes.io/managed-by"] for label in labels} == {"Helm"}


def test_crds_go_with_the_chart_when_asked_to():
    asked = chart.template("--show-only", "templates/crds/crds.yaml", "--set", "crds.keep=false")

    rendered = chart.documents(asked.stdout)
    assert [crd["metadata"].get("annotations") for crd in rendered] == [None] * 3


def test_an_installation_for_one_namespace_makes_nothing_outside_of_namespaces():
    kinds = {item["kind"] for item in chart.documents(chart.rendered("namespaced"))}

    assert kinds == {
        "Deployment",
        "PersistentVolumeClaim",
        "PrometheusRule",
        "Role",
        "RoleBinding",
        "Service",
        "ServiceAccount",
        "ServiceMonitor",
    }


def test_installations_in_two_namespaces_share_no_object():
    def names(namespace: str) -> set[tuple[str, str, str]]:
        asked = chart.template("--set", "crds.install=false", "--namespace", namespace)
        return {
            (item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"])
            for item in chart.documents(asked.stdout)
        }

    assert names("one") & names("two") == set()


def test_no_object_is_a_hook_or_has_a_finalizer(objects):
    for item in objects:
        assert "helm.sh/hook" not in (item["metadata"].get("annotations") or {})
        assert "finalizers" not in item["metadata"]


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("store.persistance.size=1Gi", "at '/store': additional properties 'persistance' not"),
        ("replicas=2", "at '': additional properties 'replicas' not allowed"),
        ("crds.install=maybe", "at '/crds/install': got string, want boolean"),
        ("watchNamespace=Team_A", "at '/watchNamespace': 'Team_A' does not match pattern"),
        ("images.tag=2", "at '/images/tag': got number, want string"),
        ("images.registry=", "at '/images/registry': minLength: got 0, want 1"),
        ("images.world.digest=abc", "at '/images/world/digest': 'abc' does not match pattern"),
        ("images.pullPolicy=Sometimes", "value must be one of 'IfNotPresent', 'Always', 'Never'"),
        ("operator.workers=0", "at '/operator/workers': minimum: got 0, want 1"),
        ("operator.logFormat=xml", "at '/operator/logFormat': value must be one of 'text', 'json'"),
        ("operator.resources.limits.memory=lots", "limits/memory': 'lots' does not match"),
        ("operator.resources.claims=x", "additional properties 'claims' not allowed"),
        ("store.persistence.localPath=data", "localPath': 'data' does not match pattern '^$|^/'"),
        ("access.storeSubjects[0].name=joe", "missing property 'kind'"),
        ("monitoring.serviceMonitor.interval=often", "interval': 'often' does not match pattern"),
        (
            "store.persistence.existingClaim=a,store.persistence.volumeName=b",
            "store.persistence: more than one of existingClaim, volumeName and localPath is set.",
        ),
        ("store.persistence.localNode=a", "localNode is set without localPath. Set localPath to"),
    ],
)
def test_values_that_cannot_be_meant_are_refused_with_their_place(setting: str, words: str):
    asked = chart.template("--set", setting)

    assert asked.returncode != 0
    assert words in asked.stderr


@pytest.mark.parametrize(
    ("settings", "claim"),
    [
        ("size=1Gi", {"accessModes": ["ReadWriteOnce"]}),
        ("storageClass=fast", {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"}),
        (
            "volumeName=mine",
            {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": "mine"},
        ),
        (
            "localPath=/data",
            {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "wavetank-store-wavetank-system",
            },
        ),
    ],
)
def test_the_store_claims_what_it_was_given(settings: str, claim: dict[str, object]):
    asked = chart.template(
        "--set", f"store.persistence.{settings}", "--show-only", "templates/store/persistence.yaml"
    )

    found = next(i for i in chart.documents(asked.stdout) if i["kind"] == "PersistentVolumeClaim")
    del found["spec"]["resources"]
    assert found["spec"] == claim
    assert found["metadata"]["annotations"] == {KEEP: "keep"}


def test_a_claim_of_ones_own_is_used_and_none_is_made():
    asked = chart.template("--set", "store.persistence.existingClaim=mine")

    objects = {(i["kind"], i["metadata"]["name"]): i for i in chart.documents(asked.stdout)}
    store = objects["Deployment", "wavetank-store"]["spec"]["template"]["spec"]
    assert not {kind for kind, _ in objects} & {"PersistentVolume", "PersistentVolumeClaim"}
    assert store["volumes"][0] == {"name": "data", "persistentVolumeClaim": {"claimName": "mine"}}
