"""What the operator creates, as whole objects and by the properties that all must have."""

import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from wavetank.agents.settings import read_solution_settings
from wavetank.api.fields import Resources
from wavetank.api.plan import Plan
from wavetank.api.run import PodOverrides
from wavetank.api.wire import CheckSpec, GradeSpec, SolutionSpec
from wavetank.manifests.objects import Manifest
from wavetank.manifests.pod import Amounts, resources
from wavetank.manifests.rollout import rollout_pod
from wavetank.manifests.verifier import verifier_job
from wavetank.testing.created import (
    EVERYTHING,
    OVERRIDES,
    RUN,
    STORE,
    a_check_job,
    a_plan,
    a_rollout,
    a_verifier_job,
    digest,
)
from wavetank.worlds.grading.settings import judge_settings
from wavetank.worlds.settings import read_settings

GOLDEN = Path(__file__).parent / "golden"
EVERY_OBJECT = pytest.mark.parametrize("built", EVERYTHING.values(), ids=EVERYTHING.keys())
PODS = {
    name: built["spec"] if built["kind"] == "Pod" else built["spec"]["template"]["spec"]
    for name, built in EVERYTHING.items()
    if built["kind"] in {"Pod", "Job"}
}
EVERY_POD = pytest.mark.parametrize("spec", PODS.values(), ids=PODS.keys())


def _containers(spec: Manifest) -> list[Manifest]:
    return [*spec.get("initContainers", []), *spec["containers"]]


def _named(spec: Manifest, name: str) -> Manifest:
    (found,) = (each for each in _containers(spec) if each["name"] == name)
    return found


def _mounts(pod: str, container: str) -> set[str]:
    return {mount["mountPath"] for mount in _named(PODS[pod], container)["volumeMounts"]}


def _env(container: Manifest) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in container["env"]}


def _names(built: object) -> Iterator[str]:
    """Yield all keys and all string values."""
    if isinstance(built, dict):
        for key, value in built.items():
            yield key
            yield from _names(value)
    elif isinstance(built, list):
        for value in built:
            yield from _names(value)
    elif isinstance(built, str):
        yield built


@pytest.mark.parametrize("name", EVERYTHING)
def test_the_object_is_exactly_the_golden_one(name: str) -> None:
    assert EVERYTHING[name] == yaml.safe_load((GOLDEN / f"{name}.yaml").read_text()), (
        "if the change is wanted: python -m wavetank.testing.created tests/unit/golden"
    )


@EVERY_OBJECT
def test_names_fit_and_the_owner_takes_the_object_along(built: Manifest) -> None:
    meta = built["metadata"]
    (owner,) = meta["ownerReferences"]

    assert len(meta["name"]) <= 63
    assert (owner["controller"], owner["blockOwnerDeletion"]) == (True, True)
    assert meta["namespace"] == "bench"


@EVERY_OBJECT
def test_argo_cd_finds_no_label_of_its_own(built: Manifest) -> None:
    foreign = [
        text for text in _names(built) if text == "app.kubernetes.io/instance" or "argocd" in text
    ]

    assert foreign == []


