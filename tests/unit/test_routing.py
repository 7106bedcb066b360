"""Which object of ours a Pod or Job belongs to."""

import pytest

from wavetank.controller.queue import Key
from wavetank.controller.routing import key_of
from wavetank.kube.objects import JOBS, RUNS, Manifest, ObjectName, Resource, owner_reference

JOB_UID = "job-uid"


def an_object(name: str, uid: str, *owners: Manifest) -> Manifest:
    return {
        "metadata": {
            "namespace": "bench",
            "name": name,
            "uid": uid,
            "ownerReferences": list(owners),
        }
    }


RUN = owner_reference(RUNS, "crm", "run-uid")
JOB = owner_reference(JOBS, "verify", JOB_UID)
JOBS_KNOWN = {ObjectName("bench", "verify"): an_object("verify", JOB_UID, RUN)}


def test_a_pod_of_a_run_belongs_to_the_run() -> None:
    assert key_of(an_object("p", "1", RUN), {}) == Key("Run", "bench", "crm")


def test_a_pod_of_a_runs_job_belongs_to_the_run() -> None:
    assert key_of(an_object("p", "1", JOB), JOBS_KNOWN) == Key("Run", "bench", "crm")


def test_a_pod_of_an_earlier_job_of_that_name_belongs_to_nobody() -> None:
    earlier = owner_reference(JOBS, "verify", "earlier-uid")

    assert key_of(an_object("p", "1", earlier), JOBS_KNOWN) is None


@pytest.mark.parametrize(
    "owners",
    [
        [],
        [owner_reference(Resource("apps", "v1", "replicasets", "ReplicaSet"), "rs", "1")],
        [owner_reference(Resource("jobset.example", "v1", "runs", "Run"), "crm", "1")],
        [{**RUN, "controller": False}],
    ],
    ids=["no owner", "a ReplicaSet", "another group's Run", "an owner that does not control"],
)
def test_nobodys_pod_is_for(owners: list[Manifest]) -> None:
    assert key_of(an_object("p", "1", *owners), JOBS_KNOWN) is None
