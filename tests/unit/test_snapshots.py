"""Pods and Jobs as a kubelet and Kubernetes 1.34 write them, and what is read of them.

The files in ``golden/kubelet`` come from a real cluster: metadata and spec cut to what is used.
"""

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wavetank.api.wire import CheckReport, GradeRecord, GradeReport, Score
from wavetank.controller import snapshots
from wavetank.core.causes import Cause
from wavetank.core.identity import AttemptKey, verifier_job_name
from wavetank.core.lifecycle import Stage
from wavetank.core.observed import Container, ContainerPhase, End, Limits, PodSeen, SealSeen
from wavetank.core.verdicts import Verdict, judge_pod
from wavetank.kube.objects import controller_of

GOLDEN = Path(__file__).parent / "golden" / "kubelet"
ORACLE = "38e02e7f-eaa0-465b-bfe7-d87e915ffd75"
SLOW = "fa7bbe05-c796-4494-b95f-7a1b86d7777c"

INITIALIZING = Container(ContainerPhase.WAITING, reason="PodInitializing")


def kubelet(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text())
    return document


def seen(pod: dict[str, Any]) -> PodSeen:
    key, owner = snapshots.attempt_key(pod), controller_of(pod)
    assert key is not None
    assert owner is not None
    return snapshots.pod_seen(pod, key, owner.uid)


def running(since: int) -> Container:
    return Container(ContainerPhase.RUNNING, started_at=float(since))


def ended(since: int, until: int, code: int = 0, reason: str = "Completed") -> Container:
    return Container(
        ContainerPhase.TERMINATED,
        reason=reason,
        exit_code=code,
        started_at=float(since),
        finished_at=float(until),
    )


A_STARTING_POD = PodSeen(
    name="crm-oracle-38e02e-13-a1",
    uid="b4b6fbcf-74d4-4ee7-a2c3-e41a333e43b3",
    key=AttemptKey(13, 1),
    created_at=1796087421.0,
    scheduled_at=1796087421.0,
    ends_at=1796089401.0,
    setup=running(1796087423),
    world=INITIALIZING,
    agent=INITIALIZING,
)
AN_ACTING_POD = PodSeen(
    name="slow-fa7bbe-1-a2",
    uid="fc83ef40-11a1-4710-875e-1f1d11f3f66a",
    key=AttemptKey(1, 2),
    created_at=1796087493.0,
    scheduled_at=1796087493.0,
    ends_at=1796089473.0,
    setup=ended(1796087494, 1796087500),
    world=running(1796087501),
    agent=running(1796087504),
)
A_SEALED_POD = PodSeen(
    name="crm-oracle-38e02e-12-a1",
    uid="0ca72ee1-c33d-43fc-8159-b86cb096d9a8",
    key=AttemptKey(12, 1),
    created_at=1796087421.0,
    scheduled_at=1796087421.0,
    ends_at=1796089401.0,
    setup=ended(1796087422, 1796087426),
    world=ended(1796087427, 1796087445),
    agent=ended(1796087439, 1796087443),
    seal=SealSeen(
        End.CLOSED,
        "sha256:3212980dbbee8514286042b0b0c3b579b17980fd9e6a80a76d8b5a22126fd3a5",
        "sha256:7f312852b63e9eae9e9ac3278563169ae450a6f58d4f4fefa990055d2d97f42a",
        exit_code=0,
        started_at=1796087441.028,
        ended_at=1796087442.529,
    ),
)
A_DELETED_POD = PodSeen(
    name="slow-fa7bbe-0-a1",
    uid="b06efa2f-7118-43e8-a4d3-cd4ad2c0af9c",
    key=AttemptKey(0, 1),
    created_at=1796087447.0,
    scheduled_at=1796087447.0,
    # It was asked for four seconds sooner: the kubelet's own last deletion hides that.
    delete_requested_at=1796087477.0,
    has_grace=False,
    ends_at=1796089427.0,
    setup=ended(1796087450, 1796087456),
    world=ended(1796087456, 1796087477),
    agent=ended(1796087459, 1796087473, 143, "Error"),
    seal=SealSeen(
        End.INTERRUPTED,
        "sha256:38ee465d3874519ef607805727b1fff42aa8a4f2d9b871e96288ac8b47c78a72",
        "sha256:f9236fdb1891778ed5bc9daa9994832a31595f7b4b483969fad3745220adc2b7",
        started_at=1796087459.372,
        ended_at=1796087473.149,
    ),
)
AN_EVICTED_POD = PodSeen(
    name="slow-fa7bbe-1-a1",
    uid="67623865-b809-4f16-ad48-794a2386258c",
    key=AttemptKey(1, 1),
    created_at=1796087447.0,
    scheduled_at=1796087447.0,
    delete_requested_at=1796087473.0,
    disrupted_at=1796087473.0,
    disruption="Eviction API: evicting",
    ends_at=1796089428.0,
    setup=ended(1796087450, 1796087455),
    world=running(1796087457),
    agent=running(1796087459),
)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rollout-starting", A_STARTING_POD),
        ("rollout-acting", AN_ACTING_POD),
        ("rollout-sealed", A_SEALED_POD),
        ("rollout-deleted", A_DELETED_POD),
        ("rollout-evicted", AN_EVICTED_POD),
    ],
)
def test_a_rollouts_pod_is_read_whole(name: str, value: PodSeen) -> None:
    assert seen(kubelet(name)) == value


