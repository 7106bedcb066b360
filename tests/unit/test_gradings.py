"""How sealed rollouts come to verifier Jobs, and what is made of what these report."""

from dataclasses import replace
from typing import Any

import pytest

from wavetank.core.actions import (
    DeleteJob,
    DeletePod,
    GradeMember,
    StartGrading,
    WriteLedger,
)
from wavetank.core.causes import Cause
from wavetank.core.decide import decide
from wavetank.core.gradings import (
    BATCH_WAIT_SECONDS,
    JOB_SLACK_SECONDS,
    JOB_START_SECONDS,
    PENDING_SECONDS,
)
from wavetank.core.lifecycle import Stage
from wavetank.core.observed import End, FailedGrading, JobSeen, Ledger, Record
from wavetank.testing.seen import (
    NOW,
    a_job,
    a_member,
    a_pod,
    a_run,
    a_seal,
    a_sealed_pod,
    graded,
    key,
)


def test_a_sealed_rollout_waits_for_company_while_others_act() -> None:
    seen = a_run(total=2, parallelism=2, pods=(a_sealed_pod(0), a_pod(1)), ended_seen={key(0): NOW})

    early = decide(seen, NOW)
    late = decide(seen, NOW + BATCH_WAIT_SECONDS)

    assert early.actions == ()
    assert early.look_again_after == BATCH_WAIT_SECONDS
    assert late.actions == (StartGrading((a_member(0),), 1),)


def test_sixteen_sealed_rollouts_go_at_once_and_the_last_ones_do_not_wait() -> None:
    pods = tuple(a_sealed_pod(ordinal) for ordinal in range(18))

    decision = decide(a_run(total=18, pods=pods), NOW)

    assert decision.actions == (
        StartGrading(tuple(a_member(n) for n in range(16)), 1),
        StartGrading((a_member(16), a_member(17)), 1),
    )


def test_a_null_inside_a_valid_record_is_final() -> None:
    job = a_job(0, finished=True, graded=(graded(0, None, Cause.REWARD_INVALID),))

    decision = decide(a_run(pods=(a_sealed_pod(0),), jobs=(job,)), NOW)

    (write,) = decision.actions
    assert isinstance(write, WriteLedger)
    (record,) = write.entries
    assert isinstance(record, Record)
    assert (record.reward, record.cause) == (None, Cause.REWARD_INVALID)


def test_a_record_for_another_seal_is_not_taken() -> None:
    wrong = replace(graded(0), seal="seal-of-another")
    job = a_job(0, finished=True, graded=(wrong,))

    decision = decide(a_run(pods=(a_sealed_pod(0),), jobs=(job,)), NOW)

    (write,) = decision.actions
    assert isinstance(write, WriteLedger)
    assert [type(entry) for entry in write.entries] == [FailedGrading]


def test_a_member_without_a_record_is_graded_again_alone_and_three_times_in_all() -> None:
    pod = a_sealed_pod(0)
    tries = tuple(
        FailedGrading(key(0), number, Cause.VERIFIER_FAILED, "no record") for number in (1, 2)
    )

    again = decide(
        a_run(pods=(pod,), ledger=Ledger(failed_gradings={0: tries})),
        NOW,
    )
    assert again.actions == (StartGrading((a_member(0),), 3),)

    third = FailedGrading(key(0), 3, Cause.VERIFIER_TIMEOUT, "deadline")
    given_up = decide(
        a_run(pods=(pod,), ledger=Ledger(failed_gradings={0: (*tries, third)})),
        NOW,
    )
    (write,) = given_up.actions
    assert isinstance(write, WriteLedger)
    (record,) = write.entries
    assert isinstance(record, Record)
    assert (record.reward, record.cause, record.message) == (
        None,
        Cause.VERIFIER_TIMEOUT,
        "deadline",
    )


def test_of_two_jobs_for_one_rollout_the_one_that_reported_counts_and_once() -> None:
    report = a_job(0, finished=True, graded=(graded(0),))
    twin = replace(a_job(0), name="twin", uid="twin-uid")

    decision = decide(a_run(pods=(a_sealed_pod(0),), jobs=(twin, report)), NOW)

    (write,) = decision.actions
    assert isinstance(write, WriteLedger)
    assert [type(entry) for entry in write.entries] == [Record]


def test_a_job_of_many_members_has_the_time_of_each_of_them() -> None:
    pods = tuple(a_sealed_pod(n) for n in range(4))
    job = a_job(0, 1, 2, 3, started_at=NOW)
    seen = a_run(total=4, pods=pods, jobs=(job,))
    overdue = NOW + 4 * seen.limits.verifier_seconds + JOB_SLACK_SECONDS

    before, after = decide(seen, overdue - 1), decide(seen, overdue)

    assert (before.actions, before.stages) == ((), dict.fromkeys(range(4), Stage.GRADING))
    assert before.look_again_after == 1.0
    assert after.actions == (
        WriteLedger(
            tuple(
                FailedGrading(
                    key(n),
                    1,
                    Cause.VERIFIER_FAILED,
                    "the verifier ended without a record for this rollout",
                )
                for n in range(4)
            )
        ),
    )


def test_records_that_the_store_does_not_give_out_are_waited_for_however_long() -> None:
    job = a_job(0, finished=True, pending=True, problem="the store does not answer")
    seen = a_run(pods=(a_sealed_pod(0),), jobs=(job,))

    decision = decide(seen, NOW + 1_000_000)

    assert (decision.actions, decision.stages) == ((), {0: Stage.GRADING})
    assert (decision.problem, decision.look_again_after) == (
        "the store does not answer",
        PENDING_SECONDS,
    )


