"""The kind Run: one execution of a benchmark, every task k times."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from wavetank.api.fields import (
    REMEDY,
    ClassName,
    Model,
    ObjectMeta,
    ObjectName,
    ObjectRef,
    Resources,
    checked,
    named_by,
    rules,
)
from wavetank.api.fields import ImageName as ImageName
from wavetank.api.run_status import RunStatus

NAME_LENGTH = 200
"""Longest name of a Run: its ledger's and results' names are this and up to 53 characters more."""

RESERVED_LABELS = ("wavetank.dev/", "app.kubernetes.io/", "argocd.argoproj.io/")
"""Label prefixes that are Wavetank's own, or that would let Argo CD prune a Run's Pods."""

Glob = Annotated[
    str,
    Field(
        min_length=1,
        max_length=128,
        pattern=r"^[A-Za-z0-9_*?\[\]!-]+$",
        json_schema_extra={
            REMEDY: "must be a task id or a pattern with *, ? or [...], like close_*"
        },
    ),
]
Multiplier = Annotated[
    str,
    Field(
        max_length=8,
        pattern=r"^([1-9][0-9]?(\.[0-9]{1,3})?|0\.[0-9]{0,2}[1-9])$",
        json_schema_extra={
            REMEDY: 'must be a decimal number above 0 and below 100 as a string, like "1.5"'
        },
    ),
]
LabelText = Annotated[str, Field(max_length=63)]
_LABEL_VALUE = "^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$"
_LABEL_KEY = "^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$"
_LABEL_RULES = (
    (
        f"self.all(key, size(key) <= 317 && key.matches('{_LABEL_KEY}'))",
        "must have label keys: an optional domain and '/', then at most 63 letters, digits, "
        "'-', '_' and '.'",
    ),
    (
        f"self.all(key, self[key].matches('{_LABEL_VALUE}'))",
        "must have label values: at most 63 letters, digits, '-', '_' and '.', "
        "a letter or digit at both ends",
    ),
)


class Agent(Model):
    """The program that acts in a rollout's Pod."""

    name: Annotated[
        str,
        Field(
            max_length=80,
            pattern=r"^(oracle|nop|scripted:[A-Za-z0-9_.-]{1,60})$",
            json_schema_extra={
                REMEDY: "must be oracle (replays solutions), nop (does nothing) "
                "or scripted:<name> (replays scripts/<name>)"
            },
        ),
    ]
    """name of the agent: oracle, nop, or scripted:<name of a folder in scripts/>."""
    image: ImageName | None = None
    """image that the agent's container runs, instead of Wavetank's own."""


class TaskSelection(Model):
    """Which tasks of the benchmark are run."""

    include: Annotated[tuple[Glob, ...], Field(max_length=100)] = ()
    """include keeps the tasks whose id matches one of these patterns; all without any."""
    exclude: Annotated[tuple[Glob, ...], Field(max_length=100)] = ()
    """exclude leaves out the tasks whose id matches one of these patterns."""
    limit: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """limit keeps at most this many of the tasks that are left, in the benchmark's order."""
    seed: Annotated[int, Field(ge=0, le=2_147_483_647)] | None = None
    """seed shuffles the tasks before limit is applied; the same seed gives the same tasks.
    Worlds draw their randomness from it too; 0 when it is not given."""


class Timeouts(Model):
    """How long the steps of a rollout may take."""

    rollout_seconds: Annotated[int, Field(ge=1, le=86_400)] = 900
    """rolloutSeconds that an agent may act, where its task says nothing. 900 when not given."""
    verifier_seconds: Annotated[int, Field(ge=1, le=86_400)] = 600
    """verifierSeconds that the grading of one rollout may take. 600 when not given."""
    start_seconds: Annotated[int, Field(ge=1, le=86_400)] = 300
    """startSeconds from a Pod's creation until its agent acts; then it counts as StartTimeout.
    300 when not given."""
    rollout_multiplier: Multiplier = "1"
    """rolloutMultiplier stretches rolloutSeconds and the tasks' own timeouts. 1 when not given."""
    verifier_multiplier: Multiplier = "1"
    """verifierMultiplier stretches verifierSeconds. 1 when not given."""


class Retries(Model):
    """What happens after failures of the infrastructure."""

    max_attempts: Annotated[int, Field(ge=1, le=20)] = 3
    """maxAttempts of a rollout, the first one counted; only failures of the infrastructure are
    tried again, never a low score. 3 when not given."""


