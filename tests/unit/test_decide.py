"""What the operator decides, case by case: whole decisions from whole observations."""

from dataclasses import replace
from typing import Any

import pytest

from wavetank.core.actions import DeleteJob, DeletePod, StartGrading, StartRollout, WriteLedger
from wavetank.core.causes import Cause
from wavetank.core.decide import decide
from wavetank.core.lifecycle import Stage
from wavetank.core.observed import Container, ContainerPhase, End, Failure, Ledger, Record, Stages
from wavetank.core.retries import not_before
from wavetank.testing.seen import (
    DONE,
    NOW,
    RUNNING,
    a_job,
    a_member,
    a_pod,
    a_run,
    a_seal,
    a_sealed_pod,
    graded,
    key,
)


def test_a_new_run_starts_as_many_rollouts_as_its_parallelism() -> None:
    decision = decide(a_run(total=5, parallelism=2), NOW)

    assert decision.actions == (StartRollout(key(0)), StartRollout(key(1)))


def test_a_suspended_run_starts_nothing_and_lets_running_ones_end() -> None:
    decision = decide(a_run(total=5, suspended=True, pods=(a_pod(0),)), NOW)

    assert decision.actions == ()
    assert decision.stages == {0: Stage.ACTING}


def test_a_sealed_rollout_frees_its_slot_before_it_is_graded() -> None:
    decision = decide(a_run(total=2, parallelism=1, pods=(a_sealed_pod(0),)), NOW)

    assert decision.actions == (StartRollout(key(1)),)
    assert decision.stages == {0: Stage.ENDED, 1: Stage.STARTING}


def test_a_reported_reward_is_written_before_its_pod_is_deleted() -> None:
    job = a_job(0, finished=True, graded=(graded(0, 0.5),))
    seen = a_run(pods=(a_sealed_pod(0),), jobs=(job,))

    first = decide(seen, NOW)
    record = Record(
        key(0),
        0.5,
        seal="seal-0",
        grader="grader",
        stages=Stages(queue=1.0, start=9.0, act=5.0, grade=5.0),
    )
    assert first.actions == (WriteLedger((record,)),)
    assert not first.complete

    second = decide(replace(seen, ledger=Ledger(records={0: record})), NOW)
    assert second.actions == (DeletePod("r-0-a1", "uid-0-1"), DeleteJob("job", "job-uid"))
    assert second.complete


def test_a_pod_deleted_while_acting_costs_an_attempt_and_no_rollout() -> None:
    gone = a_pod(0, delete_requested_at=998.0, world=DONE, agent=RUNNING)

    first = decide(a_run(pods=(gone,)), NOW)
    failure = Failure(key(0), Cause.POD_DELETED, "its Pod was deleted", NOW)
    assert first.actions == (WriteLedger((failure,)),)

    ledger = Ledger(failures={0: (failure,)})
    waiting = decide(a_run(ledger=ledger), NOW)
    assert (waiting.actions, waiting.look_again_after) == ((), 2.0)
    later = decide(a_run(ledger=ledger), NOW + 2)
    assert later.actions == (StartRollout(key(0, 2)),)


def test_a_pod_that_vanished_unseen_costs_an_attempt() -> None:
    decision = decide(a_run(vanished=frozenset({key(0)})), NOW)

    (write,) = decision.actions
    assert write == WriteLedger(
        (Failure(key(0), Cause.POD_DELETED, "its Pod is gone and left no sealed end", NOW),)
    )


def test_a_pod_that_vanished_after_its_seal_is_graded_from_the_store() -> None:
    seen = a_run(vanished=frozenset({key(0)}), seals={key(0): a_seal(0)})

    decision = decide(seen, NOW)

    assert decision.actions == (StartGrading((a_member(0),), 1),)


def test_an_interrupted_seal_without_its_pod_proves_nothing() -> None:
    decision = decide(a_run(seals={key(0): a_seal(0, End.INTERRUPTED)}), NOW)

    (write,) = decision.actions
    assert isinstance(write, WriteLedger)
    assert [entry.cause for entry in write.entries if isinstance(entry, Failure)] == [
        Cause.POD_DELETED
    ]


