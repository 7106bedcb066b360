"""A Run on a model cluster, under every order of events that Hypothesis can think of.

The model plays API server, kubelet, world and judge; the operator looks when it likes, may see an
old picture of the Pods, and may die after any of its actions. A separate book of what really
happened (``truth``) is the witness: never the operator's own word.
"""

from dataclasses import dataclass, field, replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wavetank.core.actions import (
    DeleteJob,
    DeletePod,
    Entry,
    StartGrading,
    StartRollout,
    WriteLedger,
)
from wavetank.core.causes import Cause
from wavetank.core.decide import decide
from wavetank.core.identity import AttemptKey
from wavetank.core.lifecycle import Stage, check_step
from wavetank.core.observed import (
    Container,
    ContainerPhase,
    End,
    FailedGrading,
    Failure,
    Graded,
    JobSeen,
    Ledger,
    Limits,
    PodSeen,
    Record,
    RunSeen,
    SealSeen,
)

MAX_ATTEMPTS = 3


@dataclass
class ModelCluster:
    """The world outside the operator, and the book of what happened in it."""

    total: int
    now: float = 1_000.0
    pods: dict[AttemptKey, PodSeen] = field(default_factory=dict)
    seals: dict[AttemptKey, SealSeen] = field(default_factory=dict)
    jobs: dict[str, JobSeen] = field(default_factory=dict)
    records: dict[int, Record] = field(default_factory=dict)
    failures: dict[int, dict[AttemptKey, Failure]] = field(default_factory=dict)
    gradings: dict[int, dict[tuple[AttemptKey, int], FailedGrading]] = field(default_factory=dict)
    seen_pods: set[AttemptKey] = field(default_factory=set)
    truth_started: list[AttemptKey] = field(default_factory=list)
    stages: dict[int, Stage] = field(default_factory=dict)

    def ledger(self) -> Ledger:
        return Ledger(
            records=dict(self.records),
            failures={
                n: tuple(sorted(f.values(), key=lambda i: i.key)) for n, f in self.failures.items()
            },
            failed_gradings={
                n: tuple(sorted(g.values(), key=lambda i: (i.key, i.try_number)))
                for n, g in self.gradings.items()
            },
        )

    def look(self, old_pods: dict[AttemptKey, PodSeen] | None = None) -> RunSeen:
        """What the operator sees: Pods perhaps from before, the ledger as it is."""
        pods = self.pods if old_pods is None else old_pods
        vanished = {
            key
            for key in self.seen_pods - set(pods)
            if key not in self.pods and not self.is_over(key)
        }
        self.seen_pods |= set(pods)
        return RunSeen(
            total=self.total,
            limits=Limits(parallelism=2, max_attempts=MAX_ATTEMPTS),
            ledger=self.ledger(),
            pods=tuple(pods.values()),
            jobs=tuple(self.jobs.values()),
            seals={key: seal for key, seal in self.seals.items() if key not in pods},
            vanished=frozenset(vanished),
            ended_seen=dict.fromkeys(self.seals, self.now - 10),
        )

    def is_over(self, key: AttemptKey) -> bool:
        return key.ordinal in self.records or key in self.failures.get(key.ordinal, {})

    def step(
        self, *, old_pods: dict[AttemptKey, PodSeen] | None = None, die_after: int = 99
    ) -> bool:
        """One look of the operator; returns whether it holds the Run for complete."""
        decision = decide(self.look(old_pods), self.now)
        for action in decision.actions[:die_after]:
            self.apply(action)
        if old_pods is None:
            for ordinal, stage in decision.stages.items():
                check_step(ordinal, self.stages.get(ordinal, Stage.PLANNED), stage)
            self.stages = dict(decision.stages)
        return decision.complete

    def apply(self, action: object) -> None:
        match action:
            case WriteLedger(entries):
                for entry in entries:
                    self.write(entry)
            case StartRollout(key):
                self.start(key)
            case StartGrading(members, try_number):
                name = f"{try_number}:{','.join(str(m.key) for m in members)}"
                keys = tuple(member.key for member in members)
                assert all(self.seals[member.key].digest == member.seal for member in members)
                self.jobs.setdefault(
                    name, JobSeen(name, name, keys, try_number, created_at=self.now)
                )
            case DeletePod(_, uid):
                (pod,) = [pod for pod in self.pods.values() if pod.uid == uid] or [None]
                if pod is not None:
                    assert self.is_over(pod.key), "a Pod is deleted only after its word is written"
                    del self.pods[pod.key]
            case DeleteJob(name, _):
                self.jobs.pop(name, None)

    def write(self, entry: Entry) -> None:
        """Compare-and-swap: the first entry of a key wins."""
        ordinal = entry.key.ordinal
        match entry:
            case Record():
                self.records.setdefault(ordinal, entry)
            case Failure():
                self.failures.setdefault(ordinal, {}).setdefault(entry.key, entry)
            case FailedGrading():
                key = (entry.key, entry.try_number)
                self.gradings.setdefault(ordinal, {}).setdefault(key, entry)

    def start(self, key: AttemptKey) -> None:
        # The controller reads the ledger again before a create.
        if key in self.pods or self.is_over(key):
            return
        assert key.attempt <= MAX_ATTEMPTS
        for other in self.truth_started:
            sealed = self.seals.get(other)
            if other.ordinal == key.ordinal and sealed is not None:
                assert sealed.end is End.INTERRUPTED, "a rollout that ended well is never run again"
        self.truth_started.append(key)
        waiting = Container(ContainerPhase.WAITING, "PodInitializing")
        self.pods[key] = PodSeen(
            f"pod-{key}", f"uid-{key}", key, self.now, self.now, world=waiting, agent=waiting
        )


