"""What the three kinds share: their base, and the types of their fields.

A field's docstring becomes its description in the CRD, so it starts with the field's name as
people write it. Nothing here or in the kinds imports ``yaml`` or ``os``: pure code builds on them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, JsonValue
from pydantic.alias_generators import to_camel
from pydantic_core import core_schema

from wavetank.core.errors import Severity

VALIDATIONS = "x-kubernetes-validations"
REMEDY = "x-wavetank-remedy"
"""Beside a ``pattern``: the CRD gets a CEL rule with this sentence instead of a bare pattern."""

MESSAGE_LENGTH = 1000
"""Longest sentence in a status: 100 findings of it stay far below an object's 1.5 MiB."""


def rules(*pairs: tuple[str, str]) -> dict[str, JsonValue]:
    """Return a schema's CEL rules from (rule, message) pairs."""
    return {VALIDATIONS: [{"rule": rule, "message": message} for rule, message in pairs]}


def checked(*pairs: tuple[str, str]) -> ConfigDict:
    """Return the configuration of a model whose objects the API server checks by CEL rules."""
    return ConfigDict(json_schema_extra=rules(*pairs))


def named_by(*keys: str) -> dict[str, JsonValue]:
    """Return the schema extras of a list of objects that are told apart by these fields."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


def decimal_text(value: float | None, places: int = 4) -> str | None:
    """Return a number as status holds it: a string, so that no float is ever compared or rounded.

    >>> decimal_text(2 / 3)
    '0.6667'
    >>> decimal_text(-0.00001)
    '0.0000'
    """
    if value is None:
        return None
    text = f"{value:.{places}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def clip(text: str, length: int = MESSAGE_LENGTH) -> str:
    """Return a text short enough for a field: an over-long one would fail the whole status write.

    >>> clip("quota exceeded", 8)
    'quota e…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


@dataclass(frozen=True)
class Clipped:
    """Makes a text field cut what is too long, instead of refusing it."""

    length: int

    def __get_pydantic_core_schema__(
        self, source: type[str], handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Tell pydantic to cut the text before it is looked at."""
        return core_schema.no_info_before_validator_function(
            self._cut, core_schema.str_schema(max_length=self.length)
        )

    def _cut(self, value: object) -> object:
        return clip(value, self.length) if isinstance(value, str) else value


class Model(BaseModel):
    """Base of what people write: frozen, camelCase, unknown fields refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )

    def document(self) -> dict[str, JsonValue]:
        """Return the value as JSON data, as it is sent to the API server; None is left out."""
        data: dict[str, JsonValue] = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        return data


class StatusModel(Model):
    """Base of what the operator writes; fields of a newer operator are passed over when read."""

    model_config = ConfigDict(extra="ignore")


