"""The ledger on a real API server: the first entry of a key wins, none is lost, damage is named."""

import asyncio
import random
import uuid
from collections.abc import Awaitable, Callable

import pytest

from wavetank.api.ledger import LedgerDamaged
from wavetank.controller.ledger import RunLedger
from wavetank.core.actions import Entry
from wavetank.core.causes import Cause
from wavetank.core.errors import ClusterError
from wavetank.core.identity import AttemptKey, ledger_name, shard_of
from wavetank.core.observed import Failure, Ledger, Record
from wavetank.kube.client import Client
from wavetank.kube.objects import CONFIGMAPS, RUNS, uid_of
from wavetank.manifests.objects import RunOwner
from wavetank.testing.objects import a_run

pytestmark = pytest.mark.cluster

NOW = 1_800_000_000.0
TASKS = ["one", "two"]

MakeRun = Callable[[], Awaitable[RunOwner]]


@pytest.fixture
async def make_run(crds: None, client: Client, namespace: str) -> MakeRun:
    """Make a Run that nobody runs: it waits for a Benchmark that does not come."""
    del crds

    async def make() -> RunOwner:
        body = a_run(f"r-{uuid.uuid4().hex[:6]}", benchmarkRef__name="nowhere")
        made = await client.create(RUNS, namespace, body)
        return RunOwner(body["metadata"]["name"], namespace, uid_of(made))

    return make


def a_record(ordinal: int, reward: float = 0.5) -> Record:
    return Record(AttemptKey(ordinal, 1), reward)


def a_failure(ordinal: int, attempt: int) -> Failure:
    return Failure(AttemptKey(ordinal, attempt), Cause.EVICTED, "low on memory", NOW)


def a_ledger(client: Client, run: RunOwner) -> RunLedger:
    return RunLedger(client, run, 0, TASKS)


async def loaded(client: Client, run: RunOwner, shards: int = 0, records: int = 0) -> Ledger:
    """What an operator that starts now would see."""
    ledger = a_ledger(client, run)
    await ledger.load(least_shards=shards, least_records=records)
    return ledger.view()


async def test_of_two_operators_that_write_at_once_the_first_wins_and_nothing_is_lost(
    make_run: MakeRun, client: Client
) -> None:
    run = await make_run()
    writers = [a_ledger(client, run), a_ledger(client, run)]
    added: list[list[Entry]] = [[], []]

    async def write(number: int) -> None:
        chance = random.Random(number)  # noqa: S311 - an order
        for ordinal in chance.sample(range(40), 40):
            entries: list[Entry] = [a_record(ordinal, number), a_failure(ordinal, number + 2)]
            while True:
                try:
                    added[number] += await writers[number].write(entries, NOW)
                    break
                except ClusterError:  # others were quicker five times: the next look asks again
                    continue

    await asyncio.gather(write(0), write(1))

    ledger = await loaded(client, run)
    assert sorted(ledger.records) == list(range(40))
    assert {n: [f.key.attempt for f in some] for n, some in ledger.failures.items()} == {
        ordinal: [2, 3] for ordinal in range(40)
    }
    first = {e.key.ordinal: e for some in added for e in some if isinstance(e, Record)}
    assert sum(isinstance(entry, Record) for some in added for entry in some) == 40
    assert ledger.records == first
    for writer in writers:
        await writer.refresh(range(40))
        assert writer.view() == ledger


async def test_a_thousand_records_go_into_ten_shards_and_come_back(
    make_run: MakeRun, client: Client
) -> None:
    run = await make_run()
    ledger = a_ledger(client, run)

    added = await ledger.write([a_record(n, n / 1000) for n in range(1000)], NOW)

    assert (len(added), ledger.shard_count) == (1000, 10)
    again = await loaded(client, run, shards=10, records=1000)
    assert again == ledger.view()
    assert [again.records[n].reward for n in range(1000)] == [n / 1000 for n in range(1000)]


