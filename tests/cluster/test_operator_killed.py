"""The operator killed at random moments of a Run: nothing lost, nothing twice, nothing run again."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from wavetank.api.run import Run
from wavetank.kube.client import Client
from wavetank.testing import tally
from wavetank.testing.cluster import until
from wavetank.testing.following import Witness, apply, ledger_of_run, over, run_of
from wavetank.testing.own_operator import OperatorProcess, own_operator

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900), pytest.mark.usefixtures("operator")]

KILLS = 12
ROLLOUTS = 20
SPEC: dict[str, Any] = {"tasks": {"include": ["ten", "slow"]}, "k": ROLLOUTS // 2, "parallelism": 3}


async def test_a_run_whose_operator_is_killed_twelve_times_ends_like_an_undisturbed_one(
    namespace: str, client: Client, kubeconfig: Path, tmp_path: Path
) -> None:
    chance = random.Random(20)  # noqa: S311 - moments to kill at
    with own_operator(kubeconfig, tmp_path / "operator.log") as operator:
        async with Witness(client, namespace) as witness:
            operator.start()
            await apply(
                client,
                namespace,
                tally.world(slow_seconds=3),
                tally.benchmark(),
                tally.run("calm", **SPEC),
            )
            calm = await over(client, namespace, "calm")
            operator.kill()

            await apply(client, namespace, tally.run("killed", **SPEC))
            at = await _kill_again_and_again(operator, client, namespace, chance)
            operator.start()
            killed = await over(client, namespace, "killed")

    print(f"killed with so many rollouts recorded: {at}")
    assert len(at) == KILLS
    assert at[-1] < ROLLOUTS, "the last kill came after the end: kill sooner"
    assert await _facts(client, killed) == await _facts(client, calm)
    for run in (calm, killed):
        pods = [name for name in witness.rollouts() if name.startswith(f"{run.metadata.name}-")]
        prefix = f"{run.metadata.name}-{run.metadata.uid[:6]}"
        assert pods == sorted(f"{prefix}-{ordinal}-a1" for ordinal in range(ROLLOUTS))
        assert (await ledger_of_run(client, run)).failures == {}


async def _kill_again_and_again(
    operator: OperatorProcess, client: Client, namespace: str, chance: random.Random
) -> list[int]:
    """Start and kill the operator all along the Run; return how much was recorded at each kill."""
    recorded = []
    # The last few rollouts are recorded together: a kill must come before that.
    for least in sorted(chance.choices(range(ROLLOUTS - 5), k=KILLS)):
        operator.start()
        await _until_recorded(client, namespace, least)
        await asyncio.sleep(chance.uniform(0.0, 2.0))
        assert not operator.has_ended()
        operator.kill()
        recorded.append(await _recorded(client, namespace))
    return recorded


async def _until_recorded(client: Client, namespace: str, least: int) -> None:
    async def look() -> bool:
        await asyncio.sleep(0.2)
        return await _recorded(client, namespace) >= least

    await until(look, 120)


async def _recorded(client: Client, namespace: str) -> int:
    run = await run_of(client, namespace, "killed")
    return len((await ledger_of_run(client, run)).records)


async def _facts(client: Client, run: Run) -> list[tuple[object, ...]]:
    """Return what must not depend on when the operator lived: all but times and digests."""
    ledger = await ledger_of_run(client, run)
    return [
        (
            ordinal,
            record.key.attempt,
            record.reward,
            record.cause,
            record.agent_cause,
            record.scores,
        )
        for ordinal, record in sorted(ledger.records.items())
    ]