@pytest.mark.parametrize("code", [143, 0], ids=["told to stop", "ended as told"])
def test_a_pod_deleted_while_acting_is_not_graded_whatever_its_last_state_seems_to_say(
    code: int,
) -> None:
    pod = kubelet("rollout-deleted")
    pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] = code

    verdict = judge_pod(seen(pod), Limits(parallelism=1), 1796087478.0)

    assert (verdict.stage, verdict.cause) == (Stage.PLANNED, Cause.POD_DELETED)


def test_what_the_setup_step_said_last_is_told_and_what_an_agent_says_is_not() -> None:
    pod = kubelet("rollout-sealed")
    for status in (*pod["status"]["initContainerStatuses"], *pod["status"]["containerStatuses"]):
        if status["name"] != "world":
            status["state"]["terminated"]["message"] = f"words of {status['name']}\n"

    value = seen(pod)

    assert value.setup == replace(ended(1796087422, 1796087426), message="words of solution")
    assert value.agent == A_SEALED_POD.agent


def test_a_pod_that_its_node_refused_has_no_container_and_names_no_condition() -> None:
    pod = snapshots.pod_seen(kubelet("rollout-refused"), AttemptKey(0, 1), SLOW)
    words = (
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 500000, used: 900, "
        "capacity: 2000"
    )

    assert (pod.reason, pod.message, pod.world, pod.agent) == ("OutOfcpu", words, None, None)
    assert judge_pod(pod, Limits(parallelism=1), pod.created_at) == Verdict(
        Stage.PLANNED,
        cause=Cause.UNSCHEDULABLE,
        message=f"its node refused it: OutOfcpu: {words}",
    )


@pytest.mark.parametrize(
    ("run", "ordinal"), [(SLOW, 12), (ORACLE, 11)], ids=["another Run", "another rollout"]
)
def test_a_seal_of_another_attempt_is_none(run: str, ordinal: int) -> None:
    assert snapshots.pod_seen(kubelet("rollout-sealed"), AttemptKey(ordinal, 1), run).seal is None


def test_what_a_world_said_before_it_was_started_again_is_still_known() -> None:
    pod = kubelet("rollout-sealed")
    (world,) = [s for s in pod["status"]["initContainerStatuses"] if s["name"] == "world"]
    world["lastState"] = world["state"]
    world["state"] = {"running": {"startedAt": "2026-12-01T01:10:46Z"}}
    world["restartCount"] = 1

    again = seen(pod)

    assert again.seal == A_SEALED_POD.seal
    assert again.world == Container(
        ContainerPhase.RUNNING,
        reason="Completed",
        exit_code=0,
        started_at=1796087446.0,
        restarts=1,
    )


