"""What the examples say about themselves: manifests and bundles are one and the same."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from wavetank.api import kinds
from wavetank.bundles.world import linked_folders, read

EXAMPLES = Path(__file__).parents[2] / "examples"
IN_ONE_FILE = {
    "01-crm": ["World/slack", "World/crm", "Benchmark/crm", "Run/crm-oracle", "Run/crm-nop"],
    "02-calendar": [
        *("World/mail", "World/calendar", "Benchmark/calendar"),
        *("Run/calendar-oracle", "Run/calendar-nop"),
    ],
}
TASKS = {
    "01-crm/crm-bench": 5,
    "02-calendar/calendar-bench": 7,
    "03-warehouse/warehouse-bench": 7,
}
LINKED = ("01-crm/slack-world", "02-calendar/mail-world")
KINDS = {"World": kinds.World, "Benchmark": kinds.Benchmark, "Run": kinds.Run}


def imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return imported(EXAMPLES / "manifests.py")


def documents(path: Path) -> list[dict[str, object]]:
    return list(yaml.safe_load_all(path.read_text()))


@pytest.mark.parametrize("example", IN_ONE_FILE)
def test_written_manifests_are_those_of_the_bundles(script: ModuleType, example: str):
    written = script.manifests(EXAMPLES / example)
    kept = {name: (EXAMPLES / example / name).read_text() for name in written}

    assert kept == written, f"run: python examples/manifests.py {example}"


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(EXAMPLES.glob("*/*.yaml")) if path.name != "kustomization.yaml"],
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_every_manifest_is_of_its_kind(path: Path):
    for document in documents(path):
        kind = str(document["kind"])
        assert document["apiVersion"] == kinds.API_VERSION
        kinds.read(KINDS[kind], document)  # type: ignore[arg-type]


@pytest.mark.parametrize(("example", "names"), IN_ONE_FILE.items(), ids=IN_ONE_FILE)
def test_all_in_one_holds_everything_in_an_order_that_can_be_read(example: str, names: list[str]):
    found = documents(EXAMPLES / example / "all-in-one.yaml")

    assert [f"{d['kind']}/{d['metadata']['name']}" for d in found] == names  # type: ignore[index]


@pytest.mark.parametrize("example", IN_ONE_FILE)
def test_worlds_stay_far_below_what_kubectl_apply_can_carry(example: str):
    for document in documents(EXAMPLES / example / "all-in-one.yaml"):
        # 256 KiB of annotations, of which kubectl's copy is one.
        assert len(yaml.safe_dump(document).encode()) < 128 * 1024


@pytest.mark.parametrize("bundle", [*TASKS, *LINKED])
def test_the_bundles_are_without_findings(bundle: str):
    found = read(EXAMPLES / bundle, linked_folders(EXAMPLES / bundle))

    assert found.findings == ()


@pytest.mark.parametrize(("bundle", "count"), TASKS.items(), ids=TASKS)
def test_every_task_has_a_solution_and_the_partial_script_has_a_part_in_each(
    bundle: str, count: int
):
    found = read(EXAMPLES / bundle, linked_folders(EXAMPLES / bundle))
    tasks = {task.id for task in found.tasks}

    assert len(tasks) == count
    assert found.solutions.keys() == tasks
    assert {name: script.keys() for name, script in found.scripts.items()} == {"partial": tasks}


def test_the_warehouses_rows_are_those_that_its_script_writes():
    example = EXAMPLES / "03-warehouse"
    kept = (example / "warehouse-bench" / "data" / "initial.json").read_text()

    assert imported(example / "generate.py").text() == kept
    assert kept.count('"qty":') == 50_000
