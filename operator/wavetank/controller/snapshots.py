"""From raw JSON of Pods and Jobs to the frozen values that ``decide`` looks at.

Called by observe, with objects from the watches. Only the fields in use are read. Whatever an
untrusted container wrote is parsed here and nowhere else; what does not parse counts as absent.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import ValidationError

from wavetank.api.execution import seal_seen
from wavetank.api.moments import seconds
from wavetank.api.wire import CheckReport, GradeReport, Wire, WorldMessage
from wavetank.core.identity import AttemptKey
from wavetank.core.observed import Container, ContainerPhase, PodSeen
from wavetank.manifests.objects import NOTE_ATTEMPT, NOTE_MEMBERS, NOTE_ORDINAL, NOTE_TRY

Raw = Mapping[str, Any]
M = TypeVar("M", bound=Wire)

_PLAIN_NUMBER = re.compile(r"[0-9]{1,9}")
"""As the operator writes it: ``int`` would take signs, spaces and other scripts' digits too."""


def attempt_key(pod: Raw) -> AttemptKey | None:
    """Return which attempt a rollout Pod is; None when its annotations do not say so."""
    return _key(_note(pod, NOTE_ORDINAL), _note(pod, NOTE_ATTEMPT))


def _key(ordinal: str, attempt: str) -> AttemptKey | None:
    if not (_PLAIN_NUMBER.fullmatch(ordinal) and _PLAIN_NUMBER.fullmatch(attempt)):
        return None
    return AttemptKey(int(ordinal), int(attempt))


def _note(item: Raw, name: str) -> str:
    return str((item["metadata"].get("annotations") or {}).get(name, ""))


def members_of(text: str) -> tuple[AttemptKey, ...]:
    """Read the members annotation of a verifier Job; empty when it is not of that form.

    >>> members_of("12.1,13.2")
    (AttemptKey(ordinal=12, attempt=1), AttemptKey(ordinal=13, attempt=2))
    """
    members = [_key(*part.partition(".")[::2]) for part in text.split(",")]
    return () if None in members else tuple(key for key in members if key is not None)


def verifier_job_of(job: Raw) -> tuple[tuple[AttemptKey, ...], int] | None:
    """Return the members and the try of a verifier Job; None when its annotations are not so."""
    members, number = members_of(_note(job, NOTE_MEMBERS)), _note(job, NOTE_TRY)
    if not members or not _PLAIN_NUMBER.fullmatch(number):
        return None
    return members, int(number)


def pod_seen(pod: Raw, key: AttemptKey, run_uid: str) -> PodSeen:
    """Return what is known of a rollout Pod."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    conditions = {item.get("type"): item for item in status.get("conditions") or ()}
    scheduled = conditions.get("PodScheduled") or {}
    disrupted = conditions.get("DisruptionTarget") or {}
    is_disrupted = disrupted.get("status") == "True"
    is_scheduled = scheduled.get("status") == "True"
    containers = _statuses(status)
    message = world_message(containers.get("world"))
    return PodSeen(
        name=metadata["name"],
        uid=metadata["uid"],
        key=key,
        created_at=seconds(metadata.get("creationTimestamp")) or 0.0,
        scheduled_at=seconds(scheduled.get("lastTransitionTime")) if is_scheduled else None,
        unschedulable="" if is_scheduled else str(scheduled.get("message", "")),
        delete_requested_at=_delete_requested_at(metadata),
        has_grace=metadata.get("deletionGracePeriodSeconds") != 0,
        disrupted_at=seconds(disrupted.get("lastTransitionTime")) if is_disrupted else None,
        disruption=str(disrupted.get("message", "")) if is_disrupted else "",
        ends_at=_ends_at(pod),
        reason=str(status.get("reason", "")),
        message=str(status.get("message", "")),
        setup=_with_last_words(containers.get("solution")),
        world=_container(containers.get("world")),
        agent=_container(containers.get("agent")),
        seal=None if message is None else seal_seen(message.seal, key, run_uid),
        world_cause=None if message is None else message.cause,
        world_message="" if message is None else message.message,
    )


def world_message(status: Raw | None) -> WorldMessage | None:
    """Return the world container's message, of its first life where it was started again."""
    if status is None:
        return None
    for state in (status.get("lastState"), status.get("state")):
        message = _parse(WorldMessage, (state or {}).get("terminated"))
        if message is not None:
            return message
    return None


def grade_report(pod: Raw) -> GradeReport | None:
    """Return what the judge of a verifier Pod reported; None while, or if, it did not."""
    return _judge_message(GradeReport, pod)


def check_report(pod: Raw) -> CheckReport | None:
    """Return what the judge of a check Pod reported; None while, or if, it did not."""
    return _judge_message(CheckReport, pod)


def _judge_message(model: type[M], pod: Raw) -> M | None:
    judge = _statuses(pod.get("status") or {}).get("judge") or {}
    return _parse(model, (judge.get("state") or {}).get("terminated"))


