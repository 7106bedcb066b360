"""Looks at a Run against an API server that refuses, and a memory that must not be believed."""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from wavetank.api.ledger import encode
from wavetank.controller.events import EventPoster
from wavetank.controller.metrics import Metrics
from wavetank.controller.queue import Key
from wavetank.controller.runs import RunReconciler
from wavetank.controller.settings import Settings
from wavetank.controller.shell import Shell
from wavetank.controller.storage import Storage
from wavetank.core.causes import Cause
from wavetank.core.errors import ClusterError
from wavetank.core.identity import AttemptKey, ledger_name, plan_name
from wavetank.core.observed import Failure, Record
from wavetank.kube.client import Client, open_client
from wavetank.kube.connection import Kubeconfig
from wavetank.kube.objects import Manifest
from wavetank.kube.transport import ClientSettings
from wavetank.kube.watch import Watch
from wavetank.manifests.objects import RunOwner, ledger_config_map, plan_config_map
from wavetank.testing.api_server import gives, refuses, scripted_api_server
from wavetank.testing.created import a_plan
from wavetank.testing.objects import a_run
from wavetank.testing.small_api import SmallApi
from wavetank.testing.store import RunningStore, running_store

KEY = Key("Run", "bench", "crm")
OWNER = RunOwner("crm", "bench", "uid-run")
RUN_PATH = "/apis/wavetank.dev/v1alpha1/namespaces/bench/runs/crm"
CORE = "/api/v1/namespaces/bench"
PLAN = a_plan().model_copy(update={"run": OWNER.uid})


@dataclass(frozen=True)
class Copy:
    """What a watch that is never late would hold."""

    api: SmallApi
    kind: str

    def owned_by(self, uid: str) -> Sequence[Manifest]:
        return self.api.owned_by(uid, self.kind)


