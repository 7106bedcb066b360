"""The ledger of a local Run as a file: appended, through to the disk, and read after any death."""

from pathlib import Path

import pytest

from wavetank.api.ledger import LedgerDamaged
from wavetank.core.causes import Cause
from wavetank.core.identity import AttemptKey
from wavetank.core.observed import FailedGrading, Failure, Ledger, Record, ScoreSeen
from wavetank.engine.files import merged
from wavetank.engine.ledger import FileLedger

pytestmark = pytest.mark.component

TASKS = ("first", "second")
RECORD = Record(AttemptKey(0, 1), 0.5, scores=(ScoreSeen("reached", 0.5),), seal=f"sha256:{0:064}")
FAILED = Failure(AttemptKey(1, 1), Cause.WORLD_FAILED, "gone\u2028for good", 60.0)
UNGRADED = FailedGrading(AttemptKey(1, 2), 1, Cause.VERIFIER_FAILED, "grade died")


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "ledger"
    ledger = FileLedger(file, TASKS)

    added = ledger.write([RECORD, FAILED, UNGRADED], now=90.0)

    assert added == 3
    assert FileLedger(file, TASKS).view() == ledger.view()
    assert ledger.view() == Ledger({0: RECORD}, {1: (FAILED,)}, {1: (UNGRADED,)})


def test_the_first_record_of_a_rollout_wins(tmp_path: Path) -> None:
    file = tmp_path / "ledger"
    ledger = FileLedger(file, TASKS)
    ledger.write([RECORD], now=90.0)
    text = file.read_text()

    added = ledger.write([Record(AttemptKey(0, 2), 1.0)], now=91.0)

    assert (added, file.read_text()) == (0, text)
    assert ledger.view().records == {0: RECORD}


@pytest.mark.parametrize("kept", range(0, 120, 7))
def test_half_a_line_of_a_killed_process_is_none(tmp_path: Path, kept: int) -> None:
    file = tmp_path / "ledger"
    FileLedger(file, TASKS).write([FAILED], now=90.0)
    whole = file.read_bytes()
    FileLedger(file, TASKS).write([RECORD], now=90.0)
    file.write_bytes(file.read_bytes()[: len(whole) + kept])

    ledger = FileLedger(file, TASKS)
    before = ledger.view()
    ledger.write([RECORD], now=91.0)

    assert before == Ledger(failures={1: (FAILED,)})
    assert FileLedger(file, TASKS).view() == Ledger({0: RECORD}, {1: (FAILED,)})


@pytest.mark.parametrize(
    "line",
    ["0 {}", "nonsense {}", '0 {"task": "first", "rollout": 0', "\xff 1"],
    ids=["no fields", "no key", "no JSON", "other bytes"],
)
def test_a_line_that_nobody_wrote_is_damage(tmp_path: Path, line: str) -> None:
    file = tmp_path / "ledger"
    file.write_bytes(line.encode("latin-1") + b"\n")

    with pytest.raises(LedgerDamaged, match="ledger key"):
        FileLedger(file, TASKS)


def test_of_several_generations_the_newest_record_counts() -> None:
    unscored = Record(AttemptKey(1, 1), None, Cause.WORLD_FAILED)
    mended = Record(AttemptKey(1, 2), 1.0)
    first = Ledger({0: RECORD, 1: unscored}, {1: (FAILED,)})
    second = Ledger({1: mended}, {1: (Failure(AttemptKey(1, 2), Cause.EVICTED, "", 70.0),)})

    found = merged([first, second])

    assert found.records == {0: RECORD, 1: mended}
    assert [failure.key.attempt for failure in found.failures[1]] == [1, 2]