@EVERY_POD
def test_the_pod_meets_the_restricted_pod_security_standard(spec: Manifest) -> None:
    allowed_volumes = {"name", "configMap", "emptyDir", "projected", "secret"}

    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] != 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC", "hostUsers"} & spec.keys()
    assert all(volume.keys() <= allowed_volumes for volume in spec["volumes"])
    for each in _containers(spec):
        context = each["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert context["readOnlyRootFilesystem"] is True
        assert not {"privileged", "procMount", "runAsUser"} & context.keys()
        assert "ports" not in each


@EVERY_POD
def test_the_pod_has_no_credentials_of_the_cluster_and_ends(spec: Manifest) -> None:
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False
    assert spec["restartPolicy"] == "Never"
    assert spec["activeDeadlineSeconds"] > 0
    assert "serviceAccountName" not in spec


@EVERY_POD
def test_everything_that_a_container_uses_is_bounded(spec: Manifest) -> None:
    for each in _containers(spec):
        for side in ("requests", "limits"):
            assert each["resources"][side].keys() == {"cpu", "memory", "ephemeral-storage"}
    for volume in spec["volumes"]:
        assert "sizeLimit" in volume.get("emptyDir", {"sizeLimit": "not one"})


@EVERY_POD
def test_every_mount_has_its_volume_and_no_two_containers_share_tmp(spec: Manifest) -> None:
    volumes = {volume["name"] for volume in spec["volumes"]}
    mounts = [(each["name"], mount) for each in _containers(spec) for mount in each["volumeMounts"]]
    tmp = [mount["name"] for _, mount in mounts if mount["mountPath"] == "/tmp"]

    assert {mount["name"] for _, mount in mounts} == volumes
    assert len(set(tmp)) == len(tmp) == len(_containers(spec))


@pytest.mark.parametrize(
    ("name", "container", "key"),
    [
        ("rollout-oracle", "world", "act"),
        ("rollout-oracle", "solution", "solutions"),
        ("rollout-nop-overridden", "world", "act"),
        ("verifier-job", "judge", "grade"),
        ("check-job", "judge", "grade"),
    ],
)
def test_a_token_is_mounted_by_key_where_it_is_needed(name: str, container: str, key: str) -> None:
    spec = PODS[name]
    mounted = {mount["name"] for mount in _named(spec, container)["volumeMounts"]}
    keys = [
        item["key"]
        for volume in spec["volumes"]
        if volume["name"] in mounted and "secret" in volume
        for item in volume["secret"]["items"]
    ]

    assert keys == [key]


@pytest.mark.parametrize(
    ("name", "container"),
    [("rollout-oracle", "agent"), ("verifier-job", "grade"), ("check-job", "grade")],
)
def test_what_runs_foreign_code_has_no_token_and_no_document(name: str, container: str) -> None:
    spec = PODS[name]
    secrets = {volume["name"] for volume in spec["volumes"] if "secret" in volume}
    mounted = {mount["name"] for mount in _named(spec, container)["volumeMounts"]}

    assert mounted & secrets == set()
    assert all(STORE not in value for value in _env(_named(spec, container)).values())


def test_graders_are_named_nowhere_in_a_rollout_pod() -> None:
    assert not any(digest("b") in text for text in _names(EVERYTHING["rollout-oracle"]))


def _apply_env(monkeypatch: pytest.MonkeyPatch, pod: str, container: str) -> None:
    for name, value in _env(_named(PODS[pod], container)).items():
        monkeypatch.setenv(name, value)


def test_the_world_reads_what_it_is_given() -> None:
    settings = read_settings(_env(_named(PODS["rollout-oracle"], "world")))
    mounts = _mounts("rollout-oracle", "world")

    assert settings.session == a_rollout().session
    assert (
        settings.port == _named(PODS["rollout-oracle"], "world")["startupProbe"]["httpGet"]["port"]
    )
    assert {str(settings.state), str(settings.token_file.parent)} <= mounts


def test_the_solution_lands_where_the_agent_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    _apply_env(monkeypatch, "rollout-oracle", "solution")
    settings = read_solution_settings()
    solution = a_rollout().agent.solution
    (agent_file,) = _env(_named(PODS["rollout-oracle"], "agent")).values()

    assert solution == SolutionSpec.model_validate_json(settings.wanted)
    assert str(settings.target) == agent_file
    assert str(settings.target.parent) in _mounts("rollout-oracle", "agent")
    assert str(settings.token_file.parent) in _mounts("rollout-oracle", "solution")


@pytest.mark.parametrize(
    ("pod", "spec"),
    [("verifier-job", a_verifier_job().spec), ("check-job", a_check_job().spec)],
    ids=["verifier", "check"],
)
def test_judge_reads_what_it_is_given_and_reports_before_its_pod_ends(
    monkeypatch: pytest.MonkeyPatch, pod: str, spec: GradeSpec | CheckSpec
) -> None:
    _apply_env(monkeypatch, pod, "judge")
    settings = judge_settings()
    folders = {str(settings.folders.inbox), str(settings.folders.outbox)}

    assert settings.task == spec
    assert settings.seconds < PODS[pod]["activeDeadlineSeconds"]
    assert folders | {str(settings.token_file.parent)} <= _mounts(pod, "judge")
    assert folders <= _mounts(pod, "grade")


def test_the_plan_comes_back_as_it_was() -> None:
    assert Plan.model_validate_json(EVERYTHING["plan"]["data"]["plan"]) == a_plan()


@pytest.mark.parametrize(
    ("agent", "path"),
    [
        ("oracle", "solutions/close_ticket.json"),
        ("scripted:half", "scripts/half/close_ticket.json"),
        ("nop", None),
    ],
)
def test_an_agent_is_given_its_own_file_only(agent: str, path: str | None) -> None:
    solution = a_rollout(agent).agent.solution

    assert (solution and solution.path) == path


def test_an_unknown_agent_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'claude' is no agent\. Name one of: oracle, nop"):
        a_rollout("claude")


def test_kubernetes_deadline_lies_above_all_of_wavetanks_own() -> None:
    session = a_rollout().session

    assert PODS["rollout-oracle"]["activeDeadlineSeconds"] > (
        300 + session.deadline_seconds + session.seal_wait_seconds + 60
    )


def test_a_verifier_job_runs_once_and_stays_with_its_message() -> None:
    spec = EVERYTHING["verifier-job"]["spec"]

    assert spec.keys() == {"backoffLimit", "template"}
    assert spec["backoffLimit"] == 0


def test_the_same_members_in_any_order_are_the_same_job() -> None:
    job = a_verifier_job()
    turned = job.spec.model_copy(update={"members": list(reversed(job.spec.members))})

    names = {
        verifier_job(replace(job, spec=spec))["metadata"]["name"] for spec in (job.spec, turned)
    }

    assert len(names) == 1
    assert EVERYTHING["verifier-job"]["metadata"]["annotations"]["wavetank.dev/members"] == (
        "12.1,13.1"
    )


def test_what_a_check_checks_is_in_its_name() -> None:
    job = a_check_job()
    other = job.spec.model_copy(update={"pass_threshold": 0.5})

    assert job.name != replace(job, spec=other).name
    assert job.name != replace(job, try_number=2).name


def test_labels_of_a_run_cannot_replace_wavetanks_own() -> None:
    overrides = PodOverrides.model_construct(labels={"wavetank.dev/run-uid": "other", "a": "b"})
    meta = rollout_pod(a_rollout(overrides=overrides))["metadata"]

    assert meta["labels"] == {
        **EVERYTHING["rollout-oracle"]["metadata"]["labels"],
        "a": "b",
    }


def test_a_name_that_fits_no_label_is_left_out() -> None:
    run = replace(RUN, name="a" * 200)

    labels = rollout_pod(a_rollout(run=run))["metadata"]["labels"]

    assert "wavetank.dev/run" not in labels
    assert labels["wavetank.dev/run-uid"] == RUN.uid


@pytest.mark.parametrize(
    ("given", "memory"),
    [
        ({}, ("64Mi", "512Mi")),
        ({"limits": {"memory": "1Gi"}}, ("1Gi", "1Gi")),
        ({"requests": {"memory": "1Gi"}}, ("1Gi", "1Gi")),
        ({"requests": {"memory": 1024}, "limits": {"memory": "2Ki"}}, ("1024", "2Ki")),
        ({"limits": {"cpu": 2}}, ("64Mi", "512Mi")),
    ],
    ids=["nothing", "a limit", "a request", "both", "another resource"],
)
def test_a_resource_that_is_named_is_taken_as_given(
    given: dict[str, Any], memory: tuple[str, str]
) -> None:
    amounts = Amounts(cpu=("50m", "1"), memory=("64Mi", "512Mi"), disk=("64Mi", "1Gi"))

    built = resources(amounts, Resources.model_validate(given))

    assert (built["requests"]["memory"], built["limits"]["memory"]) == memory


def test_the_world_gets_the_worlds_resources_and_the_agent_the_runs() -> None:
    spec = rollout_pod(
        a_rollout(
            overrides=OVERRIDES,
            world_resources=Resources.model_validate({"limits": {"memory": "3Gi"}}),
        )
    )["spec"]

    assert _named(spec, "world")["resources"]["limits"]["memory"] == "3Gi"
    assert _named(spec, "agent")["resources"]["limits"]["memory"] == "1Gi"
    assert _named(spec, "solution")["resources"]["limits"]["memory"] == "256Mi"


def test_the_runs_runtime_class_comes_before_the_worlds() -> None:
    spec = rollout_pod(a_rollout(runtime_class_name="kata"))["spec"]
    overridden = rollout_pod(a_rollout(runtime_class_name="kata", overrides=OVERRIDES))["spec"]

    assert (spec["runtimeClassName"], overridden["runtimeClassName"]) == ("kata", "gvisor")


def test_tokens_are_written_as_they_were_signed() -> None:
    data = EVERYTHING["tokens"]["data"]

    assert {key: base64.b64decode(text) for key, text in data.items()} == dict.fromkeys(
        ["act", "grade", "solutions", "read"], b"signed"
    )