class TolerationOperator(StrEnum):
    """How a toleration compares."""

    EXISTS = "Exists"
    EQUAL = "Equal"


class TaintEffect(StrEnum):
    """What a taint does to Pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Toleration(Model):
    """A taint that a Run's Pods tolerate, as in a Pod."""

    model_config = checked(
        (
            "has(self.key) || (has(self.operator) && self.operator == 'Exists')",
            "a toleration without key needs operator Exists: it tolerates every taint",
        ),
        (
            "!has(self.operator) || self.operator != 'Exists' || !has(self.value)",
            "a toleration with operator Exists has no value: leave it out, or use Equal",
        ),
        (
            "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
            "tolerationSeconds needs effect NoExecute",
        ),
    )

    key: Annotated[str, Field(min_length=1, max_length=317)] | None = None
    """key of the taint."""
    operator: TolerationOperator | None = None
    """operator is Exists or Equal; Equal when it is not given."""
    value: LabelText | None = None
    """value of the taint."""
    effect: TaintEffect | None = None
    """effect of the taint; every effect when it is not given."""
    toleration_seconds: Annotated[int, Field(ge=0, le=2_147_483_647)] | None = None
    """tolerationSeconds that a Pod stays on a node with such a NoExecute taint."""


class PullSecret(Model):
    """A Secret with an image registry's credentials."""

    name: ObjectName
    """name of a Secret in the same namespace."""


class PodOverrides(Model):
    """What a Run may change in the Pods that it is made of."""

    node_selector: Annotated[
        Mapping[str, LabelText],
        Field(max_length=20, json_schema_extra=rules(*_LABEL_RULES)),
    ] = Field(default_factory=dict)
    """nodeSelector holds labels that the nodes must have."""
    tolerations: Annotated[tuple[Toleration, ...], Field(max_length=20)] = ()
    """tolerations of taints on nodes."""
    runtime_class_name: ClassName | None = None
    """runtimeClassName of all Pods, like gvisor, instead of the World's."""
    priority_class_name: ClassName | None = None
    """priorityClassName of all Pods."""
    image_pull_secrets: Annotated[
        tuple[PullSecret, ...], Field(max_length=10, json_schema_extra=named_by("name"))
    ] = ()
    """imagePullSecrets for images from private registries."""
    labels: Annotated[
        Mapping[str, LabelText],
        Field(
            max_length=20,
            json_schema_extra=rules(
                *_LABEL_RULES,
                (
                    f"self.all(key, !{list(RESERVED_LABELS)}.exists(own, key.startsWith(own)))",
                    f"must not set labels that start with {', '.join(RESERVED_LABELS)}: "
                    "Wavetank sets its own, and Argo CD would prune Pods that bear an app's",
                ),
            ),
        ),
    ] = Field(default_factory=dict)
    """labels that all Pods are given besides Wavetank's own, like a queue's name."""
    resources: Resources | None = None
    """resources of the agent's container."""


MUTABLE = frozenset({"suspend", "parallelism", "k"})
"""Fields of a Run's spec that may change after creation; ``k`` only upwards."""


class RunSpec(Model):
    """What a Run executes; fixed after creation but for suspend, parallelism, and k upwards."""

    benchmark_ref: ObjectRef
    """benchmarkRef names the Benchmark in the same namespace. The Run waits until it is Ready."""
    agent: Agent
    """agent is the program that acts."""
    k: Annotated[int, Field(ge=1, le=100)] = 1
    """k is the number of rollouts of every task. It may be raised later."""
    tasks: TaskSelection = TaskSelection()
    """tasks says which tasks of the benchmark are run; all when it is not given."""
    parallelism: Annotated[int, Field(ge=1, le=1000)] = 10
    """parallelism is the number of rollouts that may be under way at a time. It may change."""
    timeouts: Timeouts = Timeouts()
    """timeouts of the steps of a rollout."""
    retries: Retries = Retries()
    """retries after failures of the infrastructure."""
    allow_faults: bool = False
    """allowFaults runs a benchmark although its check found faults in it."""
    suspend: bool = False
    """suspend starts no further rollouts while it is true; those under way end and are graded."""
    pod_overrides: PodOverrides = PodOverrides()
    """podOverrides change the Pods that the Run is made of."""


class Run(Model):
    """A Run is one execution of a benchmark by one agent, every task k times."""

    metadata: ObjectMeta
    spec: RunSpec
    """spec is what the Run executes."""
    status: RunStatus = RunStatus()
    """status is how far the Run is and what came out; written by the operator only."""
