"""What a rollout Pod's state means, where that is not plain: removals, refusals, dead nodes."""

from dataclasses import replace
from typing import Any

import pytest

from wavetank.core.causes import Cause
from wavetank.core.lifecycle import Stage
from wavetank.core.observed import Container, End, Limits, PodSeen
from wavetank.core.verdicts import (
    DELETE_SLACK_SECONDS,
    SEAL_SLACK_SECONDS,
    Verdict,
    judge_pod,
    judge_seal,
    judge_vanished,
)
from wavetank.testing.seen import DONE, NOW, WAITING, a_pod, a_seal, a_sealed_pod

LIMITS = Limits(parallelism=1)
INTERRUPTED = a_seal(end=End.INTERRUPTED, exit_code=None)


def an_interrupted_pod(**changes: Any) -> PodSeen:
    return a_sealed_pod(**{"seal": INTERRUPTED, **changes})


@pytest.mark.parametrize(
    ("reason", "message", "words"),
    [
        ("OutOfpods", "too many pods", "its node refused it: OutOfpods: too many pods"),
        ("UnexpectedAdmissionError", "", "its node refused it: UnexpectedAdmissionError"),
    ],
    ids=["with words", "without words"],
)
@pytest.mark.parametrize(
    "container", [None, WAITING], ids=["no container status", "containers that wait"]
)
def test_a_pod_that_its_node_refused_fails_at_once_and_not_at_its_start_limit(
    container: Container | None, reason: str, message: str, words: str
) -> None:
    pod = a_pod(world=container, agent=container, reason=reason, message=message)

    verdict = judge_pod(pod, LIMITS, pod.created_at + 1)

    assert verdict == Verdict(Stage.PLANNED, cause=Cause.UNSCHEDULABLE, message=words)


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("Evicted", Cause.EVICTED),
        ("Preempting", Cause.EVICTED),
        ("NodeLost", Cause.NODE_LOST),
        ("NodeShutdown", Cause.NODE_LOST),
        ("Terminated", Cause.NODE_LOST),
    ],
)
def test_a_pod_that_its_node_ended_names_the_node_and_not_the_world(
    reason: str, cause: Cause
) -> None:
    pod = a_pod(world=DONE, agent=DONE, reason=reason, message="the kubelet's words")

    verdict = judge_pod(pod, LIMITS, NOW)

    assert verdict == Verdict(Stage.PLANNED, cause=cause, message="the kubelet's words")


def test_an_acting_pod_on_a_node_that_died_fails_once_its_kubelet_should_have_ended_it() -> None:
    pod = a_pod(ends_at=2_000.0)
    until = 2_000.0 + DELETE_SLACK_SECONDS

    before, after = (judge_pod(pod, LIMITS, moment) for moment in (until - 1, until))

    assert before == Verdict(Stage.ACTING, look_again_at=until)
    assert after == Verdict(
        Stage.PLANNED, cause=Cause.NODE_LOST, message="no kubelet ended it at its deadline"
    )


@pytest.mark.parametrize(
    ("exit_code", "reason", "stage"),
    [
        (0, "Completed", Stage.ENDED),
        (1, "Error", Stage.ENDED),
        (137, "OOMKilled", Stage.ENDED),
        (137, "Error", Stage.PLANNED),
        (143, "Error", Stage.PLANNED),
    ],
    ids=["ended by itself", "failed", "out of memory", "killed", "told to stop"],
)
def test_an_agent_that_a_removal_may_have_killed_has_not_ended_before_it(
    exit_code: int, reason: str, stage: Stage
) -> None:
    # The node's clock is behind: the agent seems to have ended before the deletion.
    agent = replace(DONE, exit_code=exit_code, reason=reason, finished_at=995.0)
    pod = an_interrupted_pod(agent=agent, delete_requested_at=998.0)

    assert judge_pod(pod, LIMITS, NOW).stage is stage


def test_an_agent_that_was_killed_and_no_removal_is_graded() -> None:
    agent = replace(DONE, exit_code=137, reason="Error")

    verdict = judge_pod(an_interrupted_pod(agent=agent), LIMITS, NOW)

    assert verdict == Verdict(Stage.ENDED, seal=INTERRUPTED, agent_cause=Cause.AGENT_FAILED)


def test_a_session_that_no_agent_could_start_is_the_worlds_failure() -> None:
    seal = replace(INTERRUPTED, started_at=None)
    agent = replace(DONE, exit_code=125)

    verdict = judge_pod(an_interrupted_pod(agent=agent, seal=seal), LIMITS, NOW)

    assert verdict == Verdict(
        Stage.PLANNED,
        cause=Cause.WORLD_FAILED,
        message="the world did not answer when the agent started",
    )