@pytest.mark.parametrize(
    ("finished_at", "stage"),
    [(997.0, Stage.ENDED), (998.0, None), (999.0, None)],
    ids=["before the deletion", "in the same second", "after it"],
)
def test_an_interrupted_session_counts_only_if_its_agent_had_ended_first(
    finished_at: float, stage: Stage | None
) -> None:
    agent = replace(DONE, finished_at=finished_at)
    pod = a_sealed_pod(0, agent=agent, seal=a_seal(0, End.INTERRUPTED), delete_requested_at=998.0)

    decision = decide(a_run(total=2, parallelism=0, pods=(pod,)), NOW)

    assert decision.stages.get(0) is stage


def test_attempts_used_up_leave_the_rollout_unscored_in_the_same_write() -> None:
    old = tuple(Failure(key(0, n), Cause.EVICTED, "evicted", 900.0) for n in (1, 2))
    pod = a_pod(0, 3, reason="Evicted", message="node was low on memory", world=None, agent=None)

    decision = decide(a_run(pods=(pod,), ledger=Ledger(failures={0: old})), NOW)

    assert decision.actions == (
        WriteLedger(
            (
                Failure(key(0, 3), Cause.EVICTED, "node was low on memory", NOW),
                Record(key(0, 3), None, Cause.EVICTED, message="node was low on memory"),
            )
        ),
    )


def test_a_crashed_world_is_tried_once_more_and_not_twice() -> None:
    one = Failure(key(0, 1), Cause.WORLD_FAILED, "crash", 0.0)
    two = Failure(key(0, 2), Cause.WORLD_FAILED, "crash", 0.0)

    again = decide(a_run(ledger=Ledger(failures={0: (one,)})), NOW)
    over = decide(a_run(ledger=Ledger(failures={0: (one, two)})), NOW)

    assert again.actions == (StartRollout(key(0, 2)),)
    assert over.actions == (
        WriteLedger((Record(key(0, 2), None, Cause.WORLD_FAILED, message="crash"),)),
    )


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"seal": a_seal(0, End.DEADLINE, None)}, Cause.AGENT_TIMEOUT),
        ({"seal": a_seal(0, exit_code=3)}, Cause.AGENT_FAILED),
        (
            {"agent": replace(DONE, exit_code=137, reason="OOMKilled")},
            Cause.AGENT_OUT_OF_MEMORY,
        ),
        ({}, None),
    ],
    ids=["deadline", "exit code 3", "out of memory", "well"],
)
def test_what_an_agent_does_to_itself_is_graded_and_named(
    changes: dict[str, Any], cause: Cause | None
) -> None:
    pod = a_sealed_pod(0, **changes)
    job = a_job(0, finished=True, graded=(graded(0, 0.0),))

    decision = decide(a_run(pods=(pod,), jobs=(job,)), NOW)

    (write,) = decision.actions
    assert isinstance(write, WriteLedger)
    (record,) = write.entries
    assert isinstance(record, Record)
    assert (record.reward, record.cause, record.agent_cause) == (0.0, None, cause)


@pytest.mark.parametrize(
    ("changes", "cause", "words"),
    [
        (
            {"scheduled_at": None, "unschedulable": "0/1 nodes are available"},
            Cause.UNSCHEDULABLE,
            "not started within 300 s: 0/1 nodes are available",
        ),
        (
            {"agent": Container(ContainerPhase.WAITING, "ImagePullBackOff", "no such image")},
            Cause.IMAGE_PULL,
            "not started within 300 s: no such image",
        ),
        ({}, Cause.START_TIMEOUT, "not started within 300 s: no reason was given"),
    ],
    ids=["no node", "no image", "nothing known"],
)
def test_a_pod_that_does_not_start_in_time_fails_with_kubernetes_own_words(
    changes: dict[str, Any], cause: Cause, words: str
) -> None:
    waiting = Container(ContainerPhase.WAITING, "PodInitializing")
    pod = a_pod(0, **{"agent": waiting, **changes})

    before = decide(a_run(pods=(pod,)), pod.created_at + 299)
    after = decide(a_run(pods=(pod,)), pod.created_at + 300)

    assert (before.stages, before.look_again_after) == ({0: Stage.STARTING}, 1.0)
    (write,) = after.actions
    assert write == WriteLedger((Failure(key(0), cause, words, pod.created_at + 300),))


