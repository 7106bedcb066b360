"""Runs as a cluster keeps them (object, plan, ledger), without a cluster: for the command line."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from wavetank.api.kinds import Run, read
from wavetank.api.ledger import encode, key_of, ledger_of
from wavetank.api.plan import Plan
from wavetank.api.results import figures_of
from wavetank.api.run_status import ResolvedImages, RunStatus
from wavetank.api.wire import BundleRef, BundleSet, TaskInfo
from wavetank.cli.reading import RunRead
from wavetank.controller.reporting import Progress, status_of, waiting_status
from wavetank.core.actions import Decision, Entry
from wavetank.core.causes import Cause
from wavetank.core.identity import AttemptKey
from wavetank.core.observed import FailedGrading, Failure, Record, ScoreSeen, Stages
from wavetank.kube.objects import Manifest
from wavetank.manifests.objects import RunOwner, ledger_config_map, plan_config_map
from wavetank.testing.statuses import DIGEST, NOW

UID = "3f2a1b9c-0000-4000-8000-000000000000"
NAMESPACE = "bench"
STORE = "wavetank-system/wavetank-store:8081"

CLOSE = TaskInfo(
    id="close_ticket",
    verifiers=["ticket_closed", "reason_recorded"],
    category="tickets",
    difficulty="easy",
)
ESCALATE = TaskInfo(id="escalate", verifiers=["ticket_escalated", "slack/message_posted"])
TASKS = (CLOSE, ESCALATE)


@dataclass(frozen=True)
class KeptRun:
    """A Run of two tasks, with what is recorded of it."""

    name: str = "crm-oracle"
    agent: str = "oracle"
    k: int = 2
    entries: Sequence[Entry] = ()
    waits: tuple[str, str] | None = None
    """Reason and message of a Run that has no plan yet."""

    @property
    def _plan(self) -> Plan:
        ref = [BundleRef(digest=DIGEST)]
        bundles = BundleSet(agent=ref, grader=ref, solutions=ref)
        return Plan(
            run=UID, benchmark="crm", benchmark_generation=1, tasks=list(TASKS), bundles=bundles
        )

    @property
    def run(self) -> Manifest:
        """Return the Run as the API server gives it."""
        bare: Manifest = {
            "apiVersion": "wavetank.dev/v1alpha1",
            "kind": "Run",
            "metadata": {
                "name": self.name,
                "namespace": NAMESPACE,
                "uid": UID,
                "generation": 1,
                "creationTimestamp": NOW,
            },
            "spec": {
                "benchmarkRef": {"name": "crm"},
                "agent": {"name": self.agent},
                "k": self.k,
            },
        }
        return {**bare, "status": self._status(read(Run, bare)).document()}

    def _status(self, run: Run) -> RunStatus:
        if self.waits is not None:
            return waiting_status(run, *self.waits, NOW)
        ledger = ledger_of(self.entries)
        figures = figures_of(self._plan, self.k, ledger)
        progress = Progress(
            plan=self._plan,
            decision=Decision(complete=len(ledger.records) == len(TASKS) * self.k),
            figures=figures,
            shards=1,
            records=len(ledger.records),
            operator_version="0.1.0",
            store=STORE,
            images=ResolvedImages(),
        )
        return status_of(run, progress, NOW)

    @property
    def plan(self) -> Manifest | None:
        """Return the ConfigMap of its plan."""
        return None if self.waits is not None else plan_config_map(self._owner, self._plan)

    @property
    def shard(self) -> Manifest:
        """Return the one shard of its ledger."""
        ids = [task.id for task in TASKS]
        texts = {key_of(entry): encode(entry, ids, 0.0) for entry in self.entries}
        return ledger_config_map(self._owner, 0, 0, texts)

    @property
    def _owner(self) -> RunOwner:
        return RunOwner(self.name, NAMESPACE, UID)

    def as_read(self) -> RunRead:
        """Return it as the command line has it in hand."""
        run = read(Run, self.run)
        plan = None if self.waits is not None else self._plan
        return RunRead(run, plan, ledger_of(self.entries))


def scored(ordinal: int, *values: float, agent_cause: Cause | None = None) -> Record:
    """Return the record of a rollout whose task's verifiers gave these scores."""
    names = TASKS[ordinal % len(TASKS)].verifiers
    return Record(
        AttemptKey(ordinal, 1),
        reward=sum(values) / len(values),
        agent_cause=agent_cause,
        scores=tuple(ScoreSeen(n, v) for n, v in zip(names, values, strict=True)),
        seal=DIGEST,
        grader=DIGEST,
        stages=Stages(queue=0.0, start=2.5, act=1.25, grade=4.0),
    )


def invalid(ordinal: int, words: str) -> Record:
    """Return the record of a rollout whose first verifier gave no number."""
    good = scored(ordinal, 0.0, 1.0)
    first = replace(good.scores[0], value=None, cause=Cause.REWARD_INVALID, message=words)
    return replace(good, reward=None, cause=Cause.REWARD_INVALID, scores=(first, good.scores[1]))


def lost(ordinal: int, attempts: int, words: str) -> list[Entry]:
    """Return the entries of a rollout that was tried so often and left no end state."""
    cause = Cause.POD_DELETED
    keys = [AttemptKey(ordinal, attempt + 1) for attempt in range(attempts)]
    failures: list[Entry] = [Failure(key, cause, words, 0.0) for key in keys]
    return [*failures, Record(keys[-1], reward=None, cause=cause, message=words)]


def failed_grading(ordinal: int, words: str) -> FailedGrading:
    """Return a first try at grading that gave no record."""
    return FailedGrading(AttemptKey(ordinal, 1), 1, Cause.VERIFIER_TIMEOUT, words)
