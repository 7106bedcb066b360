"""Runs on this machine: as commands read them, in the form that those of a cluster have.

Nothing here starts one: ``local_run`` does, which brings in the servers.
"""

import json
import shutil
from pathlib import Path

import zstandard

from wavetank.api.conditions import Says, merged
from wavetank.api.plan import Plan
from wavetank.api.run_status import RunStatus
from wavetank.bundles import pack
from wavetank.cli.reading import RunRead
from wavetank.cli.target import Target
from wavetank.core.observed import Ledger
from wavetank.engine import files
from wavetank.engine.files import LocalRun
from wavetank.engine.settings import runs_folder


def named(target: Target, name: str) -> list[LocalRun]:
    """Return the local Runs that a name means, oldest first.

    Args:
        target: Who names a cluster's context or namespace means none of this machine.
        name: Of a benchmark's folder, for all its Runs, or of one local Run.
    """
    return [] if target.is_named else _all_named(name)


def _all_named(name: str) -> list[LocalRun]:
    every = files.every(runs_folder())
    if Path(name).is_dir():
        folder = Path(name).resolve()
        return [local for local in every if local.benchmark == folder]
    return [local for local in every if local.name == name]


def newest(name: str) -> RunRead | None:
    """Return the newest local Run that a name means; None when it means none."""
    found = _all_named(name)
    return as_read(found[-1]) if found else None


def as_read(local: LocalRun) -> RunRead:
    """Return a local Run as one of a cluster is read.

    Raises:
        LedgerDamaged: If its ledger was changed by hand.
    """
    plan, ledger = local.plan(), local.ledger()
    entries = {key: json.loads(text) for key, text in local.entries().items()}
    status = _status(local, plan, ledger)
    run = local.run.model_copy(update={"status": status})
    return RunRead(run, plan, ledger, entries, store=str(local.store))


def _status(local: LocalRun, plan: Plan | None, ledger: Ledger) -> RunStatus:
    """Return the part of a status that commands look at: how a Run stands, and why."""
    meta = local.run.metadata
    total = None if plan is None else len(plan.tasks) * local.run.spec.k
    is_complete = total is not None and sum(n < total for n in ledger.records) == total
    is_stopped = not is_complete and not local.is_held()
    reason = "AllRecorded" if is_complete else "Stopped" if is_stopped else "Running"
    says = [Says("Complete", is_complete, reason), Says("Suspended", is_stopped, reason)]
    words = "it was stopped before its end: the same command goes on." if is_stopped else None
    started = meta.creation_timestamp or ""
    return RunStatus(
        conditions=merged((), says, meta.generation, started),
        observed_generation=meta.generation,
        started_at=started,
        last_problem=words,
    )


def copy_evidence(store: str, path: str, folder: Path) -> bool:
    """Write an attempt's snapshot, seal and log into a folder.

    Args:
        store: Folder of the Run's store.
        path: Of the attempt in the store.
        folder: Is there.

    Returns:
        False when the store has no snapshot of that attempt.
    """
    place = Path(store) / path.lstrip("/")
    if not (place / "snapshot").is_file():
        return False
    pack.unpack(place / "snapshot", folder)
    if (place / "seal").is_file():
        shutil.copyfile(place / "seal", folder / "seal.json")
    if (place / "agent-log").is_file():
        log = zstandard.ZstdDecompressor().decompress((place / "agent-log").read_bytes())
        (folder / "agent.log").write_bytes(log)
    return True
