"""How things are named: ordinals, units, and the objects of a Run.

Every name is a function of the Run and the plan, so a create that is repeated after a crash meets
its own object (AlreadyExists) instead of making a second one.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

GROUP = "wavetank.dev"
VERSION = "v1alpha1"

SHARD_SIZE = 100
"""Ordinals in one ledger ConfigMap: 100 records of at most 4,000 bytes stay under its 1 MiB."""

_RUN_PART = 30
"""Job and Service names stop at 63 characters: 30 + 6 + ordinal, attempt and dashes fit."""


@dataclass(frozen=True, order=True)
class AttemptKey:
    """One Pod's try at a rollout of a Run."""

    ordinal: int
    """The rollout's place in the plan: rollout index * number of tasks + the task's place."""
    attempt: int
    """Counted from 1 and never reused, also not by a later generation."""


def ordinal_of(rollout: int, task_place: int, task_count: int) -> int:
    """Return the ordinal of a (task, rollout) pair; raising k appends ordinals, never moves them.

    >>> ordinal_of(rollout=2, task_place=1, task_count=5)
    11
    """
    return rollout * task_count + task_place


def rollout_and_place(ordinal: int, task_count: int) -> tuple[int, int]:
    """Return (rollout index, task's place) of an ordinal.

    >>> rollout_and_place(11, task_count=5)
    (2, 1)
    """
    return divmod(ordinal, task_count)


def shard_of(ordinal: int) -> int:
    """Return the number of the ledger shard that an ordinal lives in.

    >>> shard_of(199)
    1
    """
    return ordinal // SHARD_SIZE


def prefix_of(run_name: str, run_uid: str) -> str:
    """Return what the names of a Run's Pods and Jobs start with; at most 37 characters.

    >>> prefix_of("crm.oracle", "3f2a1b9c-0000-0000-0000-000000000000")
    'crm-oracle-3f2a1b'
    """
    head = re.sub(r"[^a-z0-9-]", "-", run_name)[:_RUN_PART].strip("-")
    return f"{head}-{run_uid[:6]}"


def rollout_pod_name(run_name: str, run_uid: str, key: AttemptKey) -> str:
    """Return the name of the Pod of one attempt."""
    return f"{prefix_of(run_name, run_uid)}-{key.ordinal}-a{key.attempt}"


def verifier_job_name(
    run_name: str, run_uid: str, members: Sequence[AttemptKey], generation: int, try_number: int
) -> str:
    """Return the name of the verifier Job for exactly these members, generation and try."""
    text = ",".join(f"{m.ordinal}.{m.attempt}" for m in sorted(members))
    digest = hashlib.sha256(f"g{generation} t{try_number} {text}".encode()).hexdigest()[:10]
    return f"{prefix_of(run_name, run_uid)}-v-{digest}"


def check_job_name(name: str, uid: str, subject: str, try_number: int) -> str:
    """Return the name of the Job that checks a World or Benchmark.

    Args:
        name: Of the World or Benchmark.
        uid: Its UID.
        subject: What is checked, so that other content gets another Job: a digest of it.
        try_number: From 1; a check that could not be made is tried again under a new name.

    >>> check_job_name("crm", "3f2a1b9c-0000", "sha256:00", 1)
    'crm-3f2a1b-c-287b913d9f'
    """
    digest = hashlib.sha256(f"{subject} t{try_number}".encode()).hexdigest()[:10]
    return f"{prefix_of(name, uid)}-c-{digest}"


def check_token_name(name: str, uid: str) -> str:
    """Return the name of the Secret with the token of a World's or Benchmark's checks.

    One for all of an object's checks, so that none is left behind: it goes with the object.
    """
    return f"{prefix_of(name, uid)}-check-token"


def plan_name(run_name: str) -> str:
    """Return the name of the ConfigMap that pins what a Run will do."""
    return f"{run_name}-plan"


def results_name(run_name: str) -> str:
    """Return the name of the ConfigMap with the full table of results."""
    return f"{run_name}-results"


def tokens_name(run_name: str, run_uid: str) -> str:
    """Return the name of the Secret with a Run's signed tokens.

    With the UID in it: the operator may write Secrets but not read them, so it could not tell
    somebody else's Secret of that name, and would write into it.

    >>> tokens_name("crm.oracle", "3f2a1b9c-0000-0000-0000-000000000000")
    'crm-oracle-3f2a1b-tokens'
    """
    return f"{prefix_of(run_name, run_uid)}-tokens"


def ledger_name(run_name: str, generation: int, shard: int) -> str:
    """Return the name of one ledger shard.

    >>> ledger_name("crm", 0, 3)
    'crm-ledger-g0-003'
    """
    return f"{run_name}-ledger-g{generation}-{shard:03d}"
