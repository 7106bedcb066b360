"""The kind Benchmark: tasks, their verifiers, and the world they run on."""

from typing import Annotated

from pydantic import Field, JsonValue

from wavetank.api.fields import (
    Alias,
    CauseName,
    Clipped,
    Conditions,
    Decimal,
    Digests,
    DigestText,
    Figure,
    Findings,
    Identifier,
    Model,
    ObjectMeta,
    ObjectRef,
    StatusModel,
    checked,
    named_by,
)

Tag = Annotated[str, Field(min_length=1, max_length=64)]
# A bare pattern: with 500 tasks, rules on their verifiers' names would exceed CEL's cost budget.
VerifierName = Annotated[str, Field(max_length=128, pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$")]
VerifierNames = Annotated[
    tuple[VerifierName, ...],
    Field(max_length=50, json_schema_extra={"x-kubernetes-list-type": "set"}),
]


class LinkedVerifiers(Model):
    """Verifiers of a linked world that a task is graded by."""

    alias: Alias
    """alias of the linked world."""
    verifiers: VerifierNames
    """verifiers of that world, by name."""


class BenchmarkTask(Model):
    """A prompt, and the verifiers that grade the state it leads to."""

    model_config = checked(
        (
            "(has(self.verifiers) && size(self.verifiers) > 0)"
            " || (has(self.worlds) && size(self.worlds) > 0)",
            "must name at least one verifier, in verifiers or in worlds",
        )
    )

    id: Identifier
    """id of the task, unique in the benchmark."""
    prompt: Annotated[str, Field(min_length=1, max_length=50_000)]
    """prompt is what the agent is told to do."""
    verifiers: VerifierNames = ()
    """verifiers that grade the end state, by name."""
    worlds: Annotated[
        tuple[LinkedVerifiers, ...], Field(max_length=16, json_schema_extra=named_by("alias"))
    ] = ()
    """worlds name the verifiers of linked worlds that grade this task too."""
    category: Annotated[str, Field(max_length=64)] | None = None
    """category that results are grouped by."""
    difficulty: Annotated[str, Field(max_length=64)] | None = None
    """difficulty that results are grouped by, like easy."""
    tags: Annotated[tuple[Tag, ...], Field(max_length=20)] = ()
    """tags that results are grouped by."""
    timeout_seconds: Annotated[int, Field(ge=1, le=86_400)] | None = None
    """timeoutSeconds that a rollout of this task may take, instead of the Run's rolloutSeconds."""
    max_steps: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """maxSteps that the built-in agent takes at most."""

    def entry(self) -> dict[str, JsonValue]:
        """Return the task as a bundle's ``benchmark.json`` and ``[[tasks]]`` hold it."""
        kept = self.model_dump(mode="json", exclude_none=True, exclude={"worlds"})
        kept["worlds"] = {link.alias: list(link.verifiers) for link in self.worlds}
        return {name: value for name, value in kept.items() if value not in ([], {})}


class SqlVerifier(Model):
    """A verifier that is one SQL statement over the end state."""

    name: Identifier
    """name of the verifier, unique in the benchmark."""
    sql: Annotated[str, Field(min_length=1, max_length=20_000)]
    """sql is one statement whose answer is one row, one column, a number in 0..1."""


class WorldBenchmark(Model):
    """A benchmark whose tasks act on a World."""

    world_ref: ObjectRef
    """worldRef names the World in the same namespace."""
    tasks: Annotated[
        tuple[BenchmarkTask, ...] | None,
        Field(min_length=1, max_length=500, json_schema_extra=named_by("id")),
    ] = None
    """tasks of the benchmark, instead of those in the world's own files."""
    verifiers: Annotated[
        tuple[SqlVerifier, ...], Field(max_length=200, json_schema_extra=named_by("name"))
    ] = ()
    """verifiers in addition to those in the world's own files; the same name replaces."""


class RewardRange(Model):
    """The interval that every reward lies in."""

    model_config = checked(("double(self.min) < double(self.max)", "min must be less than max"))

    min: Decimal
    """min is the least reward there can be, like "0"."""
    max: Decimal
    """max is the greatest reward there can be, like "1"."""


class Scoring(Model):
    """How rewards are read."""

    model_config = checked(
        (
            "!has(self.passThreshold) || (has(self.range)"
            " ? double(self.passThreshold) >= double(self.range.min)"
            " && double(self.passThreshold) <= double(self.range.max)"
            " : double(self.passThreshold) >= 0.0 && double(self.passThreshold) <= 1.0)",
            "passThreshold must lie in range, which is 0 to 1 unless range says otherwise",
        ),
        (
            "has(self.passThreshold) || !has(self.range)"
            " || (double(self.range.min) <= 1.0 && double(self.range.max) >= 1.0)",
            "a range without 1 in it needs a passThreshold, which is 1 otherwise",
        ),
    )

    pass_threshold: Decimal = "1"  # noqa: S105 - a threshold
    """passThreshold is the least reward that counts as passed. 1 when it is not given."""
    range: RewardRange = RewardRange(min="0", max="1")
    """range that every reward lies in. From 0 to 1 when it is not given."""


class BenchmarkSpec(Model):
    """What a Benchmark asks."""

    world: WorldBenchmark
    """world says which World the tasks act on, and which tasks and verifiers there are."""
    scoring: Scoring = Scoring()
    """scoring says how rewards are read."""


class VerifierEntry(StatusModel):
    """What a verifier says of the untouched state."""

    name: Annotated[str, Clipped(200)]
    """name of the verifier; <alias>/<name> for a linked world's."""
    initial_score: Figure | None = None
    """initialScore on the untouched state; absent when the verifier gave none."""
    cause: CauseName | None = None
    """cause why there is no initial score."""


class BenchmarkStatus(StatusModel):
    """What the operator found out about a Benchmark."""

    conditions: Conditions = ()
    """conditions: Ready is True when the benchmark was checked and no fault was found."""
    observed_generation: int | None = None
    """observedGeneration is the generation of the spec that this status tells of."""
    kind: Annotated[str, Field(max_length=64)] | None = None
    """kind of benchmark: which block of the spec is used, like world."""
    digests: Digests | None = None
    """digests of what rollouts, graders and solutions are made of, linked worlds included."""
    check_result: DigestText | None = None
    """checkResult is the digest of the check's full result in the store."""
    checked: DigestText | None = None
    """checked is the digest of the set of bundles that was checked, linked worlds included."""
    tasks: int | None = None
    """tasks is the number of tasks."""
    initial_mean: Figure | None = None
    """initialMean is the mean reward of the untouched state: what an agent gets that does
    nothing. Absent unless every task has an initial reward."""
    verifiers: Annotated[tuple[VerifierEntry, ...], Field(max_length=200)] = ()
    """verifiers and their scores on the untouched state; at most 200."""
    findings: Findings = ()
    """findings are what is wrong in tasks and verifiers, faults first; at most 100."""
    findings_omitted: int = 0
    """findingsOmitted is the number of further findings that did not fit."""


class Benchmark(Model):
    """A Benchmark is tasks, the verifiers that grade them, and the world they run on."""

    metadata: ObjectMeta
    spec: BenchmarkSpec
    """spec is what the benchmark asks."""
    status: BenchmarkStatus = BenchmarkStatus()
    """status is what the operator found out; written by the operator only."""
