"""From a Run and its plan to the documents of the programs, and from those back to what is seen.

For whatever runs them: Pods or processes. Pure.
"""

from collections.abc import Iterable, Sequence

from wavetank.api.moments import seconds
from wavetank.api.plan import Plan
from wavetank.api.run import RunSpec
from wavetank.api.wire import (
    BundleSet,
    GradeMember,
    GradeRecord,
    GradeRecords,
    GradeReport,
    GradeSpec,
    Seal,
    SessionSpec,
    TaskInfo,
    digest_of,
)
from wavetank.core import actions
from wavetank.core.causes import Cause
from wavetank.core.identity import AttemptKey, rollout_and_place
from wavetank.core.observed import End, Graded, Limits, ScoreSeen, SealSeen
from wavetank.core.plan import Selection, rollout_seed, select


def limits_of(spec: RunSpec) -> Limits:
    """Return what a Run allows, multipliers applied."""
    timeouts = spec.timeouts
    return Limits(
        parallelism=spec.parallelism,
        max_attempts=spec.retries.max_attempts,
        start_seconds=timeouts.start_seconds,
        verifier_seconds=timeouts.verifier_seconds * float(timeouts.verifier_multiplier),
    )


def selected(spec: RunSpec, tasks: Sequence[TaskInfo]) -> list[TaskInfo]:
    """Return the tasks that a Run takes, in the benchmark's order."""
    wanted = spec.tasks
    selection = Selection(wanted.include, wanted.exclude, wanted.limit, wanted.seed)
    kept = set(select([task.id for task in tasks], selection))
    return [task for task in tasks if task.id in kept]


def without_script(agent: str, tasks: Sequence[TaskInfo]) -> list[str]:
    """Return the ids of the tasks for which a replaying agent has no file."""
    if agent == "oracle":
        return [task.id for task in tasks if not task.has_solution]
    kind, _, script = agent.partition(":")
    if kind == "scripted":
        return [task.id for task in tasks if script not in task.scripts]
    return []


def session_of(plan: Plan, spec: RunSpec, key: AttemptKey, store: str) -> SessionSpec:
    """Return what the world of an attempt serves.

    Args:
        plan: Of the Run.
        spec: Of the Run.
        key: Which attempt it is.
        store: Base URL.
    """
    rollout, place = rollout_and_place(key.ordinal, len(plan.tasks))
    task = plan.tasks[place]
    allowed = task.timeout_seconds or spec.timeouts.rollout_seconds
    return SessionSpec(
        run=plan.run,
        ordinal=key.ordinal,
        attempt=key.attempt,
        task=task.id,
        rollout=rollout,
        seed=rollout_seed(task.id, rollout, spec.tasks.seed or 0),
        deadline_seconds=max(1, round(allowed * float(spec.timeouts.rollout_multiplier))),
        bundles=plan.bundles.agent,
        store=store,
    )


def grading_of(
    plan: Plan, members: Sequence[actions.GradeMember], generation: int, store: str
) -> GradeSpec:
    """Return what the graders of these sealed rollouts are told."""
    count = len(plan.tasks)
    return GradeSpec(
        run=plan.run,
        generation=generation,
        members=[
            GradeMember(
                ordinal=member.key.ordinal,
                attempt=member.key.attempt,
                task=plan.tasks[rollout_and_place(member.key.ordinal, count)[1]].id,
                seal=member.seal,
                snapshot=member.snapshot,
            )
            for member in members
        ],
        bundles=BundleSet(agent=plan.bundles.agent, grader=plan.bundles.grader),
        store=store,
    )


def seal_seen(seal: Seal | None, key: AttemptKey, run_uid: str) -> SealSeen | None:
    """Return a seal as the value that ``decide`` knows; None when it is of another attempt."""
    if seal is None or (seal.run, seal.ordinal, seal.attempt) != (
        run_uid,
        key.ordinal,
        key.attempt,
    ):
        return None
    return SealSeen(
        end=End(seal.end.value),
        digest=seal.digest(),
        snapshot=seal.snapshot,
        exit_code=seal.exit_code,
        started_at=seconds(seal.started_at),
        ended_at=seconds(seal.ended_at),
    )


def graded_of(
    plan: Plan, report: GradeReport, documents: GradeRecords, members: Iterable[AttemptKey]
) -> tuple[Graded, ...]:
    """Return the records that a judge reported, as far as they are about these members.

    Args:
        plan: Says which rewards are in range.
        report: What the judge said.
        documents: The records that the report is about; none of them counts if they are others.
        members: Whom it was asked to grade.
    """
    if digest_of(documents.canonical()) != report.sha256:
        return ()
    wanted = set(members)
    records: dict[AttemptKey, Graded] = {}
    for record in documents.records:
        key = AttemptKey(record.ordinal, record.attempt)
        if key in wanted:
            records.setdefault(key, _graded(plan, key, record))
    return tuple(records.values())


def _graded(plan: Plan, key: AttemptKey, record: GradeRecord) -> Graded:
    reward, cause = record.reward, record.cause
    scores = tuple(ScoreSeen(s.name, s.value, s.cause, s.message) for s in record.scores)
    if reward is not None and not plan.range_min <= reward <= plan.range_max:
        reward, cause = None, Cause.REWARD_INVALID
    if reward is None and cause is None:
        cause = Cause.REWARD_MISSING
    return Graded(key, record.seal, record.grader, reward, cause, scores)
