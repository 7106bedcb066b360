"""``python -m wavetank.api.crds DIR``: write the CustomResourceDefinitions of the three kinds.

The only module of ``api`` that knows YAML and files; nothing imports it but tests.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import BaseModel

from wavetank.api.fields import VALIDATIONS, Model
from wavetank.api.kinds import Benchmark, Run, World
from wavetank.api.run import MUTABLE, NAME_LENGTH
from wavetank.api.structural import Schema, structural
from wavetank.core.identity import GROUP, VERSION

HEADER = "# Written by `make crds` from operator/wavetank/api; edit it there.\n"


@dataclass(frozen=True)
class Column:
    """A column that `kubectl get` shows; wide ones only with `-o wide`."""

    name: str
    path: str
    description: str
    type: str = "string"
    wide: bool = False


@dataclass(frozen=True)
class Shape:
    """What a CRD says of a kind besides its schema."""

    model: type[Model]
    plural: str
    short_names: tuple[str, ...]
    columns: tuple[Column, ...]


def _condition(kind: str, field: str) -> str:
    return f'.status.conditions[?(@.type=="{kind}")].{field}'


# Conditions are written in the order Complete, Failed, Suspended, Progressing, and a column shows
# the first match: so this is the state that says most.
_HOLDS = '.status.conditions[?(@.status=="True")].type'

_READY = (
    Column("Ready", _condition("Ready", "status"), "Whether it was checked and has no fault."),
    Column("Reason", _condition("Ready", "reason"), "Why it is ready or not."),
)
_AGE = Column("Age", ".metadata.creationTimestamp", "Time since its creation.", "date")

SHAPES = (
    Shape(
        World,
        "worlds",
        ("wld",),
        (
            *_READY,
            Column("Entities", ".status.counts.entities", "Number of tables.", "integer"),
            Column("Rows", ".status.counts.rows", "Rows of seed data.", "integer"),
            Column("Tools", ".status.counts.tools", "Number of tools.", "integer"),
            Column("Bundle", ".status.bundle", "Digest of its files.", wide=True),
            _AGE,
        ),
    ),
    Shape(
        Benchmark,
        "benchmarks",
        ("bmk",),
        (
            *_READY,
            Column("Kind", ".status.kind", "Which block of the spec is used."),
            Column("Tasks", ".status.tasks", "Number of tasks.", "integer"),
            Column("InitialMean", ".status.initialMean", "What doing nothing is rewarded with."),
            Column("World", ".spec.world.worldRef.name", "The World it runs on.", wide=True),
            _AGE,
        ),
    ),
    Shape(
        Run,
        "runs",
        ("wrun",),
        (
            Column("State", _HOLDS, "The condition that holds; none while it waits."),
            Column("Reason", _condition("Progressing", "reason"), "Why it goes on or waits."),
            Column("Benchmark", ".spec.benchmarkRef.name", "What is run."),
            Column("Agent", ".spec.agent.name", "What acts."),
            Column("Progress", ".status.progress", "Recorded rollouts of those planned."),
            Column(
                "Unscored", ".status.rollouts.unscored", "Recorded without a reward.", "integer"
            ),
            Column("Reward", ".status.reward.mean", "Mean reward of the scored rollouts."),
            Column(
                "Low", ".status.reward.interval95.low", "Of the mean's 95 % interval.", wide=True
            ),
            Column("High", ".status.reward.interval95.high", "Likewise.", wide=True),
            Column("PassRate", ".status.passRate", "Share of scored rollouts that passed."),
            Column("Problem", ".status.lastProblem", "The newest trouble.", wide=True),
            _AGE,
        ),
    ),
)


def definition(shape: Shape) -> Schema:
    """Return the CustomResourceDefinition of a kind."""
    kind = shape.model.__name__
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{shape.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": shape.plural,
                "singular": kind.lower(),
                "shortNames": list(shape.short_names),
                "categories": ["wavetank"],
            },
            "versions": [_version(shape)],
        },
    }


def _version(shape: Shape) -> Schema:
    version: Schema = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _schema(shape.model)},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(column) for column in shape.columns],
    }
    if shape.model is Run:
        version["selectableFields"] = [{"jsonPath": ".spec.benchmarkRef.name"}]
        version["subresources"]["scale"] = {
            "specReplicasPath": ".spec.parallelism",
            "statusReplicasPath": ".status.rollouts.active",
        }
    return version


def _column(column: Column) -> Schema:
    return {
        "name": column.name,
        "type": column.type,
        "jsonPath": column.path,
        "description": column.description,
        **({"priority": 1} if column.wide else {}),
    }


def _schema(model: type[Model]) -> Schema:
    schema = structural(model)
    fields = schema["properties"]
    fields["spec"]["properties"] |= _with_defaults(model, fields["spec"])
    schema["properties"] = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        **{name: field for name, field in fields.items() if name != "metadata"},
    }
    schema["required"] = ["spec"]
    if model is Run:
        schema[VALIDATIONS] = [_name_rule()]
        fields["spec"][VALIDATIONS] = [*_change_rules(fields["spec"])]
    return schema


def _with_defaults(model: type[Model], spec: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield the spec's fields that get a default: its own scalars only.

    Defaults in lists or below show up as differences in Argo CD; those of nested fields are the
    models' alone.
    """
    spec_model = model.model_fields["spec"].annotation
    if not (isinstance(spec_model, type) and issubclass(spec_model, BaseModel)):
        raise TypeError(f"{model.__name__}.spec is not one model")
    for name, field in spec_model.model_fields.items():
        if isinstance(field.default, bool | int | str):
            key = field.alias or name
            yield key, {**spec["properties"][key], "default": field.default}


def _name_rule() -> Schema:
    return {
        "rule": f"self.metadata.name.size() <= {NAME_LENGTH}",
        "message": f"metadata.name of a Run may have at most {NAME_LENGTH} characters, since its "
        "ledger is named after it: choose a shorter name",
    }


def _change_rules(spec: Schema) -> Iterator[Schema]:
    """Yield the rules about edits.

    One rule over all fields: a rule at a field is not asked when the field appears or goes away.
    """
    fixed = [name for name in spec["properties"] if name not in MUTABLE]
    yield {
        "rule": " && ".join(_unchanged(name, name in spec["required"]) for name in fixed),
        "message": "spec of a Run is fixed, but for suspend, parallelism, and k upwards: "
        "delete the Run, or create another under a new name",
    }
    yield {
        "rule": "self.k >= oldSelf.k",
        "fieldPath": ".k",
        "message": "k of a Run may only be raised: create another Run for fewer rollouts",
    }


def _unchanged(name: str, required: bool) -> str:
    same = f"self.{name} == oldSelf.{name}"
    if required:
        return same
    # Not `self.?x == oldSelf.?x`: the cost of comparing optionals is estimated as boundless.
    return f"has(self.{name}) == has(oldSelf.{name}) && (!has(self.{name}) || {same})"


def main(folder: Path) -> None:
    """Write ``<plural>.yaml`` of each kind into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for shape in SHAPES:
        (folder / f"{shape.plural}.yaml").write_text(text(shape))


def text(shape: Shape) -> str:
    """Return the CustomResourceDefinition of a kind as YAML."""
    return HEADER + yaml.safe_dump(definition(shape), sort_keys=False, width=100)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