def test_a_refused_pod_is_unscored_at_once_and_the_others_go_on() -> None:
    decision = decide(a_run(total=2, refused={key(0): "violates PodSecurity"}), NOW)

    assert decision.actions == (
        WriteLedger(
            (
                Failure(key(0), Cause.POD_REFUSED, "violates PodSecurity", NOW),
                Record(key(0), None, Cause.POD_REFUSED, message="violates PodSecurity"),
            )
        ),
        StartRollout(key(1)),
    )


def test_a_used_up_quota_is_waited_for_and_said() -> None:
    seen = a_run(total=2, blocked_until=NOW + 5, blocked_by="exceeded quota: pods")

    decision = decide(seen, NOW)

    assert (decision.actions, decision.problem, decision.look_again_after) == (
        (),
        "exceeded quota: pods",
        5.0,
    )


def test_a_world_that_was_started_again_has_failed_whatever_it_serves_now() -> None:
    world = replace(RUNNING, restarts=1, exit_code=139)

    decision = decide(a_run(pods=(a_pod(0, world=world),)), NOW)

    (write,) = decision.actions
    assert isinstance(write, WriteLedger)
    (failure,) = write.entries
    assert isinstance(failure, Failure)
    assert failure.cause is Cause.WORLD_FAILED


def test_a_used_up_quota_is_said_of_a_suspended_run_too() -> None:
    seen = a_run(suspended=True, blocked_until=NOW + 5, blocked_by="exceeded quota: pods")

    decision = decide(seen, NOW)

    assert (decision.problem, decision.look_again_after) == ("exceeded quota: pods", 5.0)


def test_two_attempts_that_failed_unseen_both_count() -> None:
    one, two, three = (
        Failure(key(0, n), Cause.POD_DELETED, "its Pod is gone and left no sealed end", NOW)
        for n in (1, 2, 3)
    )
    seen = a_run(vanished=frozenset({key(0, 2), key(0, 3)}), ledger=Ledger(failures={0: (one,)}))

    decision = decide(seen, NOW)

    record = Record(key(0, 3), None, Cause.POD_DELETED, message=three.message)
    assert decision.actions == (WriteLedger((two, three, record)),)


def test_a_later_generation_goes_on_counting_the_attempts() -> None:
    failed = Failure(key(0, 4), Cause.EVICTED, "gone", NOW - 60)
    ledger = Ledger(failures={0: (failed,)})

    decision = decide(a_run(total=3, ledger=ledger, attempts_before={0: 3, 2: 1}), NOW)

    assert decision.actions == (
        StartRollout(key(0, 5)),
        StartRollout(key(1, 1)),
        StartRollout(key(2, 2)),
    )


def test_a_pod_that_is_being_deleted_is_not_deleted_again() -> None:
    pod = a_sealed_pod(0, delete_requested_at=998.0)

    decision = decide(a_run(pods=(pod,), ledger=Ledger(records={0: Record(key(0), 1.0)})), NOW)

    assert (decision.actions, decision.complete) == ((), True)


def test_a_pod_that_does_not_start_yet_says_why_at_once() -> None:
    waiting = Container(ContainerPhase.WAITING, "ErrImagePull", "no such image")

    decision = decide(a_run(pods=(a_pod(0, agent=waiting),)), NOW)

    assert (decision.problem, decision.stages) == ("no such image", {0: Stage.STARTING})


def test_the_wait_before_another_attempt_doubles_up_to_a_minute() -> None:
    failures = tuple(Failure(key(0, n), Cause.EVICTED, "", NOW) for n in range(1, 9))

    waits = [not_before(failures[:n]) - NOW for n in range(1, 9)]

    assert waits == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]
    assert not_before(()) == 0.0


def test_an_attempt_that_waits_for_its_turn_is_no_trouble_while_others_act() -> None:
    failure = Failure(key(0), Cause.EVICTED, "low on memory", NOW - 100)
    ledger = Ledger(failures={0: (failure,)})

    alone = decide(a_run(suspended=True, ledger=ledger), NOW)
    behind = decide(a_run(total=2, parallelism=1, pods=(a_pod(1),), ledger=ledger), NOW)

    assert (alone.problem, behind.problem) == ("Evicted: low on memory", "")
