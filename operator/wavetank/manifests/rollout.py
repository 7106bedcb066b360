"""The Pod of one attempt at a rollout: a world, and the agent that acts in it.

```
initContainers  solution   only for oracle and scripted: fetches the calls to replay
                world      native sidecar: serves the session, seals its end
containers      agent      the wrapper around the agent's command
```
"""

from dataclasses import dataclass, field

from wavetank.api.fields import Resources
from wavetank.api.run import PodOverrides
from wavetank.api.wire import (
    SESSION_ENV,
    SOLUTION_ENV,
    TOKEN_FILE_ENV,
    BundleSet,
    SessionSpec,
    SolutionSpec,
)
from wavetank.core.identity import AttemptKey, rollout_pod_name, tokens_name
from wavetank.manifests.objects import (
    NOTE_ATTEMPT,
    NOTE_ORDINAL,
    NOTE_ROLLOUT,
    NOTE_TASK,
    Component,
    Manifest,
    RunOwner,
    TokenKey,
    metadata,
)
from wavetank.manifests.pod import (
    TMP,
    TOKEN_FILE,
    TOKEN_FOLDER,
    Amounts,
    Container,
    Mount,
    PodSpec,
    container,
    memory_scratch,
    pod_spec,
    resources,
    scratch,
    token_volume,
)

WORLD_PORT = 8080
SOLUTION_FOLDER = "/solution"
GRACE_SECONDS = 60
"""For an interrupted world to seal, and for an agent that crashed to leave its world time."""
BACKSTOP_SECONDS = 120
"""Added to all deadlines of Wavetank's own: Kubernetes' deadline gives a sidecar 2 s only."""

_WORLD = Amounts(cpu=("50m", "1"), memory=("96Mi", "512Mi"), disk=("64Mi", "2Gi"))
_AGENT = Amounts(cpu=("50m", "1"), memory=("64Mi", "512Mi"), disk=("64Mi", "1Gi"))
_SOLUTION = Amounts(cpu=("50m", "1"), memory=("64Mi", "256Mi"), disk=("16Mi", "256Mi"))
AGENT_TMP = "256Mi"
"""The agent's /tmp, in memory: an eviction would make a failure of the cluster of its own doing."""
_STATE = "1Gi"
"""The world's databases and the snapshot that is packed from them."""


@dataclass(frozen=True)
class AgentChoice:
    """The agent that acts."""

    command: tuple[str, ...]
    """What the wrapper runs."""
    image: str
    solution: SolutionSpec | None = None
    """What to fetch for it before it starts; None for agents that find their own way."""


def agent_choice(name: str, task: str, image: str, bundles: BundleSet, store: str) -> AgentChoice:
    """Return the agent of a Run for one task.

    Args:
        name: ``spec.agent.name``: ``oracle``, ``nop`` or ``scripted:<name>``.
        task: Id of the task.
        image: Image of the agent's container.
        bundles: Of the plan; the solutions part is used.
        store: Base URL.

    Raises:
        ValueError: If there is no such agent.
    """
    kind, _, script = name.partition(":")
    match kind:
        case "nop":
            return AgentChoice(_module("agents.nop"), image)
        case "oracle":
            path = f"solutions/{task}.json"
        case "scripted":
            path = f"scripts/{script}/{task}.json"
        case _:
            raise ValueError(f"'{name}' is no agent. Name one of: oracle, nop, scripted:<name>.")
    solution = SolutionSpec(store=store, bundles=bundles.solutions, path=path)
    return AgentChoice(_module("agents.replay"), image, solution)


@dataclass(frozen=True, kw_only=True)
class RolloutPod:
    """All that a rollout's Pod depends on."""

    run: RunOwner
    session: SessionSpec
    """Also says which attempt this is."""
    agent: AgentChoice
    world_image: str
    start_seconds: int
    """From creation until the agent acts."""
    overrides: PodOverrides = field(default_factory=PodOverrides)
    """Of the Run."""
    world_resources: Resources | None = None
    """Of the World."""
    runtime_class_name: str | None = None
    """Of the World; the Run's own comes first."""

    @property
    def key(self) -> AttemptKey:
        """Return which attempt this is."""
        return AttemptKey(self.session.ordinal, self.session.attempt)


