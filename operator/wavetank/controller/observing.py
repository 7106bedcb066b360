"""Observe: Pods and Jobs from the watches, seals and gradings from the store, as one RunSeen.

Pods and Jobs are read before the ledger: what vanishes in between is in the ledger by then, or it
vanished unharvested.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from wavetank.api.moments import seconds
from wavetank.api.plan import Plan
from wavetank.api.run import Run
from wavetank.api.run_status import ResolvedImages
from wavetank.api.wire import GradeRecord, GradeRecords, GradeReport, Seal, digest_of
from wavetank.controller import snapshots
from wavetank.controller.memory import RunMemory
from wavetank.core.causes import Cause
from wavetank.core.identity import AttemptKey
from wavetank.core.observed import (
    Graded,
    JobSeen,
    Limits,
    PodSeen,
    RunSeen,
    ScoreSeen,
    SealSeen,
)
from wavetank.kube.client import Client
from wavetank.kube.objects import PODS, Manifest, uid_of
from wavetank.store.client import StoreClient, StoreNotFound, StoreUnavailable

RUN_UID_LABEL = "wavetank.dev/run-uid"
COMPONENT_LABEL = "app.kubernetes.io/component"
_MEMBERS = "wavetank.dev/members"
_TRY = "wavetank.dev/try"
_GENERATION = "wavetank.dev/generation"

_CREATED_SECONDS = 60.0
"""A Pod that we made and no watch told of for so long has come and gone."""


@dataclass(frozen=True)
class Sources:
    """Where is asked what the watches do not tell."""

    client: Client
    store: StoreClient


@dataclass(frozen=True)
class Children:
    """A Run's objects in the watches' copies."""

    rollouts: tuple[Manifest, ...]
    jobs: tuple[Manifest, ...]
    verifier_pods: tuple[Manifest, ...]


def children_of(pods: Iterable[Manifest], jobs: Iterable[Manifest], run_uid: str) -> Children:
    """Return the Pods and Jobs of a Run."""
    mine = [pod for pod in pods if _label(pod, RUN_UID_LABEL) == run_uid]
    return Children(
        rollouts=tuple(pod for pod in mine if _label(pod, COMPONENT_LABEL) == "rollout"),
        jobs=tuple(job for job in jobs if _label(job, RUN_UID_LABEL) == run_uid),
        verifier_pods=tuple(pod for pod in mine if _label(pod, COMPONENT_LABEL) == "verifier"),
    )


def limits_of(run: Run) -> Limits:
    """Return what a Run allows, multipliers applied."""
    timeouts = run.spec.timeouts
    return Limits(
        parallelism=run.spec.parallelism,
        max_attempts=run.spec.retries.max_attempts,
        start_seconds=timeouts.start_seconds,
        rollout_seconds=timeouts.rollout_seconds * float(timeouts.rollout_multiplier),
        verifier_seconds=timeouts.verifier_seconds * float(timeouts.verifier_multiplier),
    )


async def observe(
    run: Run, memory: RunMemory, children: Children, sources: Sources, now: float
) -> RunSeen:
    """Return what is to be seen of a Run now.

    Raises:
        ClusterError: If the store does not answer about a Pod that vanished: without its seal it
            cannot be told whether that rollout ended.
    """
    pods = _pods(memory, children.rollouts, now)
    vanished = await _vanished(memory, {pod.key for pod in pods}, sources.store)
    jobs = [await _job(memory, job, children.verifier_pods, sources) for job in children.jobs]
    _note_ended(memory, pods, now)
    _note_images(memory, (*children.rollouts, *children.verifier_pods))
    return RunSeen(
        total=len(memory.plan.tasks) * run.spec.k,
        limits=limits_of(run),
        suspended=run.spec.suspend,
        ledger=memory.ledger.view(),
        pods=tuple(pods),
        jobs=tuple(job for job in jobs if job is not None),
        seals={key: seal for key, seal in memory.seals.items() if key in vanished},
        vanished=vanished,
        ended_seen=memory.ended_seen,
        refused=memory.refused,
        blocked_until=memory.blocked_until,
        blocked_by=memory.blocked_by,
    )


def _pods(memory: RunMemory, raw: Sequence[Manifest], now: float) -> list[PodSeen]:
    """Return the rollout Pods: those the watch told of, and those we made a moment ago."""
    found: dict[AttemptKey, Manifest] = {}
    for pod in raw:
        key = snapshots.attempt_key(pod)
        if key is not None:
            found[key] = pod
            memory.created.pop(key, None)
    memory.seen |= set(found)
    for key, made in list(memory.created.items()):
        if now - made.at > _CREATED_SECONDS:
            memory.seen.add(key)
            del memory.created[key]
        else:
            found[key] = made.pod
    return [snapshots.pod_seen(pod, key, memory.uid) for key, pod in sorted(found.items())]


def _note_images(memory: RunMemory, pods: Iterable[Manifest]) -> None:
    """Keep the digests of the images that Pods were first seen to run."""
    known = memory.images
    if known.world and known.agent and known.verifier:
        return
    for pod in pods:
        ids = snapshots.image_ids(pod)
        known = ResolvedImages(
            world=known.world or ids.get("world"),
            agent=known.agent or ids.get("agent"),
            verifier=known.verifier or ids.get("judge"),
        )
    memory.images = known


async def _vanished(
    memory: RunMemory, present: set[AttemptKey], store: StoreClient
) -> frozenset[AttemptKey]:
    """Return the attempts whose Pod is gone though the ledger has nothing of them."""
    ledger = memory.ledger.view()
    gone = set()
    for key in (memory.seen | set(memory.seals)) - present:
        failed = any(f.key == key for f in ledger.failures.get(key.ordinal, ()))
        if key.ordinal in ledger.records or failed:
            continue
        gone.add(key)
        if key not in memory.asked and key not in memory.seals:
            seal = await fetch_seal(store, memory.uid, key)
            memory.asked.add(key)
            if seal is not None:
                memory.seals[key] = seal
    return frozenset(gone)


async def fetch_seal(store: StoreClient, run_uid: str, key: AttemptKey) -> SealSeen | None:
    """Return the seal of an attempt from the store; None when there is none."""
    path = f"/v1/runs/{run_uid}/{key.ordinal}/{key.attempt}/seal"
    try:
        seal = Seal.model_validate_json(await store.get(path))
    except (StoreNotFound, ValidationError):
        return None
    return snapshots.seal_seen(seal)


async def stored_seals(
    store: StoreClient, run_uid: str, wanted: Iterable[int]
) -> dict[AttemptKey, SealSeen]:
    """Return the seals of these ordinals that the store holds: read once, at the operator's start."""
    ordinals = set(wanted)
    seals: dict[AttemptKey, SealSeen] = {}
    for path in await store.list(f"/v1/runs/{run_uid}/"):
        parts = path.removeprefix(f"/v1/runs/{run_uid}/").split("/")
        if len(parts) != 3 or parts[2] != "seal" or int(parts[0]) not in ordinals:
            continue
        key = AttemptKey(int(parts[0]), int(parts[1]))
        seal = await fetch_seal(store, run_uid, key)
        if seal is not None:
            seals[key] = seal
    return seals