ObjectName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=253,
        pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$",
        json_schema_extra={
            REMEDY: "must be the name of an object in this namespace: "
            "lower-case letters, digits, '-' and '.'"
        },
    ),
]
Identifier = Annotated[
    str,
    Field(
        min_length=1,
        max_length=128,
        pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$",
        json_schema_extra={
            REMEDY: "must start with a letter or '_' and go on with letters, digits, '_' and '-'"
        },
    ),
]
Alias = Annotated[
    str,
    Field(
        min_length=1,
        max_length=32,
        pattern=r"^[A-Za-z][A-Za-z0-9_-]*$",
        json_schema_extra={
            REMEDY: "must start with a letter and go on with letters, digits, '_' and '-', "
            "since tools are named after it, like slack__post_message"
        },
    ),
]
Decimal = Annotated[
    str,
    Field(
        max_length=20,
        pattern=r"^-?(0|[1-9][0-9]{0,5})(\.[0-9]{1,9})?$",
        json_schema_extra={REMEDY: 'must be a decimal number as a string, like "0.75"'},
    ),
]
Figure = Annotated[str, Field(max_length=32)]
"""A number in status: a decimal as a string, absent while it is undefined (never 0)."""
DigestText = Annotated[
    str,
    Field(
        max_length=71,
        pattern=r"^sha256:[0-9a-f]{64}$",
        json_schema_extra={
            REMEDY: "must be 'sha256:' and 64 hexadecimal digits, as `wavetank benchmarks push` prints"
        },
    ),
]
ImageName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=500,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@-]*$",
        json_schema_extra={
            REMEDY: "must be an image reference without spaces, like ghcr.io/acme/agent:1.2"
        },
    ),
]
ClassName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=253,
        pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$",
        json_schema_extra={REMEDY: "must be the name of a class that exists in this cluster"},
    ),
]
QuantityText = Annotated[
    str, Field(max_length=32, pattern=r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$")
]
Quantity = Annotated[int, Field(ge=0)] | QuantityText
"""An amount as Kubernetes writes it: 2, 500m, 512Mi."""
Message = Annotated[str, Clipped(MESSAGE_LENGTH)]
"""A sentence of a status."""


CauseName = Annotated[str, Clipped(64)]
"""A ``Cause``; not an enumeration, since CRDs may be older than the operator that writes."""


class ObjectRef(Model):
    """A reference to an object in the same namespace."""

    name: ObjectName
    """name of the object; it must be in the same namespace."""


class Quantities(Model):
    """Amounts of the resources that Wavetank's containers may be given."""

    cpu: Quantity | None = None
    """cpu in cores, like "500m" or "2"."""
    memory: Quantity | None = None
    """memory in bytes, like "512Mi"."""
    ephemeral_storage: Quantity | None = Field(default=None, alias="ephemeral-storage")
    """ephemeral-storage in bytes: the container's share of the node's disk, like "1Gi"."""


class Resources(Model):
    """What a container asks for and may use at most."""

    requests: Quantities | None = None
    """requests are what the scheduler sets aside. Where only limits are given, those."""
    limits: Quantities | None = None
    """limits are the most that the container may use. Where only requests are given, those."""


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(StatusModel):
    """One aspect of an object's state, as Kubernetes' own kinds tell it."""

    type: Annotated[str, Field(max_length=64)]
    """type of the condition, like Ready or Complete."""
    status: ConditionStatus
    """status says whether the condition holds: True, False or Unknown."""
    observed_generation: int | None = None
    """observedGeneration is the generation of the spec that this was said of."""
    last_transition_time: Annotated[str, Field(json_schema_extra={"format": "date-time"})]
    """lastTransitionTime is when the status changed last; RFC 3339."""
    reason: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z][A-Za-z0-9]*$")]
    """reason is one CamelCase word for programs."""
    message: Message
    """message is a sentence for people."""


Conditions = Annotated[
    tuple[Condition, ...], Field(max_length=8, json_schema_extra=named_by("type"))
]


class FindingEntry(StatusModel):
    """One thing that is wrong in what a person brought."""

    severity: Severity
    """severity: a fault keeps the object from being Ready, a warning does not."""
    path: Annotated[str, Clipped(300)]
    """path says where: a file, a place in it, or a field of the spec."""
    message: Message
    """message says what is wrong and how to fix it."""


FINDINGS_KEPT = 100
Findings = Annotated[tuple[FindingEntry, ...], Field(max_length=FINDINGS_KEPT)]


class Digests(StatusModel):
    """The three parts that a bundle is split into by who may fetch them."""

    agent: DigestText
    """agent is the digest of schema, data, tools and prompts: what a rollout Pod may fetch."""
    grader: DigestText
    """grader is the digest of the verifiers: what only verifier Pods may fetch."""
    solutions: DigestText
    """solutions is the digest of solutions and scripts: for oracle and scripted agents only."""


class ObjectMeta(BaseModel):
    """The part of an object's metadata that Wavetank reads; never written from here."""

    model_config = ConfigDict(
        frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True
    )

    name: str
    namespace: str = ""
    uid: str = ""
    """Empty on an object that is not created yet."""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: Mapping[str, str] = Field(default_factory=dict)
    annotations: Mapping[str, str] = Field(default_factory=dict)