@pytest.mark.parametrize(
    ("job", "moment"),
    [
        (
            a_job(0, started_at=None, problem="exceeded quota"),
            996.0 + JOB_START_SECONDS,
        ),
        (a_job(0, finished=True, store_away=True, problem="exceeded quota"), NOW),
    ],
    ids=["its Pod does not start", "it could not reach the store"],
)
def test_a_job_that_never_came_to_grading_is_made_anew_and_costs_no_try(
    job: JobSeen, moment: float
) -> None:
    seen = a_run(pods=(a_sealed_pod(0),), jobs=(job,))

    first = decide(seen, moment)
    gone = decide(replace(seen, jobs=()), moment)

    assert (first.actions, first.stages) == (
        (DeleteJob("job", "job-uid"),),
        {0: Stage.GRADING},
    )
    assert first.problem == "exceeded quota"
    assert gone.actions == (StartGrading((a_member(0),), 1),)


def test_a_job_whose_pod_waits_is_given_time() -> None:
    seen = a_run(pods=(a_sealed_pod(0),), jobs=(a_job(0, started_at=None, problem="no node"),))

    decision = decide(seen, 996.0 + JOB_START_SECONDS - 1)

    assert (decision.actions, decision.stages) == ((), {0: Stage.GRADING})
    assert (decision.problem, decision.look_again_after) == ("no node", 1.0)


@pytest.mark.parametrize(
    "evidence",
    [
        {"jobs": (a_job(0),)},
        {
            "ledger": Ledger(
                failed_gradings={0: (FailedGrading(key(0), 1, Cause.VERIFIER_FAILED, ""),)}
            )
        },
    ],
    ids=["a Job grades it", "a Job has tried to"],
)
def test_an_interrupted_end_that_went_to_grading_stays_good_when_its_pod_is_gone(
    evidence: dict[str, Any],
) -> None:
    seen = a_run(
        vanished=frozenset({key(0)}), seals={key(0): a_seal(0, End.INTERRUPTED)}, **evidence
    )

    decision = decide(seen, NOW)

    assert decision.stages == {0: Stage.GRADING}


def test_a_used_up_quota_holds_gradings_back_too() -> None:
    seen = a_run(pods=(a_sealed_pod(0),), blocked_until=NOW + 5, blocked_by="exceeded quota: jobs")

    decision = decide(seen, NOW)

    assert (decision.actions, decision.stages) == ((), {0: Stage.ENDED})
    assert (decision.problem, decision.look_again_after) == ("exceeded quota: jobs", 5.0)


def test_tries_used_up_are_recorded_also_while_nothing_can_be_created() -> None:
    tries = tuple(FailedGrading(key(0), n, Cause.VERIFIER_FAILED, "no record") for n in (1, 2, 3))
    seen = a_run(
        pods=(a_sealed_pod(0),),
        ledger=Ledger(failed_gradings={0: tries}),
        blocked_until=NOW + 5,
    )

    (write,) = decide(seen, NOW).actions

    assert isinstance(write, WriteLedger)
    assert [type(entry) for entry in write.entries] == [Record]


def test_a_failed_try_is_written_before_its_job_is_deleted() -> None:
    seen = a_run(pods=(a_sealed_pod(0),), jobs=(a_job(0, finished=True, problem="exit code 1"),))
    entry = FailedGrading(key(0), 1, Cause.VERIFIER_FAILED, "exit code 1")

    first = decide(seen, NOW)
    second = decide(replace(seen, ledger=Ledger(failed_gradings={0: (entry,)})), NOW)

    assert first.actions == (WriteLedger((entry,)),)
    assert second.actions == (StartGrading((a_member(0),), 2), DeleteJob("job", "job-uid"))


def test_a_job_that_its_deadline_ended_is_a_verifier_that_took_too_long() -> None:
    job = a_job(0, finished=True, timed_out=True)

    (write,) = decide(a_run(pods=(a_sealed_pod(0),), jobs=(job,)), NOW).actions

    assert isinstance(write, WriteLedger)
    (entry,) = write.entries
    assert isinstance(entry, FailedGrading)
    assert entry.cause is Cause.VERIFIER_TIMEOUT


def test_a_full_job_goes_at_once_although_others_still_act() -> None:
    pods = (*(a_sealed_pod(n) for n in range(16)), a_pod(16))

    decision = decide(a_run(total=17, parallelism=20, pods=pods), NOW)

    assert decision.actions == (StartGrading(tuple(a_member(n) for n in range(16)), 1),)


def test_a_job_for_an_earlier_attempt_says_nothing_of_a_later_one() -> None:
    pod = a_sealed_pod(0, attempt=2)

    decision = decide(a_run(pods=(pod,), jobs=(a_job(0),)), NOW)

    assert decision.actions == (StartGrading((GradeMember(key(0, 2), "seal-0", "snap-0"),), 1),)


def test_a_job_stays_until_every_member_is_recorded() -> None:
    seen = a_run(
        total=2,
        pods=(a_sealed_pod(0), a_sealed_pod(1)),
        jobs=(a_job(0, 1),),
        ledger=Ledger(records={0: Record(key(0), 1.0)}),
    )

    assert decide(seen, NOW).actions == (DeletePod("r-0-a1", "uid-0-1"),)
