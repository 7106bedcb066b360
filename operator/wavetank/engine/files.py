"""Where a local Run is kept: one folder for each, which its name says.

```
<data folder>/runs/<name>/
  run.json              what is run: the Run as in a cluster, and the benchmark's folder
  plan.json             its tasks and bundles, pinned after the check
  ledger-g<G>.jsonl     what was recorded, for each generation
  store/                bundles and evidence, as the store keeps them
  work/<random>/        scratch of the processes; gone when nothing runs
  lock                  held by the process that runs it
```
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import TypeVar

from wavetank.api.kinds import read
from wavetank.api.plan import Plan
from wavetank.api.run import Run, RunSpec
from wavetank.core.errors import Finding, Severity, SpecError
from wavetank.core.observed import Ledger
from wavetank.engine.ledger import FileLedger, read_entries, sync_folder

T = TypeVar("T")

_FILE = "run.json"


@dataclass(frozen=True)
class LocalRun:
    """A Run on this machine."""

    home: Path
    """Its folder."""
    benchmark: Path
    """Folder of the benchmark, as it was when the Run was made."""
    identity: str
    """Digest of what it is a Run of: a Run of the same name and another identity is another."""
    run: Run
    generation: int = 0
    """How often what had no score was run again."""

    @property
    def name(self) -> str:
        """Return its name."""
        return self.run.metadata.name

    @property
    def store(self) -> Path:
        """Return the folder of its store."""
        return self.home / "store"

    def ledger_file(self, generation: int) -> Path:
        """Return the file of one generation's ledger."""
        return self.home / f"ledger-g{generation}.jsonl"

    def plan(self) -> Plan | None:
        """Return the plan; None before there is one."""
        file = self.home / "plan.json"
        return Plan.model_validate_json(file.read_bytes()) if file.exists() else None

    def ledger(self) -> Ledger:
        """Return all that is recorded: of each rollout the newest record.

        Raises:
            LedgerDamaged: If a ledger is not as it was written.
        """
        views = [FileLedger(self.ledger_file(g), ()).view() for g in range(self.generation + 1)]
        return merged(views)

    def entries(self) -> dict[str, str]:
        """Return all that is recorded, by key, as it is written."""
        found: dict[str, str] = {}
        for generation in range(self.generation + 1):
            found |= read_entries(self.ledger_file(generation))
        return found

    def is_held(self) -> bool:
        """Tell whether a process runs it now."""
        try:
            file = os.open(self.home / "lock", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False

    def with_spec(self, spec: RunSpec) -> "LocalRun":
        """Return it with another spec."""
        return replace(self, run=self.run.model_copy(update={"spec": spec}))


def merged(views: Sequence[Ledger]) -> Ledger:
    """Return the ledgers of all generations as one, oldest first; the newest record counts."""
    every = Ledger()
    for view in views:
        every = Ledger(
            records={**every.records, **view.records},
            failures=_joined(every.failures, view.failures),
            failed_gradings=_joined(every.failed_gradings, view.failed_gradings),
        )
    return every


def _joined(
    a: Mapping[int, tuple[T, ...]], b: Mapping[int, tuple[T, ...]]
) -> Mapping[int, tuple[T, ...]]:
    return {key: (*a.get(key, ()), *b.get(key, ())) for key in {**a, **b}}


def save(local: LocalRun) -> None:
    """Write what is run, all or nothing."""
    meta = local.run.metadata
    document = {
        "benchmark": str(local.benchmark),
        "identity": local.identity,
        "generation": local.generation,
        "run": {
            "metadata": {
                "name": meta.name,
                "uid": meta.uid,
                "generation": meta.generation,
                "creationTimestamp": meta.creation_timestamp,
            },
            "spec": local.run.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True),
        },
    }
    write(local.home / _FILE, json.dumps(document, indent=1).encode())


def write(file: Path, data: bytes) -> None:
    """Write a file through to the disk, all or nothing."""
    part = file.with_name(f".{file.name}.part")
    with part.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    part.replace(file)
    sync_folder(file.parent)


def load(home: Path) -> LocalRun | None:
    """Return the Run of a folder; None when there is none.

    Raises:
        SpecError: If it was written by another version, or changed by hand.
    """
    file = home / _FILE
    if not file.is_file():
        return None
    try:
        document = json.loads(file.read_bytes())
        return LocalRun(
            home=home,
            benchmark=Path(document["benchmark"]),
            identity=document["identity"],
            run=read(Run, document["run"]),
            generation=document["generation"],
        )
    except (ValueError, KeyError, TypeError) as error:
        words = f"this is no Run of this version: {error!r}. Delete the folder {home}."
        raise SpecError([Finding(Severity.FAULT, str(file), words)]) from error


def every(root: Path) -> list[LocalRun]:
    """Return all Runs below a folder, oldest first."""
    homes = sorted(root.iterdir()) if root.is_dir() else []
    found = [local for home in homes if (local := load(home)) is not None]
    return sorted(found, key=lambda each: each.run.metadata.creation_timestamp or "")


@contextmanager
def held(home: Path) -> Iterator[None]:
    """Be the one process that runs the Run of a folder.

    Raises:
        SpecError: If another one does.
    """
    home.mkdir(parents=True, exist_ok=True)
    file = os.open(home / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(file)
        words = "another process runs it now. Wait for its end, or end it."
        raise SpecError([Finding(Severity.FAULT, f"Run {home.name}", words)]) from error
    try:
        yield
    finally:
        os.close(file)


@contextmanager
def scratch(local: LocalRun) -> Iterator[Path]:
    """Give a folder for what processes make for themselves, of a name that was never used before.

    Processes of an engine that was killed may live for some seconds more: they must not meet ours.
    """
    root = local.home / "work"
    shutil.rmtree(root, ignore_errors=True)
    folder = root / token_hex(4)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(root, ignore_errors=True)


def remove(local: LocalRun) -> None:
    """Remove a Run with everything that is kept of it."""
    shutil.rmtree(local.home, ignore_errors=True)
