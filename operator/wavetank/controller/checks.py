"""Checks of Worlds and Benchmarks: a short Job, its report, and what of it goes into a status."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from pydantic import ValidationError

from wavetank.api.fields import FINDINGS_KEPT, FindingEntry, Resources, clip
from wavetank.api.wire import CheckResult, CheckSpec
from wavetank.controller import snapshots
from wavetank.controller.observing import pods_of_job
from wavetank.controller.shell import Shell
from wavetank.controller.storage import Storage, create, get_bundles
from wavetank.core.causes import Cause
from wavetank.core.errors import Finding, Severity
from wavetank.kube.errors import AlreadyExists, Forbidden, Invalid
from wavetank.kube.objects import JOBS, SECRETS, Manifest, ObjectName, uid_of
from wavetank.manifests.objects import CheckOwner, check_token_secret
from wavetank.manifests.verifier import CheckJob, Grading, check_job
from wavetank.store.client import StoreNotFound

TRIES = 3
"""A check whose Job gave no report so often is given up until the object changes."""

DEADLINE_SECONDS = 600
"""For loading, importing and grading the untouched state; also a big world takes seconds."""


@dataclass(frozen=True)
class Checked:
    """The check was made."""

    result: CheckResult
    digest: str
    """Of the result in the store."""


@dataclass(frozen=True)
class NotChecked:
    """The check is under way, or could not be made."""

    reason: str
    message: str
    again_after: float | None
    """Seconds; None when only a change of the object helps."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is to be checked."""

    owner: CheckOwner
    spec: CheckSpec
    resources: Resources | None
    runtime_class_name: str | None


class Checker:
    """Has checks made; one instance per operator."""

    def __init__(self, shell: Shell, storage: Storage) -> None:
        self._shell = shell
        self._storage = storage

    async def check(self, request: Request) -> Checked | NotChecked:
        """Return the check's outcome, or start it, or say what it waits for.

        Raises:
            ClusterError: If the API server or the store did not answer.
        """
        problem = ""
        for try_number in range(1, TRIES + 1):
            body = check_job(self._job(request, try_number))
            name = body["metadata"]["name"]
            found = self._shell.jobs.objects.get(ObjectName(request.owner.namespace, name))
            if found is None:
                return await self._start(request, body, problem)
            outcome = await self._outcome(request, found)
            if isinstance(outcome, Checked | NotChecked):
                return outcome
            problem = outcome
        return NotChecked("CheckFailed", f"The check could not be made: {problem}", None)

    async def forget(self, namespace: str, uid: str) -> None:
        """Delete all check Jobs of the object with this UID: its status says what they found."""
        for job in self._shell.jobs.owned_by(uid):
            name = job["metadata"]["name"]
            await self._shell.client.delete(JOBS, namespace, name, uid=uid_of(job))

    def _job(self, request: Request, try_number: int) -> CheckJob:
        return CheckJob(
            owner=request.owner,
            spec=request.spec,
            try_number=try_number,
            grading=Grading(
                image=self._shell.settings.image_verifier,
                deadline_seconds=DEADLINE_SECONDS,
                resources=request.resources,
                runtime_class_name=request.runtime_class_name,
            ),
        )

    async def _start(self, request: Request, body: Manifest, problem: str) -> NotChecked:
        owner, spec = request.owner, request.spec
        grants = [
            *get_bundles([*spec.bundles.agent, *spec.bundles.grader, *spec.bundles.solutions]),
            create(f"/v1/checks/{owner.uid}/{spec.generation}"),
        ]
        token = self._storage.token(grants, timedelta(hours=1))
        secret = check_token_secret(owner, token)
        client = self._shell.client
        await client.apply(SECRETS, owner.namespace, secret["metadata"]["name"], secret)
        try:
            await client.create(JOBS, owner.namespace, body)
        except AlreadyExists:
            pass
        except (Forbidden, Invalid) as error:
            return NotChecked("CheckRefused", f"The check cannot start: {error.reason_text}", 15.0)
        words = f" The last try: {problem}" if problem else ""
        return NotChecked("Checking", f"The check is under way.{words}", 5.0)

    async def _outcome(self, request: Request, job: Manifest) -> Checked | NotChecked | str:
        """Return what a Job came to; a text when it ended without a result, saying why."""
        pods = list(self._shell.pods.owned_by(uid_of(job)))
        if snapshots.is_finished(job) and not any(snapshots.judge_is_over(pod) for pod in pods):
            pods = await pods_of_job(self._shell.client, job)
        report = next((r for pod in pods if (r := snapshots.check_report(pod)) is not None), None)
        if report is None:
            if not snapshots.is_finished(job):
                words = snapshots.pod_problem(pods)
                return NotChecked("Checking", words or "The check is under way.", 5.0)
            return snapshots.judge_words(pods) or snapshots.job_words(job) or "its Job left no word"
        if report.cause is Cause.STORE_UNAVAILABLE:
            # Its outage delays a check and spoils none: the same try is made again.
            await self._shell.client.delete(
                JOBS, request.owner.namespace, job["metadata"]["name"], uid=uid_of(job)
            )
            return NotChecked("Checking", f"{report.cause}: {report.message}", 15.0)
        if report.cause is not None:
            return f"{report.cause}: {report.message}"
        path = f"/v1/checks/{request.owner.uid}/{request.spec.generation}/{report.sha256}"
        try:
            result = CheckResult.model_validate_json(await self._storage.client.get(path))
        except (StoreNotFound, ValidationError) as error:
            return f"its result {report.sha256} cannot be read: {error}"
        if result.kind is not request.spec.kind or result.bundles != request.spec.bundles:
            return "its result is about something else"
        return Checked(result, report.sha256)


def findings_of(findings: Sequence[Finding]) -> tuple[tuple[FindingEntry, ...], int]:
    """Return findings for a status, faults first, and how many did not fit."""
    ordered = sorted(findings, key=lambda finding: finding.severity is not Severity.FAULT)
    kept = tuple(
        FindingEntry(
            severity=finding.severity, path=clip(finding.path, 300), message=clip(finding.message)
        )
        for finding in ordered[:FINDINGS_KEPT]
    )
    return kept, len(ordered) - len(kept)


def result_findings(result: CheckResult) -> list[Finding]:
    """Return a check's findings as the core's values."""
    return [Finding(f.severity, f.path, f.message) for f in result.findings]


def summary(findings: Sequence[Finding]) -> str:
    """Return the faults as one sentence for a condition.

    >>> summary([Finding(Severity.FAULT, "a", "is bad.")])
    '1 fault: a: is bad.'
    """
    faults = [finding for finding in findings if finding.severity is Severity.FAULT]
    if not faults:
        return ""
    more = f" And {len(faults) - 1} more in status.findings." if len(faults) > 1 else ""
    return f"{len(faults)} fault{'s' if len(faults) > 1 else ''}: {faults[0]}{more}"


def has_faults(findings: Sequence[Finding]) -> bool:
    """Tell whether anything found keeps an object from being Ready."""
    return any(finding.severity is Severity.FAULT for finding in findings)
