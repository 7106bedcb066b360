"""What the examples say about themselves: manifests and bundles are one and the same."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from wavetank.api import kinds
from wavetank.bundles.world import linked_folders, read

EXAMPLES = Path(__file__).parents[2] / "examples"
CRM = EXAMPLES / "01-crm"
KINDS = {"World": kinds.World, "Benchmark": kinds.Benchmark, "Run": kinds.Run}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("manifests", EXAMPLES / "manifests.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def documents(path: Path) -> list[dict[str, object]]:
    return list(yaml.safe_load_all(path.read_text()))


def test_written_manifests_are_those_of_the_bundles(script: ModuleType):
    kept = {name: (CRM / name).read_text() for name in script.manifests(CRM)}

    assert kept == script.manifests(CRM), "run: python examples/manifests.py 01-crm"


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(CRM.glob("*.yaml")) if path.name != "kustomization.yaml"],
    ids=lambda path: path.name,
)
def test_every_manifest_is_of_its_kind(path: Path):
    for document in documents(path):
        kind = str(document["kind"])
        assert document["apiVersion"] == kinds.API_VERSION
        kinds.read(KINDS[kind], document)  # type: ignore[arg-type]


def test_all_in_one_holds_everything_in_an_order_that_can_be_read():
    names = [f"{d['kind']}/{d['metadata']['name']}" for d in documents(CRM / "all-in-one.yaml")]  # type: ignore[index]

    assert names == ["World/slack", "World/crm", "Benchmark/crm", "Run/crm-oracle", "Run/crm-nop"]


def test_worlds_stay_far_below_what_kubectl_apply_can_carry():
    for document in documents(CRM / "all-in-one.yaml"):
        # 256 KiB of annotations, of which kubectl's copy is one.
        assert len(yaml.safe_dump(document).encode()) < 128 * 1024


@pytest.mark.parametrize("bundle", ["crm-bench", "slack-world"])
def test_the_bundles_are_without_findings(bundle: str):
    found = read(CRM / bundle, linked_folders(CRM / bundle))

    assert found.findings == ()


def test_every_task_has_a_solution_and_the_partial_script_has_a_part_in_each():
    found = read(CRM / "crm-bench", linked_folders(CRM / "crm-bench"))
    tasks = {task.id for task in found.tasks}

    assert len(tasks) == 5
    assert found.solutions.keys() == tasks
    assert {name: script.keys() for name, script in found.scripts.items()} == {"partial": tasks}
