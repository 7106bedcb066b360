"""What judge believes of what grade wrote."""

from pydantic import ValidationError

from wavetank.api.wire import CheckResult, CheckSpec, GradeMember, GradeRecord, Score
from wavetank.core.reward import task_reward

RECORD_LIMIT = 64 * 1024
"""Bytes of one record: a task of 100 verifiers, each with a message, stays below."""
RESULT_LIMIT = 8 * 1024 * 1024
"""Bytes of a check's result."""


class RefusedRecordError(Exception):
    """A record is not what was asked for, or contradicts itself."""


def accepted(raw: bytes, member: GradeMember, grader: str) -> GradeRecord:
    """Return a member's record.

    Args:
        raw: What grade wrote.
        member: Whom it was asked to grade.
        grader: Digest of the bundles it was given.

    Raises:
        RefusedRecordError: If it is no record, one of something else, or its reward is not what its
            scores say.
    """
    try:
        record = GradeRecord.model_validate_json(raw, strict=True)
    except ValidationError as error:
        raise RefusedRecordError(f"it is no record: {_first(error)}") from error
    for name, found, asked in (
        ("ordinal", record.ordinal, member.ordinal),
        ("attempt", record.attempt, member.attempt),
        ("task", record.task, member.task),
        ("seal", record.seal, member.seal),
        ("grader", record.grader, grader),
    ):
        if found != asked:
            raise RefusedRecordError(f"its {name} is {found!r}, not {asked!r}")
    _require_consistent(record)
    return record


def accepted_check(raw: bytes, spec: CheckSpec) -> CheckResult:
    """Return the result of a check.

    Raises:
        RefusedRecordError: If it is no such document, or one of something else.
    """
    try:
        result = CheckResult.model_validate_json(raw, strict=True)
    except ValidationError as error:
        raise RefusedRecordError(f"it is no check's result: {_first(error)}") from error
    if (result.kind, result.bundles) != (spec.kind, spec.bundles):
        raise RefusedRecordError("it is of another kind or of other bundles")
    return result


def _require_consistent(record: GradeRecord) -> None:
    names = [score.name for score in record.scores]
    if len(set(names)) != len(names):
        raise RefusedRecordError("it scores a verifier twice")
    for score in record.scores:
        require_sound(score)
    if not record.scores:
        sound = record.reward is None and record.cause is not None
    else:
        expected = task_reward([(score.value, score.cause) for score in record.scores])
        sound = (record.reward, record.cause) == expected
    if not sound:
        raise RefusedRecordError(f"its reward {record.reward!r} does not follow from its scores")


def require_sound(score: Score) -> None:
    """Refuse a score that is not either a value in 0..1 or a cause.

    Raises:
        RefusedRecordError: If it is neither, or both.
    """
    if (score.value is None) is (score.cause is None):
        raise RefusedRecordError(f"{score.name!r} has to have a value or a cause, and one only")
    if score.value is not None and not 0 <= score.value <= 1:
        raise RefusedRecordError(f"{score.name!r} has {score.value!r}, outside 0..1")


def _first(error: ValidationError) -> str:
    first = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
