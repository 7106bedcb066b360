"""A Run on a model cluster, under every order of events that Hypothesis can think of.

The model plays API server, kubelet, world, judge and store, and two operators at once. Each of them
looks when it likes, sees the Pods as they were some time ago and the ledger as it last read it, and
may die after any of its actions. What really happened is in ``Cluster.started``: the witness is
never an operator's own word.
"""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wavetank.api.ledger import key_of, ledger_of
from wavetank.core.actions import (
    Action,
    DeleteJob,
    DeletePod,
    Entry,
    StartGrading,
    StartRollout,
    WriteLedger,
)
from wavetank.core.causes import Cause
from wavetank.core.decide import decide
from wavetank.core.gradings import GRADING_TRIES
from wavetank.core.identity import AttemptKey
from wavetank.core.lifecycle import Stage, check_step
from wavetank.core.observed import (
    Container,
    ContainerPhase,
    End,
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
LIMITS = Limits(parallelism=2, max_attempts=MAX_ATTEMPTS)

Pods = dict[AttemptKey, PodSeen]


@dataclass
class Cluster:
    """The world outside the operators."""

    total: int
    now: float = 1_000.0
    suspended: bool = False
    history: list[Pods] = field(default_factory=lambda: [{}])
    """The Pods after each change; the last are those of now."""
    seals: dict[AttemptKey, SealSeen] = field(default_factory=dict)
    jobs: dict[str, JobSeen] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)
    started: list[AttemptKey] = field(default_factory=list)

    @property
    def pods(self) -> Pods:
        return self.history[-1]

    @property
    def records(self) -> dict[int, Record]:
        return dict(self.ledger().records)

    def ledger(self) -> Ledger:
        return ledger_of(self.entries.values())

    def change(self, key: AttemptKey, pod: PodSeen | None) -> None:
        """Put a Pod as it is now, or take it away."""
        others = {k: p for k, p in self.pods.items() if k != key}
        self.history.append(others if pod is None else {**others, key: pod})

    def create(self, key: AttemptKey) -> None:
        if key in self.pods:
            return  # AlreadyExists, and ours: the same thing
        assert key.attempt <= MAX_ATTEMPTS
        for other in self.started:
            sealed = self.seals.get(other)
            if other.ordinal == key.ordinal and sealed is not None:
                assert sealed.end is End.INTERRUPTED, "a rollout that ended well is never run again"
        self.started.append(key)
        waiting = Container(ContainerPhase.WAITING, "PodInitializing")
        name = f"{key.ordinal}-a{key.attempt}"
        pod = PodSeen(name, f"uid-{name}", key, self.now, self.now, world=waiting, agent=waiting)
        self.change(key, pod)

    def write(self, entries: list[Entry]) -> None:
        """Add entries; what is there stays."""
        for entry in entries:
            assert key_of(entry) not in self.entries, "compare-and-swap let an old view write"
            self.entries[key_of(entry)] = entry


