"""A verifier or check Job as two processes beside a real store, and what it works on."""

import json
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wavetank.api.wire import (
    BundleRef,
    BundleSet,
    CheckSpec,
    GradeMember,
    GradeReport,
    GradeSpec,
    digest_of,
)
from wavetank.bundles import pack
from wavetank.bundles.world import read
from wavetank.testing.store import RunningStore
from wavetank.worlds import database

SEAL = digest_of(b"seal")

Process = subprocess.Popen[bytes]


@dataclass
class Job:
    """The two containers of a Job, each a process, sharing two folders."""

    folder: Path
    store: RunningStore
    spec: GradeSpec | CheckSpec
    seconds: float | None = None
    """After which judge reports what there is; None for its own default."""

    def __post_init__(self) -> None:
        for name in ("in", "out"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "token").write_text(self.store.token())

    @property
    def outbox(self) -> Path:
        """Grade's folder."""
        return self.folder / "out"

    @property
    def message_file(self) -> Path:
        """Judge's termination message; there when it has ended."""
        return self.folder / "message"

    @property
    def report(self) -> GradeReport:
        """The message of a verifier Job's judge."""
        return GradeReport.model_validate_json(self.message_file.read_bytes())

    def start_judge(self) -> Process:
        """Start the container that holds the token."""
        name = "WAVETANK_GRADE" if isinstance(self.spec, GradeSpec) else "WAVETANK_CHECK"
        environment = {
            name: self.spec.canonical().decode(),
            "WAVETANK_TOKEN_FILE": str(self.folder / "token"),
            "WAVETANK_TERMINATION_LOG": str(self.message_file),
        }
        if self.seconds is not None:
            environment["WAVETANK_JUDGE_SECONDS"] = str(self.seconds)
        return self._start("judge", **environment)

    def start_grade(self) -> Process:
        """Start the container that runs verifiers."""
        return self._start("grade")

    def run(self) -> tuple[int, int]:
        """Run both to their end; return the exit codes of grade and judge."""
        judge, grade = self.start_judge(), self.start_grade()
        return grade.wait(timeout=60), judge.wait(timeout=60)

    def _start(self, program: str, **more: str) -> Process:
        folders = {"WAVETANK_IN": str(self.folder / "in"), "WAVETANK_OUT": str(self.outbox)}
        return subprocess.Popen(  # noqa: S603 - this project's own modules
            [sys.executable, "-m", f"wavetank.worlds.grading.{program}"], env={**folders, **more}
        )


@dataclass
class Scene:
    """A world's bundles and the end states of sessions in it, put into a store."""

    store: RunningStore
    folder: Path
    """Scratch, of this scene only."""
    main: Path
    """The bundle of the benchmark's own world."""
    linked: Mapping[str, Path] = field(default_factory=dict)
    run: str = field(default_factory=lambda: str(uuid.uuid4()))

    async def bundles(self) -> BundleSet:
        """Put the parts of the bundles and return their references."""
        parts: dict[str, list[BundleRef]] = {"agent": [], "grader": [], "solutions": []}
        async with self.store.client() as client:
            for alias, folder in {"": self.main, **self.linked}.items():
                halves = pack.split(pack.read_folder(folder))
                for part, refs in parts.items():
                    files = getattr(halves, part)
                    if files:
                        digest = pack.digest_of(files)
                        await client.put(f"/v1/bundles/{digest}", pack.pack(files))
                        refs.append(BundleRef(alias=alias, digest=digest))
        return BundleSet(**parts)

    async def member(
        self,
        ordinal: int,
        statements: Sequence[tuple[str, str]] = (),
        task: str = "close_ticket",
        change: Callable[[Path], None] = lambda _: None,
    ) -> GradeMember:
        """Put the end state of a session; return it as a member to grade.

        Args:
            ordinal: Of the member; its attempt is 1.
            statements: (alias, statement) of what the session changed.
            task: The session's task.
            change: Changes the unpacked snapshot before it is packed.
        """
        state = self.folder / f"state-{ordinal}"
        databases = database.create(read(self.main, self.linked).worlds)
        transaction = databases.begin()
        for alias, statement in statements:
            transaction.execute(alias, statement)
        transaction.commit()
        databases.dump(state / "worlds")
        databases.close()
        session = {"task": task, "finalAnswer": "Done.", "calls": 1, "end": "closed", "reason": ""}
        (state / "session.json").write_text(json.dumps(session))
        (state / "trajectory.jsonl").write_text("")
        change(state)
        packed = pack.pack(pack.read_folder(state))
        shutil.rmtree(state)
        async with self.store.client() as client:
            await client.put(f"/v1/runs/{self.run}/{ordinal}/1/snapshot", packed)
        return GradeMember(
            ordinal=ordinal, attempt=1, task=task, seal=SEAL, snapshot=digest_of(packed)
        )

    async def job(self, *members: GradeMember, seconds: int = 10) -> Job:
        """Return a verifier Job over these members."""
        bundles = await self.bundles()
        spec = GradeSpec(
            run=self.run,
            generation=0,
            members=list(members),
            bundles=BundleSet(agent=bundles.agent, grader=bundles.grader),
            seconds_per_verifier=seconds,
            store=self.store.url,
        )
        return Job(self.folder / "job", self.store, spec)


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Return when a condition holds.

    Raises:
        AssertionError: If it does not in time.
    """
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"the condition did not come to hold within {seconds:g} s")
        time.sleep(0.005)
