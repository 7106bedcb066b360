"""``wavetank runs evidence``: what is kept of one rollout, shown or downloaded."""

import asyncio
import base64
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from wavetank.api.kinds import read
from wavetank.api.results import rollout_rows
from wavetank.api.run import Run
from wavetank.bundles import pack
from wavetank.cli import reading, render
from wavetank.cli.target import AT_FAULT, Target, carry_out, target_options
from wavetank.core.errors import ClusterError, Finding, Severity, SpecError
from wavetank.core.identity import ordinal_of, tokens_name
from wavetank.kube.client import Client, open_client
from wavetank.kube.objects import RUNS, SECRETS
from wavetank.kube.proxy import ServiceProxy


@dataclass(frozen=True)
class Place:
    """Which attempt's evidence is wanted, and where it is."""

    run: Run
    ordinal: int
    attempt: int
    record: Mapping[str, Any]
    """The rollout's row of the results; empty when it is not recorded yet."""


@click.command(
    epilog="Example:  wavetank runs evidence crm-oracle close_ticket 0 -n bench -o ./evidence",
)
@click.argument("run_name", metavar="RUN")
@click.argument("task")
@click.argument("rollout", type=click.IntRange(min=0))
@click.option("--attempt", type=click.IntRange(min=1), help="The recorded one when not given.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder to write it to.")
@click.option("--json", "as_json", is_flag=True, help="The trajectory and record for programs.")
@target_options
def evidence(
    target: Target, output: Path | None, as_json: bool, attempt: int | None, **asked: Any
) -> None:
    """Show the trajectory and grading of rollout ROLLOUT of TASK, or download all of it.

    With -o the folder gets record.json, seal.json, trajectory.jsonl, session.json, agent.log and
    the end state as worlds/*.sqlite.
    """
    wanted = (asked["run_name"], asked["task"], asked["rollout"], attempt)
    carry_out(lambda: _evidence(target, wanted, output, as_json))


async def _evidence(
    target: Target, asked: tuple[str, str, int, int | None], output: Path | None, as_json: bool
) -> int:
    async with open_client(target.kubeconfig) as client:
        place = await _place(client, target.namespace, *asked)
        store, token = await _store(client, place.run)
        root = f"/v1/runs/{place.run.metadata.uid}/{place.ordinal}/{place.attempt}"
        names = ("snapshot", "seal", "agent-log")
        answers = await asyncio.gather(*(store.get(f"{root}/{name}", token) for name in names))
    found = {name: a.body for name, a in zip(names, answers, strict=True) if a.is_success}
    if "snapshot" not in found:
        click.echo(
            f"The store has no evidence of attempt {place.attempt}: {answers[0].body.decode()}",
            err=True,
        )
        return AT_FAULT
    if output is not None:
        _write(output, place, found)
        click.echo(f"Evidence is in {output}")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        pack.unpack(found["snapshot"], Path(folder))
        session = json.loads((Path(folder) / "session.json").read_text())
        lines = (Path(folder) / "trajectory.jsonl").read_text().splitlines()
    calls = [json.loads(line) for line in lines]
    if as_json:
        render.print_json({"record": place.record or None, "session": session, "trajectory": calls})
    else:
        _show(place, session, calls)
    return 0


async def _place(
    client: Client, namespace: str, run_name: str, task: str, rollout: int, attempt: int | None
) -> Place:
    run = read(Run, await client.get(RUNS, namespace, run_name))
    found = await reading.read_run(client, run)
    if found.plan is None:
        raise _fault(f"run {run_name}", "it has no plan yet: it waits for its Benchmark.")
    ids = [info.id for info in found.plan.tasks]
    if task not in ids:
        raise _fault(f"task {task}", f"the Run has none of that id. Name one of: {', '.join(ids)}.")
    if rollout >= run.spec.k:
        raise _fault(f"rollout {rollout}", f"the Run has rollouts 0 to {run.spec.k - 1} of a task.")
    ordinal = ordinal_of(rollout, ids.index(task), len(ids))
    rows = rollout_rows(found.plan, run.spec.k, found.ledger)
    record = next((r for r in rows if isinstance(r, dict) and r["ordinal"] == ordinal), {})
    if attempt is None and not record:
        raise _fault(
            f"rollout {rollout}", "it is not recorded yet: give --attempt to look all the same."
        )
    return Place(run, ordinal, attempt or int(str(record["attempt"])), record)


async def _store(client: Client, run: Run) -> tuple[ServiceProxy, str]:
    """Return the store by the API server's proxy, and the Run's token for reading."""
    where = run.status.resolved.store if run.status.resolved else None
    if where is None:
        raise ClusterError(f"Run {run.metadata.name} does not say where its store is")
    secret = await client.get(SECRETS, run.metadata.namespace, tokens_name(run.metadata.name))
    token = base64.b64decode(secret["data"]["read"]).decode()
    service, _, port = where.rpartition(":")
    namespace, _, name = service.partition("/")
    return ServiceProxy(client, namespace, name, int(port)), token


def _write(output: Path, place: Place, found: Mapping[str, bytes]) -> None:
    output.mkdir(parents=True, exist_ok=True)
    pack.unpack(found["snapshot"], output)
    (output / "record.json").write_text(json.dumps(place.record, indent=2))
    for name, file in (("seal", "seal.json"), ("agent-log", "agent.log")):
        if name in found:
            (output / file).write_bytes(found[name])


def _show(place: Place, session: Mapping[str, Any], calls: list[dict[str, Any]]) -> None:
    """Print the trajectory as text; what an agent wrote is never read as markup."""
    out = render.console
    name = place.run.metadata.name
    out.print(f"{name} {session.get('task')}, attempt {place.attempt}", style="bold", markup=False)
    for number, call in enumerate(calls, 1):
        arguments = json.dumps(call.get("arguments"), ensure_ascii=False)
        out.print(f"{number:>3} {call.get('tool')} {arguments}", markup=False)
        answer = call.get("result") if call.get("error") is None else call.get("error")
        out.print(f"    -> {json.dumps(answer, ensure_ascii=False)}", style="dim", markup=False)
    out.print(f"answer  {session.get('finalAnswer') or '-'}", markup=False)
    out.print(f"end     {session.get('end')}: {session.get('reason')}", markup=False)
    for verifier, value in dict(place.record.get("rewards") or {}).items():
        out.print(f"score   {verifier} {render.number(value, 2)}", markup=False)
    out.print(f"reward  {render.number(place.record.get('reward'))}", markup=False)


def _fault(path: str, message: str) -> SpecError:
    return SpecError([Finding(Severity.FAULT, path, message)])
