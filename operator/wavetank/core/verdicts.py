"""What a rollout Pod's state means: still starting, acting, ended with a seal, or failed why.

The order of the questions is the design: a seal that is good beats everything, the world's own
word comes next, then what Kubernetes says of the Pod, and time-outs come last.
"""

from dataclasses import dataclass

from wavetank.core.causes import Cause
from wavetank.core.lifecycle import Stage
from wavetank.core.observed import Container, ContainerPhase, End, Limits, PodSeen, SealSeen

SEAL_SLACK_SECONDS = 120.0
"""Beyond the world's own wait for the store: kubelet and operator need their time too."""

DELETE_SLACK_SECONDS = 120.0
"""A Pod that is still there so long after its deletion has no kubelet that could end it."""

NO_WORLD_CODE = 125
"""Of the agents' wrapper: the world did not answer, so there was nothing to act on."""

_STOPPED_CODES = frozenset({137, 143})
"""Of a container that was ended by SIGKILL or SIGTERM: what a kubelet does to one that it removes."""

IMAGE_REASONS = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
    }
)
"""Waiting reasons of the kubelet that mean: no image. Source: kubernetes pkg/kubelet/images."""


@dataclass(frozen=True)
class Verdict:
    """What is known of one attempt."""

    stage: Stage
    seal: SealSeen | None = None
    """Set exactly when the stage is ``ended``."""
    agent_cause: Cause | None = None
    """With ``ended``: what the agent did to itself."""
    cause: Cause | None = None
    """Set exactly when the attempt failed; the stage is then ``planned``."""
    message: str = ""
    look_again_at: float | None = None
    """A moment at which the verdict may change without any event."""


def judge_pod(pod: PodSeen, limits: Limits, now: float) -> Verdict:
    """Return what a Pod's state means at ``now``."""
    if pod.seal is not None:
        return judge_seal(pod.seal, pod)
    if pod.world_cause is not None:
        return _failed(pod.world_cause, pod.world_message or "the world gave no reason")
    if pod.world is not None and pod.world.restarts > 0:
        return _failed(
            Cause.WORLD_FAILED,
            f"the world server ended in mid-session ({_words(pod.world)}) and was started again",
        )
    gone = _removal(pod)
    world_over = pod.world is not None and pod.world.phase is ContainerPhase.TERMINATED
    if gone is not None:
        return _removed(pod, gone, over=world_over or pod.world is None, now=now)
    if world_over and pod.world is not None:
        return _failed(
            Cause.WORLD_FAILED, f"the world server ended without a seal ({_words(pod.world)})"
        )
    if pod.agent is not None and pod.agent.phase is ContainerPhase.TERMINATED:
        return _sealing(pod.agent, limits, now)
    if pod.agent is not None and pod.agent.phase is ContainerPhase.RUNNING:
        return _acting(pod, now)
    return _starting(pod, limits, now)


def judge_seal(seal: SealSeen, pod: PodSeen | None, *, is_proven: bool = False) -> Verdict:
    """Return what a seal means.

    Args:
        seal: The sealed end.
        pod: Its Pod as it is, or was last seen; None when it was never seen.
        is_proven: Whether the Pod's state was judged before, and well: it is being graded.
    """
    agent = None if pod is None else pod.agent
    if seal.end is End.INTERRUPTED and not is_proven:
        if agent is not None and agent.exit_code == NO_WORLD_CODE and seal.started_at is None:
            return _failed(Cause.WORLD_FAILED, "the world did not answer when the agent started")
        if pod is None:
            return _failed(Cause.POD_DELETED, "its Pod was deleted before the agent had ended")
        if not _agent_ended_first(pod):
            words = pod.message or pod.disruption or "its Pod was ended before the agent had ended"
            return _failed(_removal(pod) or Cause.POD_DELETED, words)
    return Verdict(Stage.ENDED, seal=seal, agent_cause=_agent_cause(seal, agent))


def judge_vanished(last: PodSeen | None) -> Verdict:
    """Return what it means that a Pod is gone without a seal.

    Args:
        last: The Pod as it was last seen; None when it never was.
    """
    words = "" if last is None else last.message or last.disruption
    cause = None if last is None else _removal(last)
    return _failed(cause or Cause.POD_DELETED, words or "its Pod is gone and left no sealed end")


def _agent_ended_first(pod: PodSeen) -> bool:
    """Tell whether the Pod's status proves that the agent ended before anyone ended the Pod."""
    agent = pod.agent
    if agent is None or agent.finished_at is None:
        return False
    # A Pod has a reason of its own only when it was ended as a whole.
    if pod.reason or not pod.has_grace:
        return False
    moments = [m for m in (pod.delete_requested_at, pod.disrupted_at) if m is not None]
    if not moments:
        return True
    # The agent's end is told by its node's clock, the removal by the API server's, which may be
    # behind: who was killed may have been killed by the removal.
    if agent.exit_code in _STOPPED_CODES and agent.reason != "OOMKilled":
        return False
    # Kubernetes' timestamps have whole seconds: the same second proves nothing.
    return agent.finished_at < min(moments)