@pytest.mark.parametrize("text", ["", "{", '{"seal": 1}', "panic: out of memory", '{"x": null}'])
def test_a_message_that_the_world_did_not_write_is_no_message(text: str) -> None:
    pod = kubelet("rollout-sealed")
    (world,) = [s for s in pod["status"]["initContainerStatuses"] if s["name"] == "world"]
    world["state"]["terminated"]["message"] = text

    assert (seen(pod).seal, seen(pod).world_cause) == (None, None)


@pytest.mark.parametrize(
    ("ordinal", "attempt"),
    [
        ("-5", "1"),
        (" 5", "1"),
        ("\uff15", "1"),
        ("5", "\u00b2"),
        ("5", "1e3"),
        ("", "1"),
        ("5", "1" * 4000),
        (None, "1"),
    ],
)
def test_annotations_that_the_operator_did_not_write_name_no_attempt(
    ordinal: str | None, attempt: str
) -> None:
    pod = kubelet("rollout-acting")
    pod["metadata"]["annotations"]["wavetank.dev/ordinal"] = ordinal
    pod["metadata"]["annotations"]["wavetank.dev/attempt"] = attempt

    assert snapshots.attempt_key(pod) is None


def test_a_pod_without_annotations_and_status_is_read() -> None:
    pod = {"metadata": {"name": "p", "uid": "u", "creationTimestamp": "2026-12-01T01:10:47Z"}}

    assert snapshots.attempt_key(pod) is None
    assert snapshots.pod_seen(pod, AttemptKey(0, 1), SLOW) == PodSeen(
        "p", "u", AttemptKey(0, 1), created_at=1796087447.0
    )


def test_a_verifier_job_names_its_members_and_its_try() -> None:
    job = kubelet("verifier-job-acting")
    owner = controller_of(job)
    assert owner is not None

    form = snapshots.verifier_job_of(job)

    assert form == ((AttemptKey(4, 1),), 1)
    assert job["metadata"]["name"] == verifier_job_name(owner.name, owner.uid, form[0], 0, 1)


@pytest.mark.parametrize("text", ["", ",", "12", "12.1,", "12.1.1", "-1.1", "12.1 ,13.1", "a.b"])
def test_members_in_any_other_form_are_none(text: str) -> None:
    assert snapshots.members_of(text) == ()


@pytest.mark.parametrize("text", ["", "\u00b2", "-1", "one"])
def test_a_try_in_any_other_form_makes_no_verifier_job(text: str) -> None:
    job = kubelet("verifier-job-acting")
    job["metadata"]["annotations"]["wavetank.dev/try"] = text

    assert snapshots.verifier_job_of(job) is None


def test_a_judge_that_runs_has_said_nothing() -> None:
    pod = kubelet("verifier-acting")

    assert (snapshots.grade_report(pod), snapshots.judge_is_over(pod)) == (None, False)
    assert snapshots.judge_started_at([pod]) == 1796087670.0
    assert (snapshots.pod_problem([pod]), snapshots.judge_words([pod])) == ("", "")


def test_a_judges_report_is_read_from_its_own_message() -> None:
    pod = kubelet("verifier-done")
    grader = "sha256:1e7649e676bc4791afd9ef11d1fd2da4b47a4a094649607405f00dbc118e7b46"
    seals = {
        1: "sha256:b5a8d1741a74af61dec478ad565825627d5af78efa98045c5119fd994373dc84",
        2: "sha256:d0ac08a1213752a2c2ec86cd01bd42645934491e4465652571240b80b7ae4514",
        3: "sha256:2e5d25ef71deac5d678c8953f0141b68e74522eee80918b3d468c06fd52d70ab",
    }

    assert snapshots.grade_report(pod) == GradeReport(
        sha256="sha256:abf56a0b68c3eeae94b323617dc2a074251205b60b0aa7e339b7ad6b6c7bbaff",
        n=3,
        records=[
            GradeRecord(
                ordinal=ordinal,
                attempt=1,
                task="ten",
                seal=seal,
                grader=grader,
                reward=1.0,
                scores=[Score(name="reached", value=1.0)],
            )
            for ordinal, seal in seals.items()
        ],
    )
    assert snapshots.judge_words([pod]) == "the judge ended with exit code 0, Completed"


