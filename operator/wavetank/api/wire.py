"""The documents that Wavetank's own programs hand to each other, as frozen pydantic models.

Operator, world, wrapper, judge, grade and store meet only here. Field names are camelCase on the
wire. ``canonical`` gives the bytes that digests are taken over.
"""

import hashlib
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from wavetank.core.causes import Cause
from wavetank.core.errors import Severity

Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Number = Annotated[float, Field(allow_inf_nan=False)]

SESSION_ENV = "WAVETANK_SESSION"
"""Environment variable of the world container: a ``SessionSpec`` as JSON."""
GRADE_ENV = "WAVETANK_GRADE"
"""Environment variable of the judge container: a ``GradeSpec`` as JSON."""
CHECK_ENV = "WAVETANK_CHECK"
"""Environment variable of the judge container of a check Job: a ``CheckSpec`` as JSON."""
SOLUTION_ENV = "WAVETANK_SOLUTION"
"""Environment variable of the init container ``solution``: a ``SolutionSpec`` as JSON."""
TOKEN_FILE_ENV = "WAVETANK_TOKEN_FILE"  # noqa: S105 - the name of a variable, not a secret
"""Environment variable: the file that holds the store token of this container."""
TOKEN_HEADER = "X-Wavetank-Token"  # noqa: S105 - the name of a header, not a secret
"""Every store request carries its token here: the API server's proxy strips Authorization."""

MESSAGE_LIMIT = 2048
"""Bytes of records that travel in a termination message; more goes through the store.

The kubelet keeps the last 4,096 bytes of one message and 12 KiB over a Pod's containers.
"""


class Part(BaseModel):
    """Base of what stands inside documents: frozen, camelCase, unknown fields refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        # Each program uses a few of these documents, and every rollout starts three programs.
        defer_build=True,
    )


class Wire(Part):
    """Base of all documents: a part that has bytes and a digest of its own."""

    def canonical(self) -> bytes:
        """Return the document as JSON bytes that are the same for equal documents."""
        return self.model_dump_json(by_alias=True).encode()

    def digest(self) -> str:
        """Return ``sha256:<hex>`` of the canonical bytes."""
        return digest_of(self.canonical())


def digest_of(data: bytes) -> str:
    """Return ``sha256:<hex>`` of bytes.

    >>> digest_of(b"")[:15]
    'sha256:e3b0c442'
    """
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


class BundleRef(Part):
    """A bundle in the store, and which world's folder it unpacks into.

    Refs unpack in order; of several for one alias the later ones lay their files over the
    earlier: so a Benchmark's own tasks and verifiers come on top of its world's.
    """

    alias: str = ""
    """The linked world's alias; empty for the benchmark's own world."""
    digest: Digest


class BundleSet(Wire):
    """A benchmark's bundles, split by who may fetch them."""

    agent: list[BundleRef]
    """Schema, data, tools, prompts: what a rollout Pod's world container may fetch."""
    grader: list[BundleRef]
    """Verifiers: what only judge containers may fetch, together with ``agent``."""
    solutions: list[BundleRef] = []
    """Solutions and scripts: only for the init container of oracle and scripted Pods."""


class SessionSpec(Wire):
    """What the world container serves: one session of one task."""

    run: str
    """UID of the Run."""
    ordinal: int
    attempt: int
    task: str
    rollout: int
    seed: int
    """Seeds ``World.random``; the same for the same task and rollout index in every Run."""
    deadline_seconds: int
    """From ``POST /v1/start`` to the forced end of the session."""
    seal_wait_seconds: int = 600
    """How long after the deadline sealing is tried again while the store does not answer."""
    bundles: list[BundleRef]
    """The agent halves."""
    store: str
    """Base URL, like ``http://10.96.3.4:8081``."""


class SolutionSpec(Wire):
    """What the init container ``solution`` fetches for an oracle or scripted agent."""

    store: str
    """Base URL, like ``http://10.96.3.4:8081``."""
    bundles: list[BundleRef]
    """The solutions parts."""
    path: str
    """The file to hand to the agent: ``solutions/<task>.json``, ``scripts/<name>/<task>.json``."""


class SessionEnd(StrEnum):
    """How a session ended."""

    CLOSED = "closed"
    """The wrapper called close."""
    DEADLINE = "deadline"
    INTERRUPTED = "interrupted"
    """SIGTERM came first; graded only if the Pod's status proves the agent had ended before."""


class Seal(Wire):
    """The end of a session, fixed: put once at ``.../seal`` and repeated in the message."""

    run: str
    ordinal: int
    attempt: int
    task: str
    end: SessionEnd
    reason: Annotated[str, Field(max_length=200)]
    """What the wrapper gave to close, like ``completed`` or ``exit code 3``."""
    exit_code: int | None = None
    """Of the agent's process, as the wrapper saw it; None when it did not report one."""
    snapshot: Digest
    """Of the bytes at ``/v1/runs/<run>/<ordinal>/<attempt>/snapshot``."""
    snapshot_bytes: int
    calls: int
    """Tool calls recorded in the trajectory."""
    started_at: str | None
    """RFC 3339 UTC with milliseconds; None when nobody started the session."""
    ended_at: str


class WorldMessage(Wire):
    """Termination message of the world container: the seal, or why there is none."""

    seal: Seal | None = None
    seal_digest: Digest | None = None
    """Of ``seal.canonical()``."""
    cause: Cause | None = None
    """WorldFailed or StoreUnavailable when there is no seal."""
    message: Annotated[str, Field(max_length=1000)] = ""


class Score(Wire):
    """One verifier's answer."""

    name: str
    """``ticket_closed``, or ``slack/message_posted`` for a linked world's."""
    value: Number | None
    cause: Cause | None = None
    """Set exactly when ``value`` is None."""
    message: Annotated[str, Field(max_length=300)] = ""
    """The engine's own words, or the raw value that was refused."""