def _note_ended(memory: RunMemory, pods: Iterable[PodSeen], now: float) -> None:
    for pod in pods:
        if pod.seal is not None:
            memory.ended_seen.setdefault(pod.key, now)


async def _job(
    memory: RunMemory, job: Manifest, pods: Sequence[Manifest], sources: Sources
) -> JobSeen | None:
    """Return a verifier Job with what it reported; None when it is not of our form."""
    notes = job["metadata"].get("annotations") or {}
    members = snapshots.members_of(notes.get(_MEMBERS, ""))
    if not members or not str(notes.get(_TRY, "")).isdigit():
        return None
    uid = uid_of(job)
    own = [pod for pod in pods if _is_owned_by(pod, uid)]
    if snapshots.is_finished(job) and not any(snapshots.judge_is_over(pod) for pod in own):
        own = await pods_of_job(sources.client, job)
    report = next((r for pod in own if (r := snapshots.grade_report(pod)) is not None), None)
    pending = False
    if report is not None and uid not in memory.reports:
        try:
            memory.reports[uid] = await _records(
                memory.plan, memory.uid, report, members, sources.store
            )
        except StoreUnavailable:
            pending = True
    finished = report is not None or snapshots.is_finished(job)
    return JobSeen(
        name=job["metadata"]["name"],
        uid=uid,
        members=members,
        try_number=int(notes[_TRY]),
        created_at=seconds(job["metadata"].get("creationTimestamp")) or 0.0,
        finished=finished,
        timed_out=finished and snapshots.is_deadline(job, own),
        graded=memory.reports.get(uid, ()),
        pending=pending,
        problem=_job_problem(job, own, report, finished=finished),
    )


async def pods_of_job(client: Client, job: Manifest) -> list[Manifest]:
    """Return a Job's Pods as they are now: its end may be told before that of its Pod."""
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    selector = f"batch.kubernetes.io/job-name={name}"
    listing = await client.list(PODS, namespace, label_selector=selector)
    return [pod for pod in listing.items if _is_owned_by(pod, uid_of(job))]


def _job_problem(
    job: Manifest, pods: Sequence[Manifest], report: GradeReport | None, *, finished: bool
) -> str:
    if report is not None:
        return report.message
    if not finished:
        return snapshots.pod_problem(pods)
    return snapshots.judge_words(pods) or snapshots.job_words(job)


async def _records(
    plan: Plan,
    run_uid: str,
    report: GradeReport,
    members: Sequence[AttemptKey],
    store: StoreClient,
) -> tuple[Graded, ...]:
    """Return a report's records, as far as they are about the Job's own members."""
    if report.records is not None:
        documents = GradeRecords(records=report.records)
    else:
        path = f"/v1/runs/{run_uid}/grades/{report.sha256}"
        try:
            documents = GradeRecords.model_validate_json(await store.get(path))
        except (StoreNotFound, ValidationError):
            return ()
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


def _is_owned_by(pod: Manifest, uid: str) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == uid for owner in owners)


def _label(item: Manifest, name: str) -> str:
    return str((item["metadata"].get("labels") or {}).get(name, ""))