def rollout_pod(pod: RolloutPod) -> Manifest:
    """Return the Pod of one attempt."""
    run, session = pod.run, pod.session
    notes = {
        NOTE_ORDINAL: str(session.ordinal),
        NOTE_ATTEMPT: str(session.attempt),
        NOTE_TASK: session.task,
        NOTE_ROLLOUT: str(session.rollout),
    }
    meta = metadata(run, Component.ROLLOUT, rollout_pod_name(run.name, run.uid, pod.key), notes)
    meta["labels"] = dict(pod.overrides.labels) | meta["labels"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": pod_spec(
            PodSpec(
                init_containers=[*_solution(pod), _world(pod)],
                containers=[_agent(pod)],
                volumes=_volumes(pod),
                deadline_seconds=pod.start_seconds
                + session.deadline_seconds
                + session.seal_wait_seconds
                + GRACE_SECONDS
                + BACKSTOP_SECONDS,
                grace_seconds=GRACE_SECONDS,
                overrides=pod.overrides,
                runtime_class_name=pod.runtime_class_name,
            )
        ),
    }


def _world(pod: RolloutPod) -> Manifest:
    built = container(
        Container(
            name="world",
            image=pod.world_image,
            command=_module("worlds"),
            env={
                SESSION_ENV: pod.session.canonical().decode(),
                TOKEN_FILE_ENV: TOKEN_FILE,
            },
            mounts=(
                Mount("state", "/state"),
                Mount("world-tmp", "/tmp"),  # noqa: S108 - a mount of its own
                Mount("act-token", TOKEN_FOLDER, read_only=True),
            ),
            resources=resources(_WORLD, pod.world_resources),
        )
    )
    return built | {
        "restartPolicy": "Always",
        "startupProbe": {
            "httpGet": {"path": "/healthz", "port": WORLD_PORT},
            # The kubelet knows no shorter period, and each period is time that a rollout waits.
            "periodSeconds": 1,
            "timeoutSeconds": 3,
            # The operator gives up first: a kubelet that does would restart the world.
            "failureThreshold": pod.start_seconds + BACKSTOP_SECONDS,
        },
    }


def _agent(pod: RolloutPod) -> Manifest:
    mounts = [Mount("agent-tmp", "/tmp")]  # noqa: S108 - a mount of its own
    env = {}
    if pod.agent.solution is not None:
        env["WAVETANK_SOLUTION_FILE"] = f"{SOLUTION_FOLDER}/calls.json"
        mounts.append(Mount("solution", SOLUTION_FOLDER, read_only=True))
    return container(
        Container(
            name="agent",
            image=pod.agent.image,
            command=(*_module("agents.wrapper"), "--", *pod.agent.command),
            env=env,
            mounts=tuple(mounts),
            resources=resources(_AGENT, pod.overrides.resources),
        )
    )


def _solution(pod: RolloutPod) -> list[Manifest]:
    if pod.agent.solution is None:
        return []
    built = container(
        Container(
            name="solution",
            image=pod.world_image,
            command=_module("agents.solution"),
            env={
                SOLUTION_ENV: pod.agent.solution.canonical().decode(),
                TOKEN_FILE_ENV: TOKEN_FILE,
            },
            mounts=(
                Mount("solution", SOLUTION_FOLDER),
                Mount("solution-tmp", "/tmp"),  # noqa: S108 - a mount of its own
                Mount("solutions-token", TOKEN_FOLDER, read_only=True),
            ),
            resources=resources(_SOLUTION, None),
        )
    )
    # It is Wavetank's own program, so its last words may be shown; the agent's may not.
    return [built | {"terminationMessagePolicy": "FallbackToLogsOnError"}]


def _volumes(pod: RolloutPod) -> list[Manifest]:
    secret = tokens_name(pod.run.name, pod.run.uid)
    volumes = [
        scratch("state", _STATE),
        scratch("world-tmp", TMP),
        memory_scratch("agent-tmp", AGENT_TMP),
        token_volume("act-token", secret, TokenKey.ACT),
    ]
    if pod.agent.solution is not None:
        volumes += [
            scratch("solution", "64Mi"),
            scratch("solution-tmp", "128Mi"),
            token_volume("solutions-token", secret, TokenKey.SOLUTIONS),
        ]
    return volumes


def _module(name: str) -> tuple[str, ...]:
    return ("python", "-m", f"wavetank.{name}")