EVENTS = (
    "start",
    "seal",
    "oom",
    "crash",
    "delete",
    "evict",
    "forget",
    "report",
    "die",
    "look",
    "stale",
    "halt",
)


def play(cluster: ModelCluster, event: str, pick: int, old: dict[AttemptKey, PodSeen]) -> None:
    """Let one thing happen to one Pod or Job."""
    cluster.now += 1
    live = [pod for pod in cluster.pods.values() if pod.seal is None and pod.reason == ""]
    jobs = [job for job in cluster.jobs.values() if not job.finished]
    if event in {"look", "stale", "halt"}:
        cluster.step(
            old_pods=old if event == "stale" else None, die_after=pick if event == "halt" else 99
        )
    elif event in {"report", "die"} and jobs:
        job = jobs[pick % len(jobs)]
        members = job.members if event == "report" else job.members[: pick % len(job.members)]
        graded = tuple(
            Graded(key, cluster.seals[key].digest, "grader", key.ordinal / 10, None, ())
            for key in members
        )
        cluster.jobs[job.name] = replace(job, finished=True, graded=graded)
    elif live:
        pod = live[pick % len(live)]
        changed = change(cluster, pod, event)
        if changed is None:
            del cluster.pods[pod.key]
        else:
            cluster.pods[pod.key] = changed


def change(cluster: ModelCluster, pod: PodSeen, event: str) -> PodSeen | None:
    """Return a Pod after an event; None when it is gone without a trace."""
    now = cluster.now
    running = Container(ContainerPhase.RUNNING, started_at=now)
    ended = Container(ContainerPhase.TERMINATED, exit_code=0, finished_at=now)
    acting = pod.agent is not None and pod.agent.phase is ContainerPhase.RUNNING
    over = pod.world is not None and (
        pod.world.restarts > 0 or pod.world.phase is ContainerPhase.TERMINATED
    )
    if over and event not in {"evict", "forget"}:
        return pod  # A world that crashed, or was ended, serves and seals nothing any more.
    match event:
        case "start" if not acting:
            return replace(pod, world=running, agent=running)
        case "seal" if acting:
            seal = SealSeen(End.CLOSED, f"seal-{pod.key}", f"snap-{pod.key}", 0, now - 1, now)
            cluster.seals[pod.key] = seal
            return replace(pod, world=ended, agent=ended, seal=seal)
        case "oom" if acting:
            seal = SealSeen(End.INTERRUPTED, f"seal-{pod.key}", f"snap-{pod.key}", None, now, now)
            cluster.seals[pod.key] = seal
            return replace(pod, world=ended, agent=replace(ended, reason="OOMKilled"), seal=seal)
        case "crash":
            return replace(pod, world=replace(running, restarts=1))
        case "delete" if acting:
            seal = SealSeen(End.INTERRUPTED, f"seal-{pod.key}", f"snap-{pod.key}", None, now, now)
            cluster.seals[pod.key] = seal
            return replace(pod, delete_requested_at=now, world=ended, seal=seal)
        case "delete":
            return replace(pod, delete_requested_at=now, world=ended)
        case "evict":
            return replace(pod, reason="Evicted", world=None, agent=None)
        case "forget":
            return None
        case _:
            return pod


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(
    total=st.integers(1, 5),
    events=st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 7)), max_size=60),
)
def test_whatever_happens_every_rollout_is_recorded_once_and_none_that_ended_runs_again(
    total: int, events: list[tuple[str, int]]
) -> None:
    cluster = ModelCluster(total)
    old: dict[AttemptKey, PodSeen] = {}
    for place, (event, pick) in enumerate(events):
        before = dict(cluster.records)
        play(cluster, event, pick, old)
        assert {n: cluster.records[n] for n in before} == before
        if place % 3 == 0:
            old = dict(cluster.pods)

    finish(cluster)

    assert sorted(cluster.records) == list(range(total))
    for ordinal, record in cluster.records.items():
        if record.reward is None:
            assert record.cause is not None
        else:
            assert record.reward == ordinal / 10
            assert record.seal == f"seal-{record.key}"


def finish(cluster: ModelCluster) -> None:
    """Let everything go well from here on; the Run must come to rest, and stay there."""
    for _ in range(40 * cluster.total):
        cluster.now += 70
        for key, pod in list(cluster.pods.items()):
            if pod.delete_requested_at is not None and cluster.is_over(key):
                del cluster.pods[key]
        complete = cluster.step()
        for event in ("start", "seal", "report"):
            for pick in range(4):
                play(cluster, event, pick, {})
        if complete and not cluster.pods and not cluster.jobs:
            assert decide(cluster.look(), cluster.now).actions == ()
            return
    raise AssertionError(f"the Run did not come to rest: {cluster}")


def test_an_unscored_rollout_names_the_cause_of_its_last_attempt() -> None:
    cluster = ModelCluster(1)
    for _ in range(MAX_ATTEMPTS):
        cluster.now += 100
        cluster.step()
        play(cluster, "evict", 0, {})
        cluster.step()
        cluster.step()

    assert cluster.records[0].cause is Cause.EVICTED
    assert [key.attempt for key in cluster.truth_started] == [1, 2, 3]
