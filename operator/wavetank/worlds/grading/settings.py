"""What ``grade`` and ``judge`` are told by their environment; nothing else here reads it."""

import os
from dataclasses import dataclass
from pathlib import Path

from wavetank.api.wire import CHECK_ENV, GRADE_ENV, TOKEN_FILE_ENV, CheckSpec, GradeSpec

TERMINATION_LOG_ENV = "WAVETANK_TERMINATION_LOG"
JUDGE_SECONDS_ENV = "WAVETANK_JUDGE_SECONDS"


@dataclass(frozen=True)
class Folders:
    """The two folders that judge and grade share."""

    inbox: Path
    """``/in``: judge writes, grade reads."""
    outbox: Path
    """``/out``: grade writes, judge reads."""


@dataclass(frozen=True)
class JudgeSettings:
    """What judge is told."""

    folders: Folders
    task: GradeSpec | CheckSpec
    """What to do."""
    token_file: Path
    """Holds the store token; only judge has one."""
    termination_log: Path
    """Where the report goes."""
    seconds: float
    """After this time judge reports what there is; infinity to wait for SIGTERM, which comes at
    the Pod's own deadline and has the same effect."""


def folders() -> Folders:
    """Return the folders, at ``/in`` and ``/out`` unless WAVETANK_IN and WAVETANK_OUT say else."""
    return Folders(
        inbox=Path(os.environ.get("WAVETANK_IN", "/in")),
        outbox=Path(os.environ.get("WAVETANK_OUT", "/out")),
    )


def judge_settings() -> JudgeSettings:
    """Return what judge is told.

    Raises:
        ValueError: If there is not exactly one of WAVETANK_GRADE and WAVETANK_CHECK, or it is no
            such document, or WAVETANK_JUDGE_SECONDS is no number.
    """
    grade, check = os.environ.get(GRADE_ENV), os.environ.get(CHECK_ENV)
    task: GradeSpec | CheckSpec
    if grade is not None and check is None:
        task = GradeSpec.model_validate_json(grade)
    elif check is not None and grade is None:
        task = CheckSpec.model_validate_json(check)
    else:
        raise ValueError(f"set exactly one of {GRADE_ENV} and {CHECK_ENV}")
    return JudgeSettings(
        folders=folders(),
        task=task,
        token_file=Path(os.environ.get(TOKEN_FILE_ENV, "/var/run/wavetank/token")),
        termination_log=Path(os.environ.get(TERMINATION_LOG_ENV, "/dev/termination-log")),
        seconds=float(os.environ.get(JUDGE_SECONDS_ENV, "inf")),
    )


def forget_environment() -> None:
    """Empty the environment of this process, before people's code runs in it."""
    os.environ.clear()
