"""What time it is for the API server, by the Dates of its answers."""

from email.utils import formatdate

import pytest

from wavetank.kube.server_clock import ServerClock

DATE = formatdate(1_800_000_000, usegmt=True)


def test_before_any_answer_nothing_is_known() -> None:
    assert ServerClock().read(5.0) is None


def test_it_goes_on_between_answers_and_is_not_shaken_by_whole_seconds() -> None:
    clock = ServerClock()
    clock.hear(DATE, at=10.0)
    clock.hear(DATE, at=10.9)
    clock.hear(formatdate(1_800_000_001, usegmt=True), at=11.0)

    assert clock.read(70.0) == 1_800_000_060.5


@pytest.mark.parametrize("jump", [600, -600], ids=["ahead", "back"])
def test_it_follows_a_server_whose_clock_was_set(jump: int) -> None:
    clock = ServerClock()
    clock.hear(DATE, at=10.0)
    clock.hear(formatdate(1_800_000_000 + jump, usegmt=True), at=11.0)

    assert clock.read(11.0) == 1_800_000_000.5 + jump


@pytest.mark.parametrize("date", [None, "", "yesterday", "1800000000"])
def test_an_answer_without_a_date_changes_nothing(date: str | None) -> None:
    clock = ServerClock()
    clock.hear(DATE, at=10.0)
    clock.hear(date, at=500.0)

    assert clock.read(10.0) == 1_800_000_000.5
