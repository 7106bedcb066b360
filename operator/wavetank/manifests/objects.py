"""What all objects that the operator creates share, and the ones that hold data.

Labels and annotations of the parent are never copied: Argo CD would take the children for its own
and prune them.
"""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from wavetank.api.plan import Plan
from wavetank.api.wire import CheckKind
from wavetank.core.identity import (
    GROUP,
    VERSION,
    check_token_name,
    ledger_name,
    plan_name,
    results_name,
    tokens_name,
)

Manifest = dict[str, Any]
"""A Kubernetes object as JSON data; built here, mutated by nobody."""

LABEL_RUN_UID = f"{GROUP}/run-uid"
"""On everything of a Run."""
LABEL_RUN = f"{GROUP}/run"
"""The Run's name, where it fits a label's 63 characters."""
LABEL_CHECK_UID = f"{GROUP}/check-uid"
"""On everything of a World's or Benchmark's check."""
LABEL_COMPONENT = "app.kubernetes.io/component"
NOTE_ORDINAL = f"{GROUP}/ordinal"
NOTE_ATTEMPT = f"{GROUP}/attempt"
NOTE_TASK = f"{GROUP}/task"
NOTE_ROLLOUT = f"{GROUP}/rollout"
NOTE_MEMBERS = f"{GROUP}/members"
"""``12.1,13.1``: ordinal and attempt of each rollout that a verifier Job grades."""
NOTE_GENERATION = f"{GROUP}/generation"
NOTE_TRY = f"{GROUP}/try"

_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")


class Component(StrEnum):
    """What an object is for: label ``app.kubernetes.io/component``."""

    ROLLOUT = "rollout"
    VERIFIER = "verifier"
    CHECK = "check"
    TOKENS = "tokens"
    PLAN = "plan"
    LEDGER = "ledger"
    RESULTS = "results"


class TokenKey(StrEnum):
    """Keys of a Run's tokens Secret, by who mounts them."""

    ACT = "act"
    """The world container: gets agent parts, creates snapshot and seal."""
    GRADE = "grade"
    """Judge containers, of a Run and of a check."""
    SOLUTIONS = "solutions"
    """The init container of oracle and scripted Pods."""
    READ = "read"
    """People's downloads; no Pod has it."""


@dataclass(frozen=True)
class RunOwner:
    """The Run that an object belongs to."""

    name: str
    namespace: str
    uid: str


@dataclass(frozen=True)
class CheckOwner:
    """The World or Benchmark whose check an object belongs to."""

    kind: CheckKind
    name: str
    namespace: str
    uid: str


Owner = RunOwner | CheckOwner


def labels(owner: Owner, component: Component) -> dict[str, str]:
    """Return the labels of an object; ``app.kubernetes.io/instance`` is Argo CD's, never set."""
    own = {
        "app.kubernetes.io/managed-by": "wavetank",
        "app.kubernetes.io/part-of": "wavetank",
        LABEL_COMPONENT: component.value,
    }
    if isinstance(owner, CheckOwner):
        return own | {LABEL_CHECK_UID: owner.uid}
    own[LABEL_RUN_UID] = owner.uid
    if _LABEL_VALUE.fullmatch(owner.name):
        own[LABEL_RUN] = owner.name
    return own


def metadata(
    owner: Owner,
    component: Component,
    name: str,
    annotations: Mapping[str, str] | None = None,
) -> Manifest:
    """Return the metadata of an object that goes when its owner goes."""
    built: Manifest = {
        "name": name,
        "namespace": owner.namespace,
        "labels": labels(owner, component),
        "ownerReferences": [
            {
                "apiVersion": f"{GROUP}/{VERSION}",
                "kind": "Run" if isinstance(owner, RunOwner) else owner.kind.value,
                "name": owner.name,
                "uid": owner.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    if annotations:
        built["annotations"] = dict(annotations)
    return built


def tokens_secret(run: RunOwner, tokens: Mapping[TokenKey, str]) -> Manifest:
    """Return the Secret with a Run's signed tokens; written anew before they expire."""
    return _secret(metadata(run, Component.TOKENS, tokens_name(run.name, run.uid)), tokens)


def check_token_secret(owner: CheckOwner, token: str) -> Manifest:
    """Return the Secret with the token of the check that is made now."""
    name = check_token_name(owner.name, owner.uid)
    return _secret(metadata(owner, Component.TOKENS, name), {TokenKey.GRADE: token})


def plan_config_map(run: RunOwner, plan: Plan) -> Manifest:
    """Return the ConfigMap that pins what a Run does: nobody can change it, only delete it."""
    data = {"plan": plan.canonical().decode()}
    built = _config_map(metadata(run, Component.PLAN, plan_name(run.name)), data)
    return built | {"immutable": True}


def ledger_config_map(
    run: RunOwner, generation: int, shard: int, entries: Mapping[str, str]
) -> Manifest:
    """Return one shard of a Run's ledger.

    Args:
        run: The Run.
        generation: Of the ledger; 0 for the first.
        shard: ``shard_of`` each ordinal in it.
        entries: JSON of records and failed attempts, by key.
    """
    notes = {NOTE_GENERATION: str(generation)}
    name = ledger_name(run.name, generation, shard)
    return _config_map(metadata(run, Component.LEDGER, name, notes), entries)


def results_config_map(run: RunOwner, files: Mapping[str, str]) -> Manifest:
    """Return the ConfigMap with a Run's full table of results, as files by key."""
    return _config_map(metadata(run, Component.RESULTS, results_name(run.name)), files)


def _config_map(meta: Manifest, data: Mapping[str, str]) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": dict(data)}


def _secret(meta: Manifest, tokens: Mapping[TokenKey, str]) -> Manifest:
    # Not stringData: it is write-only, so a server-side apply could not tell who owns the keys.
    data = {key.value: base64.b64encode(text.encode()).decode() for key, text in tokens.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": meta,
        "type": "Opaque",
        "data": data,
    }