async def test_what_is_there_already_is_not_written_again(
    make_run: MakeRun, client: Client
) -> None:
    run = await make_run()
    ledger = a_ledger(client, run)
    await ledger.write([a_record(7, 0.25)], NOW)
    before = await client.get(CONFIGMAPS, run.namespace, ledger_name(run.name, 0, 0))

    late = a_ledger(client, run)
    added = await late.write([a_record(7, 0.75)], NOW)

    after = await client.get(CONFIGMAPS, run.namespace, ledger_name(run.name, 0, 0))
    assert (added, after) == ([], before)
    assert late.view().records[7].reward == 0.25


async def deleted(client: Client, run: RunOwner) -> None:
    name = ledger_name(run.name, 0, 1)
    uid = uid_of(await client.get(CONFIGMAPS, run.namespace, name))
    await client.delete(CONFIGMAPS, run.namespace, name, uid=uid)


async def changed(client: Client, run: RunOwner) -> None:
    patch = {"data": {"150": '{"task":"one","rollout":75,"attempt":1,"reward":"1"}'}}
    await client.merge_patch(CONFIGMAPS, run.namespace, ledger_name(run.name, 0, 1), patch)


async def emptied(client: Client, run: RunOwner) -> None:
    patch = {"data": {"150": None}}
    await client.merge_patch(CONFIGMAPS, run.namespace, ledger_name(run.name, 0, 1), patch)


async def mixed_up(client: Client, run: RunOwner) -> None:
    patch = {"data": {"7": '{"task":"one","rollout":3,"attempt":1,"reward":1,"recordedAt":""}'}}
    await client.merge_patch(CONFIGMAPS, run.namespace, ledger_name(run.name, 0, 1), patch)


async def given_away(client: Client, run: RunOwner) -> None:
    name = ledger_name(run.name, 0, 1)
    await client.merge_patch(
        CONFIGMAPS, run.namespace, name, {"metadata": {"ownerReferences": None}}
    )


REMEDY = "Restore it, or delete the Run and apply it again."


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (deleted, "has 1 shards with 1 records, but had 2 with 2"),
        (changed, "key '150': recordedAt: Field required. It was changed by hand; restore it"),
        (emptied, "has 2 shards with 1 records, but had 2 with 2"),
        (mixed_up, f"holds 7, which belongs into another shard. {REMEDY}"),
        (given_away, "is not this Run's: its owner is nobody. Delete or rename it."),
    ],
)
async def test_an_operator_that_starts_finds_the_damage(
    damage: Callable[[Client, RunOwner], Awaitable[None]],
    words: str,
    make_run: MakeRun,
    client: Client,
) -> None:
    run = await make_run()
    await a_ledger(client, run).write([a_record(50), a_record(150)], NOW)

    await damage(client, run)

    with pytest.raises(LedgerDamaged) as found:
        await loaded(client, run, shards=2, records=2)
    assert words in str(found.value)
    assert f"{run.name}-ledger-" in str(found.value)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (deleted, f"was deleted. {REMEDY}"),
        (emptied, f"lost 1 entries, 150 the first. {REMEDY}"),
        (mixed_up, f"holds 7, which belongs into another shard. {REMEDY}"),
        (given_away, "is not this Run's: its owner is nobody. Delete or rename it."),
    ],
)
@pytest.mark.parametrize("step", ["write", "refresh"])
async def test_an_operator_that_runs_finds_the_damage_when_it_comes_there(
    damage: Callable[[Client, RunOwner], Awaitable[None]],
    words: str,
    step: str,
    make_run: MakeRun,
    client: Client,
) -> None:
    run = await make_run()
    ledger = a_ledger(client, run)
    await ledger.write([a_record(50), a_record(150)], NOW)

    await damage(client, run)

    with pytest.raises(LedgerDamaged) as found:
        await (ledger.write([a_record(151)], NOW) if step == "write" else ledger.refresh([151]))
    assert words in str(found.value)


async def test_a_name_that_somebody_else_has_is_never_written_to(
    make_run: MakeRun, client: Client
) -> None:
    run = await make_run()
    name = ledger_name(run.name, 0, shard_of(50))
    foreign = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"a": "b"},
    }
    before = await client.create(CONFIGMAPS, run.namespace, foreign)

    with pytest.raises(LedgerDamaged, match="is not this Run's: its owner is nobody"):
        await a_ledger(client, run).write([a_record(50)], NOW)

    assert await client.get(CONFIGMAPS, run.namespace, name) == before