def test_what_grade_left_as_its_message_is_nothing() -> None:
    pod = kubelet("verifier-done")
    judge, grade = (
        pod["status"]["containerStatuses"],
        copy.deepcopy(pod["status"]["containerStatuses"]),
    )
    (message,) = [s["state"]["terminated"].pop("message") for s in judge if s["name"] == "judge"]
    for status in judge:
        if status["name"] == "grade":
            status["state"]["terminated"]["message"] = message
    assert grade != judge

    assert snapshots.grade_report(pod) is None


def test_a_checks_report_is_no_grading() -> None:
    pod = kubelet("check-done")

    assert snapshots.check_report(pod) == CheckReport(
        sha256="sha256:528402a07fac1f74a00763e4f271f3a61908da5dde7f7e2a940be0f51322c204"
    )
    assert snapshots.grade_report(pod) is None


def test_a_job_is_finished_when_it_is_complete_or_failed() -> None:
    failed = kubelet("check-job-complete")
    for condition in failed["status"]["conditions"]:
        if condition["type"] == "Complete":
            condition |= {"type": "Failed", "reason": "BackoffLimitExceeded", "message": "limit"}

    assert snapshots.is_finished(kubelet("check-job-complete"))
    assert not snapshots.is_finished(kubelet("verifier-job-acting"))
    assert snapshots.is_finished(failed)
    assert snapshots.job_words(failed) == "BackoffLimitExceeded: limit"
    assert snapshots.job_words(kubelet("check-job-complete")) == ""


def test_a_job_whose_pod_ran_out_of_time_says_so() -> None:
    pod, job = kubelet("verifier-acting"), kubelet("verifier-job-acting")
    late = copy.deepcopy(pod)
    late["status"] |= {"phase": "Failed", "reason": "DeadlineExceeded"}

    assert not snapshots.is_deadline(job, [pod])
    assert snapshots.is_deadline(job, [late])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are there"}
                ]
            },
            "0/1 nodes are there",
        ),
        (
            {
                "containerStatuses": [
                    {"name": "judge", "state": {"waiting": {"reason": "A", "message": "no image"}}}
                ]
            },
            "no image",
        ),
        (
            {"containerStatuses": [], "reason": "Evicted", "message": "low on disk"},
            "Evicted: low on disk",
        ),
        ({"containerStatuses": [], "reason": "Evicted"}, "Evicted"),
    ],
    ids=["no node", "no image", "evicted", "evicted without words"],
)
def test_why_a_jobs_pod_does_not_run_is_said_in_kubernetes_words(
    change: dict[str, Any], words: str
) -> None:
    pod = kubelet("verifier-acting")
    pod["status"] |= change

    assert snapshots.pod_problem([pod]) == words


def test_images_are_those_that_run_by_container() -> None:
    assert snapshots.image_ids(kubelet("rollout-sealed")) == {
        "solution": "wavetank.local/world@sha256:"
        "80e88fd1c332877e649ad9b0c7fe54c87914298a2b5e4e89c30d72242807938d",
        "world": "wavetank.local/world@sha256:"
        "80e88fd1c332877e649ad9b0c7fe54c87914298a2b5e4e89c30d72242807938d",
        "agent": "wavetank.local/agent@sha256:"
        "ff02057333d77dd04058e485c8e965ff8d6e9c0bff8b2fefe40a7b6ef475a72f",
    }
    assert snapshots.image_ids(kubelet("rollout-refused")) == {}
