"""Observe: Pods and Jobs from the watches, seals and gradings from the store, as one RunSeen.

Pods and Jobs are read before the ledger: what vanishes in between is in the ledger by then, or it
vanished unharvested.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from wavetank.api.execution import graded_of, limits_of, seal_seen
from wavetank.api.moments import seconds
from wavetank.api.run import Run
from wavetank.api.run_status import ResolvedImages
from wavetank.api.wire import GradeRecords, GradeReport, Seal
from wavetank.controller import snapshots
from wavetank.controller.memory import Created, RunMemory
from wavetank.core.causes import Cause
from wavetank.core.errors import ClusterError
from wavetank.core.identity import AttemptKey, rollout_pod_name, verifier_job_name
from wavetank.core.observed import (
    Graded,
    JobSeen,
    PodSeen,
    RunSeen,
    SealSeen,
)
from wavetank.kube.client import Client
from wavetank.kube.objects import PODS, Manifest, controller_of, uid_of
from wavetank.kube.watch import Watch
from wavetank.store.client import StoreClient, StoreNotFound, StoreRefused, StoreUnavailable

_CREATED_SECONDS = 60.0
"""A Pod that we made and no watch told of for so long is asked for by name."""


@dataclass(frozen=True)
class Sources:
    """Where is asked what the watches do not tell."""

    client: Client
    store: StoreClient


@dataclass(frozen=True)
class Children:
    """A Run's objects in the watches' copies."""

    pods: tuple[Manifest, ...]
    """Rollout Pods."""
    jobs: tuple[tuple[Manifest, tuple[Manifest, ...]], ...]
    """Verifier Jobs, each with its Pods."""


def children_of(pods: Watch, jobs: Watch, run_uid: str) -> Children:
    """Return the Pods and Jobs that a Run controls: who only bears its labels is none of its."""
    return Children(
        pods=tuple(pods.owned_by(run_uid)),
        jobs=tuple((job, tuple(pods.owned_by(uid_of(job)))) for job in jobs.owned_by(run_uid)),
    )


async def observe(
    run: Run, memory: RunMemory, children: Children, sources: Sources, now: float
) -> RunSeen:
    """Return what is to be seen of a Run now.

    Raises:
        ClusterError: If the store does not answer about a Pod that vanished: without its seal it
            cannot be told whether that rollout ended.
    """
    pods = await _pods(run, memory, children.pods, sources.client, now)
    vanished = await _vanished(memory, {pod.key for pod in pods}, sources.store)
    jobs = [await _job(run, memory, job, own, sources) for job, own in children.jobs]
    _forget_what_is_over(memory, children)
    for key in [*memory.seals, *(pod.key for pod in pods if pod.seal is not None)]:
        memory.ended_seen.setdefault(key, now)
    _note_images(memory, (*children.pods, *(pod for _, own in children.jobs for pod in own)))
    return RunSeen(
        total=len(memory.plan.tasks) * run.spec.k,
        limits=limits_of(run.spec),
        suspended=run.spec.suspend,
        ledger=memory.ledger.view(),
        pods=tuple(pods),
        jobs=tuple(job for job in jobs if job is not None),
        seals={key: seal for key, seal in memory.seals.items() if key in vanished},
        vanished=vanished,
        last_seen={key: pod for key, pod in memory.seen.items() if key in vanished},
        ended_seen=memory.ended_seen,
        refused=memory.refused,
        blocked_until=memory.blocked_until,
        blocked_by=memory.blocked_by,
    )


async def _pods(
    run: Run, memory: RunMemory, raw: Sequence[Manifest], client: Client, now: float
) -> list[PodSeen]:
    """Return the rollout Pods: those the watch told of, and those we made a moment ago."""
    meta = run.metadata
    found: dict[AttemptKey, Manifest] = {}
    for pod in raw:
        key = snapshots.attempt_key(pod)
        if key is None or pod["metadata"]["name"] != rollout_pod_name(meta.name, meta.uid, key):
            continue
        found[key] = pod
        memory.created.pop(key, None)
    for key, made in list(memory.created.items()):
        if now - made.at > _CREATED_SECONDS:
            # The watch may be late, or the Pod has come and gone: only the API server knows.
            there = await client.find(PODS, meta.namespace, made.pod["metadata"]["name"])
            if there is None or uid_of(there) != uid_of(made.pod):
                memory.seen[key] = snapshots.pod_seen(made.pod, key, memory.uid)
                del memory.created[key]
                continue
            memory.created[key] = made = Created(there, now)
        found[key] = made.pod
    pods = [snapshots.pod_seen(pod, key, memory.uid) for key, pod in sorted(found.items())]
    memory.seen |= {pod.key: pod for pod in pods if pod.key not in memory.created}
    return pods


def _forget_what_is_over(memory: RunMemory, children: Children) -> None:
    """Keep nothing of attempts whose word is in the ledger, or of Jobs that are gone."""
    is_over = memory.ledger.view().is_over
    jobs = {uid_of(job) for job, _ in children.jobs}
    memory.asked = {key for key in memory.asked if not is_over(key)}
    for known in (memory.seen, memory.seals, memory.ended_seen, memory.refused):
        for key in [key for key in known if is_over(key)]:
            del known[key]
    for uid in [uid for uid in memory.reports if uid not in jobs]:
        del memory.reports[uid]


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
    gone = _not_over(memory, {*memory.seen, *memory.seals} - present)
    if news := gone - memory.asked:
        # Another operator may have written what it had to say, and deleted it.
        await memory.ledger.refresh(key.ordinal for key in news)
        gone = _not_over(memory, gone)
    for key in sorted(gone - memory.asked):
        if key not in memory.seals:
            seal = await fetch_seal(store, memory.uid, key)
            if seal is not None:
                memory.seals[key] = seal
        memory.asked.add(key)
    return frozenset(gone)


def _not_over(memory: RunMemory, keys: set[AttemptKey]) -> set[AttemptKey]:
    ledger = memory.ledger.view()
    return {key for key in keys if not ledger.is_over(key)}


async def fetch_seal(store: StoreClient, run_uid: str, key: AttemptKey) -> SealSeen | None:
    """Return the seal of an attempt from the store; None when there is none.

    Raises:
        ClusterError: If the store does not give it out.
    """
    path = f"/v1/runs/{run_uid}/{key.ordinal}/{key.attempt}/seal"
    try:
        seal = Seal.model_validate_json(await store.get(path))
    except (StoreNotFound, ValidationError):
        return None
    except StoreRefused as error:
        raise ClusterError(f"{path}: {error}") from error
    return seal_seen(seal, key, run_uid)


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


async def _job(
    run: Run, memory: RunMemory, job: Manifest, pods: Sequence[Manifest], sources: Sources
) -> JobSeen | None:
    """Return a verifier Job with what it reported; None when it is not one that we make."""
    form, meta = snapshots.verifier_job_of(job), run.metadata
    if form is None or job["metadata"]["name"] != verifier_job_name(
        meta.name, meta.uid, form[0], memory.ledger.generation, form[1]
    ):
        return None
    (members, try_number), uid = form, uid_of(job)
    if snapshots.is_finished(job) and not any(snapshots.judge_is_over(pod) for pod in pods):
        pods = await pods_of_job(sources.client, job)
    report = next((r for pod in pods if (r := snapshots.grade_report(pod)) is not None), None)
    problem = ""
    if report is not None and uid not in memory.reports:
        try:
            memory.reports[uid] = await _records(memory, report, members, sources.store)
        except (StoreUnavailable, StoreRefused) as error:
            problem = f"the records of verifier Job {job['metadata']['name']}: {error}"
    finished = report is not None or snapshots.is_finished(job)
    return JobSeen(
        name=job["metadata"]["name"],
        uid=uid,
        members=members,
        try_number=try_number,
        created_at=seconds(job["metadata"].get("creationTimestamp")) or 0.0,
        started_at=snapshots.judge_started_at(pods),
        finished=finished,
        store_away=report is not None and report.cause is Cause.STORE_UNAVAILABLE,
        timed_out=finished and snapshots.is_deadline(job, pods),
        graded=memory.reports.get(uid, ()),
        pending=bool(problem),
        problem=problem or _job_problem(job, pods, report, finished=finished),
    )


async def pods_of_job(client: Client, job: Manifest) -> list[Manifest]:
    """Return a Job's Pods as they are now: its end may be told before that of its Pod."""
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    selector = f"batch.kubernetes.io/job-name={name}"
    listing = await client.list(PODS, namespace, label_selector=selector)
    return [
        pod
        for pod in listing.items
        if (owner := controller_of(pod)) is not None and owner.uid == uid_of(job)
    ]


def _job_problem(
    job: Manifest, pods: Sequence[Manifest], report: GradeReport | None, *, finished: bool
) -> str:
    if report is not None:
        return report.message
    if not finished:
        return snapshots.pod_problem(pods)
    return snapshots.judge_words(pods) or snapshots.job_words(job)


async def _records(
    memory: RunMemory, report: GradeReport, members: Sequence[AttemptKey], store: StoreClient
) -> tuple[Graded, ...]:
    """Return a report's records, as far as they are about the Job's own members."""
    if report.records is not None:
        documents = GradeRecords(records=report.records)
    else:
        path = f"/v1/runs/{memory.uid}/grades/{report.sha256}"
        try:
            documents = GradeRecords.model_validate_json(await store.get(path))
        except (StoreNotFound, ValidationError):
            return ()
    return graded_of(memory.plan, report, documents, members)
