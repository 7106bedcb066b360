"""One of each object that the operator creates, for tests.

``python -m wavetank.testing.created tests/unit/golden`` writes them anew after a wanted change.
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from wavetank.api.plan import Plan
from wavetank.api.run import PodOverrides
from wavetank.api.wire import (
    BundleRef,
    BundleSet,
    CheckKind,
    CheckSpec,
    GradeMember,
    GradeSpec,
    SessionSpec,
    TaskInfo,
)
from wavetank.manifests.objects import (
    CheckOwner,
    Manifest,
    RunOwner,
    TokenKey,
    check_token_secret,
    ledger_config_map,
    plan_config_map,
    results_config_map,
    tokens_secret,
)
from wavetank.manifests.rollout import RolloutPod, agent_choice, rollout_pod
from wavetank.manifests.verifier import CheckJob, Grading, VerifierJob, check_job, verifier_job

STORE = "http://10.96.3.4:8081"
RUN = RunOwner("crm.oracle", "bench", "3f2a1b9c-0000-4000-8000-000000000000")
WORLD = CheckOwner(CheckKind.WORLD, "crm", "bench", "9c1b2a3f-0000-4000-8000-000000000000")
OVERRIDES = PodOverrides.model_validate(
    {
        "nodeSelector": {"pool": "bench"},
        "tolerations": [{"key": "bench", "operator": "Exists", "effect": "NoSchedule"}],
        "runtimeClassName": "gvisor",
        "priorityClassName": "low",
        "imagePullSecrets": [{"name": "registry"}],
        "labels": {"kueue.x-k8s.io/queue-name": "bench"},
        "resources": {"limits": {"memory": "1Gi"}},
    }
)


def digest(letter: str) -> str:
    """Return a digest of 64 equal digits."""
    return f"sha256:{letter * 64}"


BUNDLES = BundleSet(
    agent=[BundleRef(digest=digest("a"))],
    grader=[BundleRef(digest=digest("b"))],
    solutions=[BundleRef(digest=digest("c"))],
)


def a_rollout(agent: str = "oracle", **changes: Any) -> RolloutPod:
    """Return attempt 2 of ordinal 12, with changes."""
    session = SessionSpec(
        run=RUN.uid,
        ordinal=12,
        attempt=2,
        task="close_ticket",
        rollout=2,
        seed=7,
        deadline_seconds=900,
        bundles=BUNDLES.agent,
        store=STORE,
    )
    pod = RolloutPod(
        run=RUN,
        session=session,
        agent=agent_choice(agent, session.task, "wavetank/agent:1", BUNDLES, STORE),
        world_image="wavetank/world:1",
        start_seconds=300,
    )
    return replace(pod, **changes)


def a_verifier_job(**changes: Any) -> VerifierJob:
    """Return a Job for two members, with changes."""
    members = [
        GradeMember(
            ordinal=ordinal,
            attempt=1,
            task="close_ticket",
            seal=digest("d"),
            snapshot=digest("e"),
        )
        for ordinal in (13, 12)
    ]
    spec = GradeSpec(run=RUN.uid, generation=0, members=members, bundles=BUNDLES, store=STORE)
    grading = Grading(image="wavetank/verifier:1", deadline_seconds=1500)
    return replace(VerifierJob(run=RUN, spec=spec, try_number=1, grading=grading), **changes)


def a_check_job(**changes: Any) -> CheckJob:
    """Return a World's check, with changes."""
    spec = CheckSpec(
        kind=CheckKind.WORLD, uid=WORLD.uid, generation=3, bundles=BUNDLES, store=STORE
    )
    grading = Grading(image="wavetank/verifier:1", deadline_seconds=600)
    return replace(CheckJob(owner=WORLD, spec=spec, try_number=1, grading=grading), **changes)


def a_plan() -> Plan:
    """Return a plan with one task."""
    return Plan(
        run=RUN.uid,
        benchmark="crm",
        benchmark_generation=1,
        tasks=[TaskInfo(id="close_ticket", verifiers=["ticket_closed"])],
        bundles=BUNDLES,
    )


def a_large_plan(tasks: int) -> Plan:
    """Return a plan of which every task has the longest names, in groups of its own."""
    infos = [
        TaskInfo(
            id=f"t{n:05d}{'x' * 122}",
            verifiers=["v"],
            category=f"c{n:05d}{'x' * 58}",
            difficulty=f"d{n:05d}{'x' * 58}",
            tags=[f"g{n:05d}{'x' * 58}"],
        )
        for n in range(tasks)
    ]
    return a_plan().model_copy(update={"tasks": infos})


EVERYTHING: dict[str, Manifest] = {
    "rollout-oracle": rollout_pod(a_rollout()),
    "rollout-scripted": rollout_pod(a_rollout("scripted:half")),
    "rollout-nop-overridden": rollout_pod(a_rollout("nop", overrides=OVERRIDES)),
    "verifier-job": verifier_job(a_verifier_job()),
    "verifier-job-overridden": verifier_job(
        a_verifier_job(
            grading=Grading(image="wavetank/verifier:1", deadline_seconds=1500, overrides=OVERRIDES)
        )
    ),
    "check-job": check_job(a_check_job()),
    "tokens": tokens_secret(RUN, dict.fromkeys(TokenKey, "signed")),
    "check-token": check_token_secret(WORLD, "signed"),
    "plan": plan_config_map(RUN, a_plan()),
    "ledger": ledger_config_map(RUN, 0, 1, {"112": "{}"}),
    "results": results_config_map(RUN, {"results.json": "{}"}),
}
"""By what it is, as in ``tests/unit/golden``."""


class _Plain(yaml.SafeDumper):
    """Writes what is there twice twice: anchors would make a golden file hard to read."""

    def ignore_aliases(self, data: object) -> bool:
        """Never refer to an earlier value."""
        return True


def golden(name: str) -> str:
    """Return one of the objects as it stands in its golden file."""
    return yaml.dump(EVERYTHING[name], Dumper=_Plain, sort_keys=False, width=100)


if __name__ == "__main__":
    for each in EVERYTHING:
        (Path(sys.argv[1]) / f"{each}.yaml").write_text(golden(each))