class GradeMember(Wire):
    """One sealed rollout to grade."""

    ordinal: int
    attempt: int
    task: str
    seal: Digest
    snapshot: Digest


class GradeSpec(Wire):
    """What one verifier Job grades."""

    run: str
    generation: int
    members: Annotated[list[GradeMember], Field(min_length=1, max_length=16)]
    bundles: BundleSet
    """``agent`` and ``grader``; ``solutions`` stays empty."""
    seconds_per_verifier: int = 10
    store: str


class GradeRecord(Wire):
    """The grading of one member: valid also when its reward is None."""

    ordinal: int
    attempt: int
    task: str
    seal: Digest
    grader: Digest
    """Of the GradeSpec's bundles: which graders spoke."""
    reward: Number | None
    cause: Cause | None = None
    """The first cause in the task's order when ``reward`` is None."""
    scores: list[Score]


class GradeReport(Wire):
    """Termination message of the judge container of a verifier Job.

    ``sha256`` is the digest of ``GradeRecords.canonical()``. Without ``records`` they are in the
    store at ``/v1/runs/<run>/grades/<sha256>``.
    """

    sha256: Digest
    n: int
    records: list[GradeRecord] | None = None
    cause: Cause | None = None
    """StoreUnavailable when nothing could be graded for want of the store."""
    message: Annotated[str, Field(max_length=1000)] = ""
    """Why fewer records came than members, in one sentence."""


class GradeRecords(Wire):
    """The records of one verifier Job, as kept in the store."""

    records: list[GradeRecord]


class CheckKind(StrEnum):
    """What a check Job checks."""

    WORLD = "World"
    BENCHMARK = "Benchmark"


class WireFinding(Wire):
    """A finding (see ``core.errors.Finding``)."""

    severity: Severity
    path: Annotated[str, Field(max_length=300)]
    message: Annotated[str, Field(max_length=1000)]


class CheckSpec(Wire):
    """What one check Job checks."""

    kind: CheckKind
    uid: str
    """Of the World or Benchmark."""
    generation: int
    bundles: BundleSet
    aliases: list[str] = []
    """The links that the object declares: what the bundle's own file names must be among them."""
    pass_threshold: Number = 1.0
    store: str


class TaskInfo(Wire):
    """What planning needs to know of a task."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$", max_length=128)]
    verifiers: list[str]
    """Reward keys in the task's order; linked ones as ``alias/name``."""
    category: str | None = None
    difficulty: str | None = None
    tags: list[str] = []
    timeout_seconds: int | None = None
    max_steps: int | None = None
    initial_reward: Number | None = None
    """Of the untouched state; None with a cause in the findings, or not graded."""
    has_solution: bool = False
    scripts: list[str] = []
    """Names of the scripted solutions that exist for this task."""


class EntityInfo(Wire):
    """A table of the world and its seed rows."""

    name: str
    rows: int


class VerifierInfo(Wire):
    """A verifier on the untouched state."""

    name: str
    initial_score: Number | None
    cause: Cause | None = None


class CheckResult(Wire):
    """What a check Job found; kept at ``/v1/checks/<uid>/<generation>/<digest>``."""

    kind: CheckKind
    bundles: BundleSet
    findings: list[WireFinding]
    entities: list[EntityInfo] = []
    tools: list[str] = []
    tasks: list[TaskInfo] = []
    verifiers: list[VerifierInfo] = []
    initial_mean: Number | None = None
    """Mean over tasks of the initial reward; None unless every task has one."""


class CheckReport(Wire):
    """Termination message of the judge container of a check Job."""

    sha256: Digest
    """Of ``CheckResult.canonical()``, which is in the store."""
    cause: Cause | None = None
    """Set when no check was possible: ``message`` says why, ``sha256`` is of nothing."""
    message: Annotated[str, Field(max_length=1000)] = ""


class Durations(Wire):
    """Seconds that each stage of a rollout took; None where it was not reached."""

    queue: Number | None = None
    start: Number | None = None
    act: Number | None = None
    grade: Number | None = None


class LedgerRecord(Wire):
    """The durable record of one rollout: key ``<ordinal>`` of a ledger shard."""

    task: str
    rollout: int
    attempt: int
    """The attempt that was recorded."""
    reward: Number | None
    cause: Cause | None = None
    """Why there is no reward; None when there is one."""
    agent_cause: Cause | None = None
    """What the agent did to itself (AgentTimeout, ...) when it was graded all the same."""
    scores: list[Score] = []
    seal: Digest | None = None
    grader: Digest | None = None
    durations: Durations = Durations()
    recorded_at: str
    message: Annotated[str, Field(max_length=500)] = ""


class FailedAttempt(Wire):
    """An attempt that gave no end state to grade: key ``<ordinal>.a<attempt>`` of a shard."""

    task: str
    cause: Cause
    message: Annotated[str, Field(max_length=500)] = ""
    failed_at: str


class FailedGradingEntry(Wire):
    """A try at grading that gave no record: key ``<ordinal>.a<attempt>.g<try>`` of a shard."""

    task: str
    cause: Cause
    message: Annotated[str, Field(max_length=500)] = ""


class Operation(StrEnum):
    """What a token allows on a prefix."""

    GET = "get"
    CREATE = "create"


class Grant(Wire):
    """One permission of a store token."""

    operation: Operation
    prefix: str
    """Path prefix; matches whole segments only: ``/v1/runs/x`` covers ``/v1/runs/x/1`` only."""
    max_bytes: int | None = None
    """Largest object that may be created; None for the store's own limit."""
