"""The Jobs that grade: a verifier Job for sealed rollouts, a check Job for a World or Benchmark.

Both are one Pod with the same two containers, which meet in two volumes:

```
judge  has the token, runs no foreign code: fetches -> /in, reads /out, reports in its message
grade  has no token, runs the verifiers:    /in -> /out
```
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from wavetank.api.fields import Resources
from wavetank.api.run import PodOverrides
from wavetank.api.wire import CHECK_ENV, GRADE_ENV, TOKEN_FILE_ENV, CheckSpec, GradeSpec
from wavetank.core.identity import (
    AttemptKey,
    check_job_name,
    check_token_name,
    tokens_name,
    verifier_job_name,
)
from wavetank.manifests.objects import (
    NOTE_GENERATION,
    NOTE_MEMBERS,
    NOTE_TRY,
    CheckOwner,
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
    pod_spec,
    resources,
    scratch,
    token_volume,
)

GRACE_SECONDS = 10
"""The end of a verifier Pod by force loses nothing: its members are graded again."""

BACKSTOP_SECONDS = 300
"""For pulling the image before ``judge`` starts, and for its report after its deadline."""
JUDGE_SECONDS_ENV = "WAVETANK_JUDGE_SECONDS"

_GRADE = Amounts(cpu=("50m", "1"), memory=("128Mi", "512Mi"), disk=("64Mi", "2Gi"))
_JUDGE = Amounts(cpu=("50m", "1"), memory=("96Mi", "512Mi"), disk=("64Mi", "4Gi"))
_IN = "3Gi"
"""Bundles and the snapshots of up to 16 rollouts, unpacked."""
_OUT = "512Mi"


@dataclass(frozen=True, kw_only=True)
class Grading:
    """What verifier and check Jobs have in common."""

    image: str
    """The verifier image."""
    deadline_seconds: int
    """From the start of ``judge`` until it reports what there is. The Pod's own deadline lies
    ``BACKSTOP_SECONDS`` above, since it ends containers without a report."""
    overrides: PodOverrides = field(default_factory=PodOverrides)
    """Of the Run; its resources are the agent's and not used here."""
    resources: Resources | None = None
    """Of the World, for the container ``grade``."""
    runtime_class_name: str | None = None
    """Of the World; the Run's own comes first."""


@dataclass(frozen=True, kw_only=True)
class VerifierJob:
    """All that a verifier Job depends on."""

    run: RunOwner
    spec: GradeSpec
    try_number: int
    """From 1; more than 1 only for a Job with a single member."""
    grading: Grading


@dataclass(frozen=True, kw_only=True)
class CheckJob:
    """All that a check Job depends on."""

    owner: CheckOwner
    spec: CheckSpec
    try_number: int
    """From 1."""
    grading: Grading

    @property
    def name(self) -> str:
        """Return the Job's name."""
        return check_job_name(self.owner.name, self.owner.uid, self.spec.digest(), self.try_number)


def verifier_job(job: VerifierJob) -> Manifest:
    """Return the Job that grades the members of ``job.spec``."""
    run, spec = job.run, job.spec
    members = sorted(AttemptKey(member.ordinal, member.attempt) for member in spec.members)
    notes = {
        NOTE_MEMBERS: ",".join(f"{key.ordinal}.{key.attempt}" for key in members),
        NOTE_GENERATION: str(spec.generation),
        NOTE_TRY: str(job.try_number),
    }
    name = verifier_job_name(run.name, run.uid, members, spec.generation, job.try_number)
    meta = metadata(run, Component.VERIFIER, name, notes)
    env = {GRADE_ENV: spec.canonical().decode()}
    return _job(meta, _pod(job.grading, env, tokens_name(run.name, run.uid)), job.grading.overrides)


def check_job(job: CheckJob) -> Manifest:
    """Return the Job that checks a World or Benchmark."""
    notes = {
        NOTE_GENERATION: str(job.spec.generation),
        NOTE_TRY: str(job.try_number),
    }
    meta = metadata(job.owner, Component.CHECK, job.name, notes)
    env = {CHECK_ENV: job.spec.canonical().decode()}
    pod = _pod(job.grading, env, check_token_name(job.owner.name, job.owner.uid))
    return _job(meta, pod, job.grading.overrides)


def _job(meta: Manifest, pod: Manifest, overrides: PodOverrides) -> Manifest:
    """Wrap a Pod into a Job that runs it once, and stays until the operator deletes it.

    No deadline on the Job: that would delete the Pod and its message. No second try: another one
    is the operator's decision, under another name.
    """
    template = {
        "labels": dict(overrides.labels) | meta["labels"],
        "annotations": dict(meta["annotations"]),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": meta,
        "spec": {"backoffLimit": 0, "template": {"metadata": template, "spec": pod}},
    }


def _pod(grading: Grading, env: Mapping[str, str], secret: str) -> Manifest:
    grade = Container(
        name="grade",
        image=grading.image,
        command=("python", "-m", "wavetank.worlds.grading.grade"),
        env={},
        mounts=(
            Mount("in", "/in", read_only=True),
            Mount("out", "/out"),
            Mount("grade-tmp", "/tmp"),  # noqa: S108 - a mount of its own
        ),
        resources=resources(_GRADE, grading.resources),
    )
    judge = Container(
        name="judge",
        image=grading.image,
        command=("python", "-m", "wavetank.worlds.grading.judge"),
        env={
            **env,
            JUDGE_SECONDS_ENV: str(grading.deadline_seconds),
            TOKEN_FILE_ENV: TOKEN_FILE,
        },
        mounts=(
            Mount("in", "/in"),
            Mount("out", "/out", read_only=True),
            Mount("judge-tmp", "/tmp"),  # noqa: S108 - a mount of its own
            Mount("grade-token", TOKEN_FOLDER, read_only=True),
        ),
        resources=resources(_JUDGE, None),
    )
    return pod_spec(
        PodSpec(
            containers=[container(grade), container(judge)],
            volumes=[
                scratch("in", _IN),
                scratch("out", _OUT),
                scratch("grade-tmp", TMP),
                scratch("judge-tmp", TMP),
                token_volume("grade-token", secret, TokenKey.GRADE),
            ],
            deadline_seconds=grading.deadline_seconds + BACKSTOP_SECONDS,
            grace_seconds=GRACE_SECONDS,
            overrides=grading.overrides,
            runtime_class_name=grading.runtime_class_name,
        )
    )