class Operator:
    """One process: what it remembers can be lost, and is not what another one remembers."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.position = len(cluster.history) - 1
        self.view = cluster.ledger()
        self.known = set(cluster.entries)
        self.seen: Pods = {}
        self.made: set[AttemptKey] = set()
        # As the controller does when it opens a Run: the seals of what is not recorded.
        self.gone = {k for k in cluster.seals if k.ordinal not in self.view.records}
        self.asked: set[AttemptKey] = set()
        self.stages: dict[int, Stage] = {}

    def catch_up(self) -> None:
        """Hear what the watch has to tell; it tells of every Pod, however short its life."""
        for pods in self.cluster.history[self.position :]:
            self.seen |= pods
            self.made -= set(pods)
        self.position = len(self.cluster.history) - 1

    def refresh(self) -> None:
        self.view, self.known = self.cluster.ledger(), set(self.cluster.entries)

    def observe(self) -> RunSeen:
        cluster = self.cluster
        pods = {**cluster.history[self.position]}
        self.seen |= pods
        for key in self.made - set(pods):
            # No watch told of it yet: the API server is asked.
            if key in cluster.pods:
                pods[key] = cluster.pods[key]
            else:
                self.gone.add(key)
        gone = {k for k in {*self.seen, *self.gone} - set(pods) if not self.view.is_over(k)}
        if gone - self.asked:
            self.refresh()
            self.asked |= gone
        gone = {key for key in gone if not self.view.is_over(key)}
        return RunSeen(
            total=cluster.total,
            limits=LIMITS,
            suspended=cluster.suspended,
            ledger=self.view,
            pods=tuple(pods.values()),
            jobs=tuple(cluster.jobs.values()),
            seals={key: cluster.seals[key] for key in gone if key in cluster.seals},
            vanished=frozenset(gone),
            last_seen={key: pod for key, pod in self.seen.items() if key in gone},
            ended_seen=dict.fromkeys(cluster.seals, cluster.now - 10),
        )

    def look(self, die_after: int = 99) -> bool:
        """Observe, decide, apply; return whether the Run is held for complete."""
        seen = self.observe()
        decision = decide(seen, self.cluster.now)
        for ordinal, before in self.stages.items():
            after = decision.stages.get(ordinal, Stage.PLANNED)
            check_step(ordinal, before, Stage.RECORDED if ordinal in seen.ledger.records else after)
        self.stages = {n: s for n, s in decision.stages.items() if s is not Stage.RECORDED}
        for action in decision.actions[:die_after]:
            self.apply(action)
        return decision.complete

    def apply(self, action: Action) -> None:
        cluster = self.cluster
        match action:
            case WriteLedger(entries):
                if self.known != set(cluster.entries):
                    self.refresh()  # the Conflict of a compare-and-swap on an old version
                cluster.write([e for e in entries if key_of(e) not in self.known])
                self.refresh()
            case StartRollout(key):
                self.refresh()
                if not self.view.is_over(key):
                    cluster.create(key)
                    self.made.add(key)
            case StartGrading(members, try_number):
                self.refresh()
                keys = tuple(member.key for member in members)
                if any(self.view.is_over(key) for key in keys):
                    return
                assert all(cluster.seals[member.key].digest == member.seal for member in members)
                assert try_number <= GRADING_TRIES
                name = f"{try_number}:{','.join(map(str, keys))}"
                job = JobSeen(name, name, keys, try_number, cluster.now, started_at=cluster.now)
                cluster.jobs.setdefault(name, job)
            case DeletePod(_, uid):
                for pod in [pod for pod in cluster.pods.values() if pod.uid == uid]:
                    assert cluster.ledger().is_over(pod.key), "what a Pod says is written first"
                    cluster.change(pod.key, None)
            case DeleteJob(_, uid):
                cluster.jobs.pop(uid, None)


POD_EVENTS = ("start", "seal", "oom", "crash", "delete", "evict", "forget")
JOB_EVENTS = ("report", "die", "null", "mix up", "store away")
USER_EVENTS = ("suspend", "resume", "raise k")
LOOK_EVENTS = ("look", "look late", "halt", "restart")


def play(cluster: Cluster, operators: list[Operator], event: str, pick: int) -> None:
    """Let one thing happen."""
    cluster.now += 1
    number = pick % len(operators)
    match event:
        case "look":
            operators[number].catch_up()
            operators[number].look()
        case "look late":
            operators[number].look()
        case "halt":
            operators[number].look(die_after=pick // 2)
            operators[number] = Operator(cluster)
        case "restart":
            operators[number] = Operator(cluster)
        case "suspend" | "resume":
            cluster.suspended = event == "suspend"
        case "raise k":
            cluster.total = min(cluster.total + 1, 7)
        case _ if event in JOB_EVENTS:
            play_job(cluster, event, pick)
        case _:
            play_pod(cluster, event, pick)


def play_job(cluster: Cluster, event: str, pick: int) -> None:
    jobs = [job for job in cluster.jobs.values() if not job.finished]
    if not jobs:
        return
    job = jobs[pick % len(jobs)]
    members = job.members[: pick % len(job.members)] if event == "die" else job.members
    graded = tuple(
        Graded(
            key,
            "another seal" if event == "mix up" else cluster.seals[key].digest,
            "grader",
            None if event == "null" else key.ordinal / 10,
            Cause.REWARD_MISSING if event == "null" else None,
            (),
        )
        for key in members
    )
    is_away = event == "store away"
    cluster.jobs[job.uid] = replace(
        job, finished=True, store_away=is_away, graded=() if is_away else graded
    )


def play_pod(cluster: Cluster, event: str, pick: int) -> None:
    live = [pod for pod in cluster.pods.values() if pod.seal is None and pod.reason == ""]
    if live:
        pod = live[pick % len(live)]
        cluster.change(pod.key, changed(cluster, pod, event))


def changed(cluster: Cluster, pod: PodSeen, event: str) -> PodSeen | None:
    """Return a Pod after an event; None when it is gone without a trace."""
    now = cluster.now
    running = Container(ContainerPhase.RUNNING, started_at=now)
    ended = Container(ContainerPhase.TERMINATED, exit_code=0, finished_at=now)
    told = replace(ended, exit_code=143)
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
            return replace(pod, world=ended, agent=ended, seal=sealed(cluster, pod, End.CLOSED))
        case "oom" if acting:
            seal = sealed(cluster, pod, End.INTERRUPTED)
            return replace(pod, world=ended, agent=replace(ended, reason="OOMKilled"), seal=seal)
        case "crash":
            return replace(pod, world=replace(running, restarts=1))
        case "delete" if acting:
            seal = sealed(cluster, pod, End.INTERRUPTED)
            return replace(pod, delete_requested_at=now, world=ended, agent=told, seal=seal)
        case "delete":
            return replace(pod, delete_requested_at=now, world=ended)
        case "evict":
            return replace(pod, reason="Evicted", world=None, agent=None)
        case "forget":
            return None
        case _:
            return pod


def sealed(cluster: Cluster, pod: PodSeen, end: End) -> SealSeen:
    seal = SealSeen(end, f"seal-{pod.key}", f"snap-{pod.key}", 0, cluster.now - 1, cluster.now)
    return cluster.seals.setdefault(pod.key, seal)


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(
    total=st.integers(1, 5),
    events=st.lists(
        st.tuples(
            st.sampled_from((*LOOK_EVENTS * 2, *POD_EVENTS, *JOB_EVENTS, *USER_EVENTS)),
            st.integers(0, 7),
        ),
        max_size=80,
    ),
)
def test_whatever_happens_every_rollout_is_recorded_once_and_none_that_ended_runs_again(
    total: int, events: list[tuple[str, int]]
) -> None:
    cluster = Cluster(total)
    operators = [Operator(cluster), Operator(cluster)]
    for event, pick in events:
        before = dict(cluster.entries)
        play(cluster, operators, event, pick)
        assert {key: cluster.entries[key] for key in before} == before

    cluster.suspended = False
    finish(cluster, operators)

    assert sorted(cluster.records) == list(range(cluster.total))
    for ordinal, record in cluster.records.items():
        if record.reward is None:
            assert record.cause is not None
        else:
            assert (record.cause, record.reward) == (None, ordinal / 10)
            assert record.seal == f"seal-{record.key}"


def finish(cluster: Cluster, operators: list[Operator]) -> None:
    """Let everything go well from here on; the Run must come to rest, and stay there."""
    for _ in range(40 * cluster.total):
        cluster.now += 70
        for key, pod in list(cluster.pods.items()):
            if pod.delete_requested_at is not None and cluster.ledger().is_over(key):
                cluster.change(key, None)
        complete = True
        for operator in operators:
            operator.catch_up()
            complete = operator.look() and complete
        for event in ("start", "seal", "report"):
            for pick in range(4):
                play(cluster, operators, event, pick)
        if complete and not cluster.pods and not cluster.jobs:
            for operator in operators:
                operator.catch_up()
                assert decide(operator.observe(), cluster.now).actions == ()
            return
    raise AssertionError(f"the Run did not come to rest: {cluster}")


@pytest.mark.parametrize("event", ["evict", "crash", "forget"])
def test_an_unscored_rollout_names_the_cause_of_its_last_attempt(event: str) -> None:
    cluster = Cluster(1)
    operators = [Operator(cluster)]
    for _ in range(MAX_ATTEMPTS):
        cluster.now += 100
        for step in ("look", event, "look", "look"):
            play(cluster, operators, step, 0)

    causes = {
        "evict": (Cause.EVICTED, 3),
        "crash": (Cause.WORLD_FAILED, 2),
        "forget": (Cause.POD_DELETED, 3),
    }
    cause, attempts = causes[event]
    assert cluster.records[0].cause is cause
    assert [key.attempt for key in cluster.started] == list(range(1, attempts + 1))
