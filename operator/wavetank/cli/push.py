"""``wavetank benchmarks push``: a folder becomes a World, its links, and a Benchmark."""

from collections.abc import Sequence
from pathlib import Path

import click
from rich.text import Text

from wavetank.api.fields import FindingEntry
from wavetank.api.world import World
from wavetank.cli import bringing, packing, reading, render
from wavetank.cli.bringing import Brought
from wavetank.cli.checking import Checked, await_checks
from wavetank.cli.render import counted
from wavetank.cli.target import AT_FAULT, ObjectName, Target, carry_out, connected, target_options
from wavetank.core.errors import Finding, Severity, SpecError


@click.command(epilog="Example:  wavetank benchmarks push ./crm-bench -n bench")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--name",
    type=ObjectName(63),
    help="Name of World and Benchmark. Default: [world] name of the folder.",
)
@click.option(
    "--kind", type=click.Choice(["world"]), help="Refuse the folder if it holds another kind."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
@target_options
def push(target: Target, folder: Path, name: str | None, kind: str | None, as_json: bool) -> None:
    """Bring the bundle in FOLDER, and the worlds it is linked to, to the cluster.

    All of it is read first: with a fault in it nothing is written. Then the cluster checks it;
    exit code 1 when it finds faults.
    """
    carry_out(lambda: _push(target, folder, name, kind, as_json=as_json))


async def _push(
    target: Target, folder: Path, name: str | None, kind: str | None, *, as_json: bool
) -> int:
    found = packing.kind_of(folder)
    if found is None or kind not in (None, found):
        words = f"it holds no {kind or 'benchmark'}: a world has gateway-env.toml at its root."
        raise reading.fault(str(folder), words)
    try:
        pieces = packing.pieces_of(folder, name)
    except SpecError as error:
        return _refuse(folder, error.findings, as_json=as_json)
    async with connected(target) as place:
        await reading.require_namespace(place)
        await bringing.require_free(place, pieces)
        brought = [await bringing.bring(place, piece) for piece in pieces]
        if pieces[-1].has_tasks:
            await bringing.apply_benchmark(place, pieces[-1])
        await bringing.sweep(place, pieces)
        if not as_json:
            _tell_brought(brought)
        checked = await await_checks(place, pieces)
    if as_json:
        render.print_json({"namespace": place.namespace, **_document(brought, checked)})
    else:
        _show(place.namespace, checked)
    return 0 if checked.is_ready else AT_FAULT


def _refuse(folder: Path, faults: Sequence[Finding], *, as_json: bool) -> int:
    if as_json:
        found = [FindingEntry(severity=f.severity, path=f.path, message=f.message) for f in faults]
        render.print_json({"ready": False, "findings": [entry.document() for entry in found]})
        return AT_FAULT
    for finding in faults:
        render.show(Text(render.clean(f"fault: {finding}"), "red"))
    render.tell(f"{counted(len(faults), 'fault')} in {folder}: nothing was written.")
    return AT_FAULT


def _tell_brought(brought: list[Brought]) -> None:
    made = render.table("world", "files", "packed", "digest", "change", numbers=("files", "packed"))
    for one in brought:
        made.add_row(
            one.piece.name,
            str(len(one.piece.files)),
            f"{one.packed_bytes / 1000:,.1f} kB",
            f"{one.piece.digest[:19]}…",
            one.change.value,
        )
    render.show(made)


def _show(namespace: str, checked: Checked) -> None:
    """Print what the check found: counts, scores of the untouched state, findings, the verdict."""
    for world in checked.worlds:
        counts = world.status.counts
        if counts is not None:
            listed = ((counts.entities, "table"), (counts.rows, "row"), (counts.tools, "tool"))
            words = ", ".join(counted(number, what) for number, what in listed)
            click.echo(f"World {world.metadata.name}: {words}")
    benchmark = checked.benchmark
    if benchmark is not None and benchmark.status.verifiers:
        made = render.table("verifier", "initial score")
        for verifier in benchmark.status.verifiers:
            made.add_row(verifier.name, verifier.initial_score or f"- ({verifier.cause})")
        render.show(made)
    for finding in _findings(checked):
        style = "red" if finding.severity is Severity.FAULT else "yellow"
        words = f"{finding.severity}: {finding.path}: {finding.message}"
        render.show(Text(render.clean(words), style))
    verdict = "is ready" if checked.is_ready else "has faults"
    if benchmark is None:
        click.echo(
            f"World {checked.worlds[-1].metadata.name} in {namespace} {verdict}. It has no tasks."
        )
    else:
        status = benchmark.status
        mean = status.initial_mean or "-"
        words = f"{counted(status.tasks or 0, 'task')}, initial mean {mean}"
        click.echo(f"Benchmark {benchmark.metadata.name} in {namespace} {verdict}: {words}.")


def _findings(checked: Checked) -> list[FindingEntry]:
    """Return what was found, once each: the check of a world repeats what its links' checks say."""
    *linked, main = checked.worlds
    prefixes = {link.world_ref.name: f"linked/{link.alias}/" for link in main.spec.dependencies}
    found = [*checked.benchmark.status.findings] if checked.benchmark else []
    found += main.status.findings
    for world in linked:
        name = world.metadata.name
        prefix = prefixes.get(name, f"World {name}: ")
        found += [f.model_copy(update={"path": prefix + f.path}) for f in world.status.findings]
    return [finding for place, finding in enumerate(found) if finding not in found[:place]]


def _document(brought: list[Brought], checked: Checked) -> dict[str, object]:
    benchmark = checked.benchmark
    return {
        "ready": checked.is_ready,
        "worlds": [_world(one, world) for one, world in zip(brought, checked.worlds, strict=True)],
        "benchmark": None
        if benchmark is None
        else {
            "name": benchmark.metadata.name,
            "tasks": benchmark.status.tasks,
            "initialMean": _number(benchmark.status.initial_mean),
            "verifiers": [
                {
                    "name": verifier.name,
                    "initialScore": _number(verifier.initial_score),
                    "cause": verifier.cause,
                }
                for verifier in benchmark.status.verifiers
            ],
        },
        "findings": [finding.document() for finding in _findings(checked)],
    }


def _world(brought: Brought, world: World) -> dict[str, object]:
    counts = world.status.counts
    return {
        "name": world.metadata.name,
        "change": brought.change.value,
        "digest": brought.piece.digest,
        "files": len(brought.piece.files),
        "packedBytes": brought.packed_bytes,
        "counts": counts.document() if counts else None,
    }


def _number(text: str | None) -> float | None:
    return None if text is None else float(text)