@dataclass
class Operator:
    """A reconciler with its API server; the clock is set by hand."""

    api: SmallApi
    client: Client
    storage: Storage
    now: float = 1_800_000_000.0

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Begin with an empty memory."""
        settings = Settings("system", "world", "agent", "verifier", "1.0")
        clock = lambda: datetime.fromtimestamp(self.now, UTC)  # noqa: E731
        shell = Shell(
            settings=settings,
            client=self.client,
            metrics=Metrics("1.0"),
            events=EventPoster(self.client, "here", clock),
            clock=clock,
            now=lambda: self.now,
            pods=cast("Watch", Copy(self.api, "Pod")),
            jobs=cast("Watch", Copy(self.api, "Job")),
            enqueue=lambda _key, _seconds: None,
        )
        self.reconciler = RunReconciler(shell, self.storage)

    async def look(self) -> float | None:
        self.now += 5
        return await self.reconciler(KEY)

    async def looks(self, count: int) -> list[float | type[Exception] | None]:
        """Look again and again, as the queue does after a failure too."""
        seen: list[float | type[Exception] | None] = []
        for _ in range(count):
            try:
                seen.append(await self.look())
            except ClusterError as error:
                seen.append(type(error))
        return seen

    def has_run(self, **spec: Any) -> None:
        body = a_run("crm", **{"agent__name": "nop", **spec})
        known = self.api.objects.get(RUN_PATH, {})
        metadata = {"name": "crm", "namespace": "bench", "uid": OWNER.uid}
        self.api.put(RUN_PATH, {**body, "metadata": metadata, "status": known.get("status", {})})

    def has_plan(self) -> None:
        self.api.put(f"{CORE}/configmaps/{plan_name('crm')}", plan_config_map(OWNER, PLAN))

    def has_ledger(self, *entries: Record | Failure) -> None:
        keys = [
            f"{e.key.ordinal}" + (f".a{e.key.attempt}" if isinstance(e, Failure) else "")
            for e in entries
        ]
        texts = [encode(entry, ["close_ticket"], self.now) for entry in entries]
        shard = ledger_config_map(OWNER, 0, 0, dict(zip(keys, texts, strict=True)))
        self.api.put(f"{CORE}/configmaps/{ledger_name('crm', 0, 0)}", shard)

    @property
    def ledger(self) -> dict[str, str]:
        item = self.api.objects.get(f"{CORE}/configmaps/{ledger_name('crm', 0, 0)}", {})
        return dict(item.get("data", {}))

    @property
    def status(self) -> dict[str, Any]:
        return dict(self.api.objects[RUN_PATH].get("status", {}))

    def condition(self, name: str) -> tuple[str, str]:
        (found,) = [c for c in self.status["conditions"] if c["type"] == name]
        return found["status"], found["reason"]

    def writes(self) -> list[str]:
        return [what for what in self.api.asked if not what.startswith("GET")]

    def pods(self) -> list[str]:
        return [path for path in self.api.objects if "/pods/" in path]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStore]:
    folder = tmp_path_factory.mktemp("store") / "data"
    folder.mkdir()
    with running_store(folder) as running:
        yield running


@pytest.fixture
async def operator(tmp_path: Path, store: RunningStore) -> AsyncIterator[Operator]:
    api = SmallApi()
    storage = Storage(store.private_pem, store.url, "system/store:8081", lambda: datetime.now(UTC))
    async with scripted_api_server() as server, storage.client:
        server.otherwise = api.answer
        config = Kubeconfig(server.kubeconfig(tmp_path))
        async with open_client(config, ClientSettings(tries=1)) as client:
            made = Operator(api, client, storage)
            made.has_run(k=3)
            made.has_plan()
            yield made


async def test_a_run_is_begun_and_looked_at_again_without_a_write(operator: Operator) -> None:
    await operator.look()
    before = len(operator.writes())
    await operator.looks(3)

    assert len(operator.pods()) == 3
    assert operator.condition("Progressing") == ("True", "Running")
    assert operator.writes()[before:] == []


async def test_a_status_that_changes_often_is_written_every_two_seconds(
    operator: Operator,
) -> None:
    await operator.looks(2)
    before = len([what for what in operator.writes() if what.endswith("/status")])
    waits = []
    for attempt in range(1, 5):
        operator.has_run(k=3, suspend=attempt % 2 == 1)
        operator.now += 0.5
        waits.append(await operator.reconciler(KEY))
    operator.now += 2.0
    await operator.reconciler(KEY)

    written = len([what for what in operator.writes() if what.endswith("/status")]) - before
    assert written == 2
    assert all(wait is not None and wait <= 2.0 for wait in waits[1:])


async def test_one_create_that_fails_keeps_no_other_from_happening(operator: Operator) -> None:
    operator.api.refuse(r"POST .*/pods", refuses(500, "InternalError"), times=1)

    (first,) = await operator.looks(1)

    assert isinstance(first, type)
    assert len(operator.pods()) == 2


async def test_what_fails_again_and_again_shows_in_the_status_until_it_is_over(
    operator: Operator,
) -> None:
    operator.has_run(k=3, parallelism=1)
    await operator.looks(2)
    (path,) = operator.pods()
    pod = operator.api.objects.pop(path)
    refusal = operator.api.refuse(r"GET .*ledger.*", refuses(500, "InternalError"))

    await operator.looks(2)
    quiet = operator.condition("Progressing")
    await operator.looks(1)
    loud = operator.condition("Progressing"), operator.status["lastProblem"]
    operator.api.refusals.remove(refusal)
    operator.api.objects[path] = pod
    await operator.looks(2)

    assert quiet == ("True", "Running")
    assert loud == (("True", "Blocked"), "words of InternalError")
    assert operator.condition("Progressing") == ("True", "Running")
    assert "lastProblem" not in operator.status


async def test_a_pod_that_is_refused_is_recorded_at_once_and_not_at_the_next_resync(
    operator: Operator,
) -> None:
    operator.api.refuse(r"POST .*/pods", refuses(422, "Invalid"))

    waits = await operator.looks(3)

    assert waits[:2] == [0.0, 0.0]
    assert sorted(operator.ledger) == ["0", "0.a1", "1", "1.a1", "2", "2.a1"]
    assert json.loads(operator.ledger["0"])["cause"] == "PodRefused"
    assert operator.condition("Complete") == ("True", "AllRecorded")


async def test_a_quota_is_waited_for_and_costs_nothing(operator: Operator) -> None:
    words = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "exceeded quota: q"}

    refusal = operator.api.refuse(r"POST .*/pods", gives(words, 403))
    waits = await operator.looks(2)
    operator.api.refusals.remove(refusal)
    await operator.looks(4)

    assert max(cast("list[float]", waits)) <= 15.0
    assert len(operator.pods()) == 3
    assert operator.ledger == {}


async def test_a_run_that_is_gone_is_forgotten(operator: Operator) -> None:
    await operator.look()
    del operator.api.objects[RUN_PATH]

    assert await operator.look() is None
    assert operator.reconciler._memories == {}
    assert operator.reconciler._states == {}


async def test_a_run_applied_again_under_its_name_begins_anew(operator: Operator) -> None:
    await operator.look()
    operator.api.objects.clear()
    operator.has_run(k=1)
    operator.api.objects[RUN_PATH]["metadata"]["uid"] = "uid-again"

    await operator.look()

    assert operator.condition("Progressing") == ("True", "BenchmarkNotFound")


@pytest.mark.parametrize("what", ["ledger", "plan"])
async def test_a_run_that_lost_what_it_is_built_on_stops_until_that_is_restored(
    operator: Operator, what: str
) -> None:
    operator.has_ledger(Failure(AttemptKey(0, 1), Cause.EVICTED, "", operator.now))
    await operator.looks(2)
    name = ledger_name("crm", 0, 0) if what == "ledger" else plan_name("crm")
    path = f"{CORE}/configmaps/{name}"
    kept = operator.api.objects.pop(path)
    if what == "plan":
        operator.start()  # only an operator that starts reads it
    for pod in operator.pods():
        operator.api.objects[pod]["status"] = {"reason": "Evicted"}

    failed = await operator.looks(1)
    for pod in operator.pods():
        operator.api.objects[pod]["status"] = {}
    failed += await operator.looks(1)
    then = operator.condition("Failed"), operator.condition("Complete")
    operator.api.objects[path] = kept
    for pod in operator.pods():
        operator.api.objects[pod]["status"] = {"reason": "Evicted"}
    await operator.looks(2)

    reason = "LedgerDamaged" if what == "ledger" else "PlanDamaged"
    assert failed == [None, None]
    assert then == (("True", reason), ("False", reason))
    assert operator.condition("Failed")[0] == "False"
    assert "1.a1" in operator.ledger


async def test_a_complete_run_never_becomes_incomplete_by_an_operator_that_knows_less(
    operator: Operator,
) -> None:
    await operator.looks(2)
    others = [Record(AttemptKey(n, 1), 1.0) for n in range(3)]
    operator.has_ledger(*others)
    done = Operator(operator.api, operator.client, operator.storage, operator.now)
    refusal = operator.api.refuse(r"DELETE .*", refuses(500, "InternalError"))
    await done.looks(3)
    operator.api.refusals.remove(refusal)
    assert done.condition("Complete") == ("True", "AllRecorded")

    await operator.looks(1)
    then = operator.condition("Complete")
    await operator.looks(3)

    assert then == ("True", "AllRecorded")
    assert operator.condition("Complete") == ("True", "AllRecorded")
    assert operator.pods() == []
    assert sorted(operator.ledger) == ["0", "1", "2"]


async def test_what_another_operator_recorded_is_not_begun_again(operator: Operator) -> None:
    operator.has_run(k=3, suspend=True)
    await operator.look()
    operator.has_ledger(Record(AttemptKey(0, 1), 1.0))
    operator.has_run(k=3)

    waits = await operator.looks(1)

    assert [path.rpartition("-")[0][-2:] for path in operator.pods()] == ["-1", "-2"]
    assert waits == [0.0]


async def test_a_results_name_that_is_somebody_elses_is_left_to_them(operator: Operator) -> None:
    path = f"{CORE}/configmaps/crm-results"
    foreign = operator.api.put(
        path, {"kind": "ConfigMap", "metadata": {"name": "crm-results"}, "data": {"a": "b"}}
    )
    operator.has_ledger(*[Record(AttemptKey(n, 1), 1.0) for n in range(3)])

    await operator.looks(2)

    assert operator.condition("Complete") == ("True", "AllRecorded")
    assert operator.api.objects[path] == foreign