def test_an_agent_cannot_make_its_session_unscored_by_the_wrappers_exit_code() -> None:
    agent = replace(DONE, exit_code=125)

    verdict = judge_pod(an_interrupted_pod(agent=agent), LIMITS, NOW)

    assert verdict == Verdict(Stage.ENDED, seal=INTERRUPTED, agent_cause=Cause.AGENT_FAILED)


def test_an_interrupted_seal_that_is_being_graded_was_proven_while_its_pod_was_there() -> None:
    gone = judge_seal(INTERRUPTED, None)
    proven = judge_seal(INTERRUPTED, None, is_proven=True)

    assert (gone.cause, proven) == (
        Cause.POD_DELETED,
        Verdict(Stage.ENDED, seal=INTERRUPTED),
    )


def test_an_interrupted_seal_is_judged_by_the_pod_as_it_was_last_seen() -> None:
    evicted = a_pod(disrupted_at=998.0, disruption="Eviction API: evicting")
    ended_first = an_interrupted_pod(disrupted_at=998.0, seal=None)

    assert judge_seal(INTERRUPTED, evicted) == Verdict(
        Stage.PLANNED, cause=Cause.EVICTED, message="Eviction API: evicting"
    )
    assert judge_seal(INTERRUPTED, ended_first).stage is Stage.ENDED


@pytest.mark.parametrize(
    ("last", "cause", "words"),
    [
        (None, Cause.POD_DELETED, "its Pod is gone and left no sealed end"),
        (a_pod(), Cause.POD_DELETED, "its Pod is gone and left no sealed end"),
        (
            a_pod(delete_requested_at=998.0),
            Cause.POD_DELETED,
            "its Pod is gone and left no sealed end",
        ),
        (
            a_pod(disrupted_at=998.0, disruption="Eviction API: evicting"),
            Cause.EVICTED,
            "Eviction API: evicting",
        ),
        (a_pod(reason="NodeLost", message="node n1 is gone"), Cause.NODE_LOST, "node n1 is gone"),
    ],
    ids=["never seen", "acting", "deleted", "evicted", "node lost"],
)
def test_a_pod_that_is_gone_names_what_was_last_seen_of_it(
    last: PodSeen | None, cause: Cause, words: str
) -> None:
    assert judge_vanished(last) == Verdict(Stage.PLANNED, cause=cause, message=words)


def test_a_pod_whose_deletion_nobody_carries_out_is_on_a_node_that_is_lost() -> None:
    pod = a_pod(delete_requested_at=1_000.0)
    until = 1_000.0 + DELETE_SLACK_SECONDS

    before, after = (judge_pod(pod, LIMITS, moment) for moment in (until - 1, until))

    assert before == Verdict(Stage.ACTING, message="its Pod was deleted", look_again_at=until)
    assert after == Verdict(
        Stage.PLANNED,
        cause=Cause.NODE_LOST,
        message="its Pod was deleted; no kubelet ended it within two minutes",
    )


def test_an_end_that_is_not_sealed_in_time_is_the_stores_failure() -> None:
    pod = a_pod(agent=DONE)
    until = 995.0 + LIMITS.seal_wait_seconds + SEAL_SLACK_SECONDS

    before, after = (judge_pod(pod, LIMITS, moment) for moment in (until - 1, until))

    assert before == Verdict(Stage.ACTING, look_again_at=until)
    assert after == Verdict(
        Stage.PLANNED,
        cause=Cause.STORE_UNAVAILABLE,
        message="the session's end could not be sealed in time",
    )


def test_a_setup_that_failed_names_its_own_words() -> None:
    setup = replace(DONE, exit_code=1, reason="Error", message="no solution for this task")

    verdict = judge_pod(a_pod(setup=setup, world=WAITING, agent=WAITING), LIMITS, 985.0)

    assert verdict == Verdict(
        Stage.PLANNED,
        cause=Cause.AGENT_SETUP_FAILED,
        message="the setup step ended (exit code 1, Error, no solution for this task)",
    )


def test_the_worlds_own_cause_comes_before_what_kubernetes_says_of_it() -> None:
    world = replace(DONE, exit_code=1)
    pod = a_pod(world=world, world_cause=Cause.STORE_UNAVAILABLE, world_message="no route to host")

    verdict = judge_pod(pod, LIMITS, NOW)

    assert verdict == Verdict(
        Stage.PLANNED, cause=Cause.STORE_UNAVAILABLE, message="no route to host"
    )


@pytest.mark.parametrize("reason", ["DeadlineExceeded", "NodeAffinity", "UnexpectedAdmissionError"])
def test_a_pod_that_was_ended_as_a_whole_proves_no_end(reason: str) -> None:
    pod = an_interrupted_pod(reason=reason, message="Pod was active too long")

    verdict = judge_pod(pod, LIMITS, NOW)

    assert verdict == Verdict(
        Stage.PLANNED, cause=Cause.POD_DELETED, message="Pod was active too long"
    )
