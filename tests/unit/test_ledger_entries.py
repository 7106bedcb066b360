"""Ledger entries as text: nothing is lost on the way, nothing grows too large, damage is named."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wavetank.api.ledger import (
    FAILURE_LIMIT,
    FIRST_FAILURE_LIMIT,
    RECORD_LIMIT,
    LedgerDamaged,
    decode,
    encode,
    key_of,
    ledger_of,
)
from wavetank.core.actions import Entry
from wavetank.core.causes import Cause
from wavetank.core.identity import SHARD_SIZE, AttemptKey
from wavetank.core.observed import (
    FailedGrading,
    Failure,
    Ledger,
    Record,
    ScoreSeen,
    Stages,
)

TASKS = [f"task_{number}" for number in range(7)]
NOW = 1_800_000_000.0
DIGEST = f"sha256:{'a' * 64}"
CONFIG_MAP_BYTES = 1_048_576
"""Of data and binaryData together. Source: kubernetes pkg/apis/core, MaxSecretSize."""

keys = st.builds(AttemptKey, st.integers(0, 100_000), st.integers(1, 60))
causes = st.sampled_from(Cause)
seconds = st.none() | st.floats(0, 1e6)
words = st.text(max_size=120)
number = st.floats(-1e6, 1e6)
scores = st.builds(
    ScoreSeen, st.text(min_size=1, max_size=30), st.none() | number, st.none() | causes, words
)
records = st.builds(
    Record,
    keys,
    st.none() | number,
    st.none() | causes,
    st.none() | causes,
    st.lists(scores, max_size=4).map(tuple),
    st.none() | st.just(DIGEST),
    st.none() | st.just(DIGEST),
    st.builds(Stages, seconds, seconds, seconds, seconds),
    words,
)
failures = st.builds(
    Failure, keys, causes, st.text("ab é", max_size=20), st.integers(0, 2_000_000_000).map(float)
)
gradings = st.builds(FailedGrading, keys, st.integers(1, 3), causes, st.text("ab é", max_size=20))


def again(entry: Entry) -> Entry:
    return decode("ConfigMap x", key_of(entry), encode(entry, TASKS, NOW))


@given(records | failures | gradings)
def test_an_entry_comes_back_as_it_went(entry: Entry) -> None:
    assert again(entry) == entry


@given(st.lists(records | failures | gradings, max_size=20))
def test_a_ledger_comes_back_as_it_went_in_whatever_order(entries: list[Entry]) -> None:
    by_key = {key_of(entry): entry for entry in entries}

    assert ledger_of(again(e) for e in by_key.values()) == ledger_of(reversed(by_key.values()))


def test_a_ledger_holds_attempts_and_tries_in_their_order() -> None:
    one, two = (Failure(AttemptKey(3, n), Cause.EVICTED, "", 1.0) for n in (1, 2))
    first, second = (FailedGrading(AttemptKey(3, 3), n, Cause.VERIFIER_FAILED, "") for n in (1, 2))
    record = Record(AttemptKey(3, 3), 0.5)

    assert ledger_of([second, two, record, first, one]) == Ledger(
        records={3: record}, failures={3: (one, two)}, failed_gradings={3: (first, second)}
    )


def a_record(verifiers: int, message: str = "", own: str = "") -> Record:
    """A record whose names are as long as they can be."""
    names = [f"{number:02d}{'n' * 126}" for number in range(verifiers)]
    scores = tuple(ScoreSeen(name, None, Cause.REWARD_INVALID, message) for name in names)
    return Record(AttemptKey(0, 1), 0.25, scores=scores, seal=DIGEST, grader=DIGEST, message=own)


@pytest.mark.parametrize("text", ["w" * 300, "é" * 300, "\x01" * 300], ids=["w", "é", "control"])
@pytest.mark.parametrize("verifiers", [1, 5, 12, 16])
def test_a_record_is_cut_to_its_limit_at_its_messages_only(verifiers: int, text: str) -> None:
    record = a_record(verifiers, text)

    written = encode(record, TASKS, NOW)

    assert len(written.encode()) <= RECORD_LIMIT
    back = decode("x", "0", written)
    assert isinstance(back, Record)
    assert [(s.name, s.value, s.cause) for s in back.scores] == [
        (s.name, s.value, s.cause) for s in record.scores
    ]
    assert (back.reward, back.seal, back.grader) == (0.25, DIGEST, DIGEST)


def test_a_record_of_more_verifiers_than_fit_keeps_its_reward_and_says_what_it_lost() -> None:
    written = encode(a_record(200, "w" * 300, "\x01" * 500), TASKS, NOW)

    back = decode("x", "0", written)

    assert len(written.encode()) <= RECORD_LIMIT
    assert isinstance(back, Record)
    assert (back.reward, back.scores) == (0.25, ())
    assert back.message.startswith("the scores of 200 verifiers do not fit into the ledger.")


@pytest.mark.parametrize("text", ["w" * 9_000, "é" * 9_000, "\x01" * 9_000, "\U0001f30a" * 9_000])
def test_a_failure_keeps_as_many_words_as_fit(text: str) -> None:
    entries: list[Entry] = []
    for attempt in (1, 2):
        entries += [
            Failure(AttemptKey(0, attempt), Cause.STORE_UNAVAILABLE, text, NOW),
            FailedGrading(AttemptKey(0, 1), attempt, Cause.VERIFIER_TIMEOUT, text),
        ]

    sizes = [len(encode(entry, ["t" * 128], NOW).encode()) for entry in entries]

    assert max(sizes[:2]) <= FIRST_FAILURE_LIMIT
    assert max(sizes[2:]) <= FAILURE_LIMIT
    assert min(sizes) > FAILURE_LIMIT - 100


def test_the_fullest_shard_fits_into_a_config_map() -> None:
    size = 0
    for ordinal in range(999_900, 999_900 + SHARD_SIZE):
        entries: list[Entry] = [Record(AttemptKey(ordinal, 20), 0.5)]
        entries += [
            Failure(AttemptKey(ordinal, n), Cause.STORE_UNAVAILABLE, "w" * 500, NOW)
            for n in range(1, 20)
        ]
        entries += [
            FailedGrading(AttemptKey(ordinal, 20), n, Cause.VERIFIER_TIMEOUT, "w" * 500)
            for n in (1, 2, 3)
        ]
        for entry in entries:
            text = encode(entry, ["t" * 128], NOW)
            size += len(key_of(entry)) + (
                RECORD_LIMIT if isinstance(entry, Record) else len(text.encode())
            )

    assert size < CONFIG_MAP_BYTES


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("7", "{", "ConfigMap x key '7': : Invalid JSON"),
        ("7", '{"task":"t","rollout":0,"attempt":1}', "key '7': reward: Field required"),
        (
            "7",
            '{"task":"t","rollout":0,"attempt":1,"recordedAt":"","reward":"much"}',
            "key '7': reward: Input should be a valid number",
        ),
        (
            "7",
            '{"task":"t","rollout":0,"attempt":1,"recordedAt":"","reward":NaN}',
            "key '7': reward: Input should be a finite number",
        ),
        (
            "7.a1",
            '{"task":"t","cause":"BadLuck","failedAt":""}',
            "key '7.a1': cause: Input should be",
        ),
        ("7.a1.g2", '{"task":"t"}', "key '7.a1.g2': cause: Field required"),
        ("seven", "{}", "key 'seven': no ledger entry has such a key"),
        ("-7", "{}", "key '-7': no ledger entry has such a key"),
        ("7.g1", "{}", "key '7.g1': no ledger entry has such a key"),
    ],
)
def test_damage_is_named_by_config_map_key_and_field(key: str, text: str, words: str) -> None:
    with pytest.raises(LedgerDamaged) as damage:
        decode("ConfigMap x", key, text)

    assert words in str(damage.value)


def test_an_entry_is_as_short_as_can_be() -> None:
    entry = Failure(AttemptKey(8, 2), Cause.POD_DELETED, "gone", 1_800_000_000.5)

    document: dict[str, Any] = json.loads(encode(entry, TASKS, NOW))

    assert document == {
        "task": "task_1",
        "cause": "PodDeleted",
        "message": "gone",
        "failedAt": "2027-01-15T08:00:00Z",
    }