def _parse(model: type[M], terminated: Raw | None) -> M | None:
    text = (terminated or {}).get("message")
    if not text:
        return None
    try:
        return model.model_validate_json(text)
    except ValidationError:
        return None


def pod_problem(pods: Iterable[Raw]) -> str:
    """Return Kubernetes' words on why a Job's Pods do not run; empty when they do."""
    for pod in pods:
        status = pod.get("status") or {}
        for condition in status.get("conditions") or ():
            if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
                return str(condition.get("message", ""))
        for container in _statuses(status).values():
            waiting = (container.get("state") or {}).get("waiting") or {}
            if waiting.get("message"):
                return str(waiting["message"])
        if status.get("reason"):
            return f"{status['reason']}: {status.get('message', '')}".rstrip(": ")
    return ""


def judge_words(pods: Iterable[Raw]) -> str:
    """Return how the judge ended, for a Job that reported nothing."""
    for pod in pods:
        judge = _container(_statuses(pod.get("status") or {}).get("judge"))
        if judge is not None and judge.phase is ContainerPhase.TERMINATED:
            parts = (f"the judge ended with exit code {judge.exit_code}", judge.reason)
            return ", ".join(part for part in parts if part)
    return ""


def judge_started_at(pods: Iterable[Raw]) -> float | None:
    """Return when the judge of a Job's Pods began; None while it did not."""
    judges = [_container(_statuses(pod.get("status") or {}).get("judge")) for pod in pods]
    return next((judge.started_at for judge in judges if judge and judge.started_at), None)


def judge_is_over(pod: Raw) -> bool:
    """Tell whether the judge of a Job's Pod has ended, so that its message is final."""
    judge = _container(_statuses(pod.get("status") or {}).get("judge"))
    return judge is not None and judge.phase is ContainerPhase.TERMINATED


def is_deadline(job: Raw, pods: Iterable[Raw]) -> bool:
    """Tell whether a Job's Pod was ended by its deadline."""
    reasons = [(pod.get("status") or {}).get("reason") for pod in pods]
    reasons += [c.get("reason") for c in (job.get("status") or {}).get("conditions") or ()]
    return "DeadlineExceeded" in reasons


def is_finished(job: Raw) -> bool:
    """Tell whether a Job is Complete or Failed."""
    return any(
        condition.get("type") in {"Complete", "Failed"} and condition.get("status") == "True"
        for condition in (job.get("status") or {}).get("conditions") or ()
    )


def _statuses(status: Raw) -> dict[str, Raw]:
    every = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return {str(item["name"]): item for item in every}


def _container(status: Raw | None) -> Container | None:
    if status is None:
        return None
    restarts = int(status.get("restartCount") or 0)
    state = status.get("state") or {}
    if "terminated" in state:
        ended = state["terminated"]
        return Container(
            ContainerPhase.TERMINATED,
            reason=str(ended.get("reason", "")),
            exit_code=ended.get("exitCode"),
            started_at=seconds(ended.get("startedAt")),
            finished_at=seconds(ended.get("finishedAt")),
            restarts=restarts,
        )
    if "running" in state:
        started = seconds(state["running"].get("startedAt"))
        last = (status.get("lastState") or {}).get("terminated") or {}
        return Container(
            ContainerPhase.RUNNING,
            reason=str(last.get("reason", "")),
            exit_code=last.get("exitCode"),
            started_at=started,
            restarts=restarts,
        )
    waiting = state.get("waiting") or {}
    return Container(
        ContainerPhase.WAITING,
        reason=str(waiting.get("reason", "")),
        message=str(waiting.get("message", "")),
        restarts=restarts,
    )


def _with_last_words(status: Raw | None) -> Container | None:
    """Return a container that runs Wavetank's own program: what it said last may be shown."""
    container = _container(status)
    ended = ((status or {}).get("state") or {}).get("terminated") or {}
    return container and replace(container, message=str(ended.get("message", "")).strip())


def _delete_requested_at(metadata: Raw) -> float | None:
    """Return when deletion was asked for: deletionTimestamp lies a grace period after it."""
    at = seconds(metadata.get("deletionTimestamp"))
    if at is None:
        return None
    return at - float(metadata.get("deletionGracePeriodSeconds") or 0)


def _ends_at(pod: Raw) -> float | None:
    """Return when the kubelet will end a Pod: it counts from when it took the Pod in."""
    started = seconds((pod.get("status") or {}).get("startTime"))
    limit = (pod.get("spec") or {}).get("activeDeadlineSeconds")
    return None if started is None or limit is None else started + float(limit)


def job_words(job: Raw) -> str:
    """Return why a Job failed, in Kubernetes' own words; empty when it does not say."""
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Failed" and condition.get("status") == "True":
            return f"{condition.get('reason', '')}: {condition.get('message', '')}".strip(": ")
    return ""


def image_ids(pod: Raw) -> dict[str, str]:
    """Return, by container, the digests of the images that run; only of those that are known."""
    statuses = _statuses(pod.get("status") or {})
    return {name: str(item["imageID"]) for name, item in statuses.items() if item.get("imageID")}
