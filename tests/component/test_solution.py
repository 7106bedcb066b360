"""The init container that fetches what the oracle replays."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from wavetank.api.wire import BundleRef, SolutionSpec
from wavetank.testing.bundles import DESK, write_bundle
from wavetank.testing.store import RunningStore, running_store
from wavetank.testing.worlds import push


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStore]:
    with running_store(tmp_path_factory.mktemp("store") / "data") as running:
        yield running


async def solutions(store: RunningStore, tmp_path: Path) -> list[BundleRef]:
    return (await push(store, {"": write_bundle(tmp_path / "crm", DESK)})).solutions


def fetched(
    store: RunningStore, tmp_path: Path, bundles: list[BundleRef], path: str, token: str = ""
) -> subprocess.CompletedProcess[str]:
    spec = SolutionSpec(store=store.url, bundles=bundles, path=path)
    (tmp_path / "token").write_text(token or store.token())
    return subprocess.run(
        [sys.executable, "-m", "wavetank.agents.solution"],
        env={
            "WAVETANK_SOLUTION": spec.canonical().decode(),
            "WAVETANK_TOKEN_FILE": str(tmp_path / "token"),
            "WAVETANK_SOLUTION_FILE": str(tmp_path / "calls.json"),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


async def test_the_solution_of_the_task_is_laid_down(store: RunningStore, tmp_path: Path) -> None:
    bundles = await solutions(store, tmp_path)

    done = fetched(store, tmp_path, bundles, "solutions/close_ticket.json")

    assert (done.returncode, done.stderr) == (0, "")
    calls = json.loads((tmp_path / "calls.json").read_text())
    assert calls == DESK["solutions/close_ticket.json"]


async def test_a_task_without_a_solution_is_told(store: RunningStore, tmp_path: Path) -> None:
    bundles = await solutions(store, tmp_path)

    done = fetched(store, tmp_path, bundles, "scripts/lazy/close_ticket.json")

    assert (done.returncode, done.stderr) == (
        1,
        "solution: the benchmark has no scripts/lazy/close_ticket.json, which this agent replays\n",
    )


async def test_a_token_without_a_grant_is_told(store: RunningStore, tmp_path: Path) -> None:
    bundles = await solutions(store, tmp_path)

    done = fetched(store, tmp_path, bundles, "solutions/close_ticket.json", store.token([]))

    assert done.returncode == 1
    assert done.stderr.startswith("solution: store answered 403")