def _agent_cause(seal: SealSeen, agent: Container | None) -> Cause | None:
    if agent is not None and agent.reason == "OOMKilled":
        return Cause.AGENT_OUT_OF_MEMORY
    if seal.end is End.DEADLINE:
        return Cause.AGENT_TIMEOUT
    exit_code = seal.exit_code
    if exit_code is None and agent is not None:
        exit_code = agent.exit_code
    return Cause.AGENT_FAILED if exit_code not in (None, 0) else None


_REMOVED = {
    "Evicted": Cause.EVICTED,
    "Preempting": Cause.EVICTED,
    "NodeLost": Cause.NODE_LOST,
    "NodeShutdown": Cause.NODE_LOST,
    "Terminated": Cause.NODE_LOST,
}
"""``status.reason`` of a Pod that its node, or the control plane for it, has removed. The last two
are a node's graceful shutdown. Source: kubernetes pkg/kubelet/eviction, preemption, nodeshutdown."""


def _removal(pod: PodSeen) -> Cause | None:
    """Return the cause when somebody is removing, or has removed, the whole Pod."""
    if pod.reason in _REMOVED:
        return _REMOVED[pod.reason]
    if pod.disrupted_at is not None:
        return Cause.EVICTED
    if pod.delete_requested_at is not None:
        return Cause.POD_DELETED
    return None


def _removed(pod: PodSeen, cause: Cause, *, over: bool, now: float) -> Verdict:
    """Judge a Pod that is being removed: its world may still seal an end that counts."""
    words = pod.message or pod.disruption or "its Pod was deleted"
    asked = pod.delete_requested_at if pod.delete_requested_at is not None else pod.disrupted_at
    if over or asked is None:
        return _failed(cause, words)
    if now >= asked + DELETE_SLACK_SECONDS:
        return _failed(Cause.NODE_LOST, f"{words}; no kubelet ended it within two minutes")
    stage = Stage.STARTING if pod.agent is None or pod.agent.started_at is None else Stage.ACTING
    return Verdict(stage, message=words, look_again_at=asked + DELETE_SLACK_SECONDS)


def _acting(pod: PodSeen, now: float) -> Verdict:
    """Judge a Pod whose agent runs: the world ends that, else the kubelet, else nobody is there."""
    if pod.ends_at is None:
        return Verdict(Stage.ACTING)
    until = pod.ends_at + DELETE_SLACK_SECONDS
    if now >= until:
        return _failed(Cause.NODE_LOST, "no kubelet ended it at its deadline")
    return Verdict(Stage.ACTING, look_again_at=until)


def _sealing(agent: Container, limits: Limits, now: float) -> Verdict:
    """Judge a Pod whose agent has ended while the world still seals."""
    until = (agent.finished_at or now) + limits.seal_wait_seconds + SEAL_SLACK_SECONDS
    if now >= until:
        return _failed(Cause.STORE_UNAVAILABLE, "the session's end could not be sealed in time")
    return Verdict(Stage.ACTING, look_again_at=until)


def _starting(pod: PodSeen, limits: Limits, now: float) -> Verdict:
    if (
        pod.setup is not None
        and pod.setup.phase is ContainerPhase.TERMINATED
        and pod.setup.exit_code
    ):
        return _failed(Cause.AGENT_SETUP_FAILED, f"the setup step ended ({_words(pod.setup)})")
    if pod.reason and all(_never_ran(each) for each in (pod.setup, pod.world, pod.agent)):
        return _failed(
            Cause.UNSCHEDULABLE, f"its node refused it: {pod.reason}: {pod.message}".rstrip(": ")
        )
    until = pod.created_at + limits.start_seconds
    cause, words = _start_problem(pod)
    if now < until:
        return Verdict(Stage.STARTING, message=words, look_again_at=until)
    return _failed(
        cause, f"not started within {limits.start_seconds:g} s: {words or 'no reason was given'}"
    )


def _never_ran(container: Container | None) -> bool:
    return container is None or container.phase is ContainerPhase.WAITING


def _start_problem(pod: PodSeen) -> tuple[Cause, str]:
    """Return the cause that a Pod would fail with if it never started, and Kubernetes' words."""
    if pod.scheduled_at is None and pod.unschedulable:
        return Cause.UNSCHEDULABLE, pod.unschedulable
    for container in (pod.setup, pod.world, pod.agent):
        if container is None or container.phase is not ContainerPhase.WAITING:
            continue
        if container.reason in IMAGE_REASONS:
            return Cause.IMAGE_PULL, container.message or container.reason
        if container.reason not in {"", "PodInitializing", "ContainerCreating"}:
            return Cause.START_TIMEOUT, f"{container.reason}: {container.message}".rstrip(": ")
    return Cause.START_TIMEOUT, ""


def _failed(cause: Cause, message: str) -> Verdict:
    return Verdict(Stage.PLANNED, cause=cause, message=message)


def _words(container: Container) -> str:
    """Return exit code, reason and message of a container as Kubernetes gave them."""
    code = (
        "exit code unknown" if container.exit_code is None else f"exit code {container.exit_code}"
    )
    return ", ".join(part for part in (code, container.reason, container.message) if part)
