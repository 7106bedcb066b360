"""A world bundle as frozen values: what ``read`` returns and the server and graders work on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from wavetank.core.errors import Finding, Severity

JsonValue = None | bool | int | float | str | Sequence["JsonValue"] | Mapping[str, "JsonValue"]
"""A parsed JSON value."""
Row = Mapping[str, JsonValue]
"""One row by column: bool for boolean, parsed json, text for datetime; every column is there."""

FIXED_NOW = datetime(2026, 1, 1, 9, 0, 0, tzinfo=UTC)
"""What the first ``World.now()`` sees when the bundle says nothing: any moment would do, if it
is the same for everyone."""


class Half(StrEnum):
    """The parts a bundle is split into when packed, by who may see them."""

    AGENT = "agent"
    """Schema, data, tools, prompts: always there."""
    GRADER = "grader"
    """``verifiers/``."""
    SOLUTIONS = "solutions"
    """``solutions/`` and ``scripts/``."""


ALL_HALVES = frozenset(Half)


class FieldType(StrEnum):
    """The types of columns."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATETIME = "datetime"
    """ISO 8601 text."""
    JSON = "json"


@dataclass(frozen=True)
class Reference:
    """What a foreign key points to."""

    entity: str
    field: str


@dataclass(frozen=True)
class Field:
    """A column."""

    name: str
    type: FieldType
    nullable: bool = False
    enum: tuple[str | int | float | bool, ...] = ()
    """The values allowed; empty when any is."""
    references: Reference | None = None
    description: str = ""


@dataclass(frozen=True)
class Entity:
    """A table."""

    name: str
    fields: tuple[Field, ...]
    key: tuple[str, ...] = ()
    """Names of the fields that are unique together; empty when the table has no key."""
    description: str = ""

    def field(self, name: str) -> Field | None:
        """Return the column of that name, or None."""
        return next((each for each in self.fields if each.name == name), None)


@dataclass(frozen=True)
class Task:
    """A prompt and the verifiers that grade its end state."""

    id: str
    prompt: str
    verifiers: tuple[str, ...] = ()
    """Of the benchmark's own world, by name."""
    worlds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Verifiers of linked worlds by alias."""
    category: str | None = None
    difficulty: str | None = None
    tags: tuple[str, ...] = ()
    timeout_seconds: int | None = None
    max_steps: int | None = None

    @property
    def graders(self) -> tuple["VerifierKey", ...]:
        """Every verifier of the task in reward order: its own, then the linked ones."""
        own = tuple(VerifierKey("", name) for name in self.verifiers)
        linked = (
            VerifierKey(alias, name) for alias, names in self.worlds.items() for name in names
        )
        return (*own, *linked)


@dataclass(frozen=True, order=True)
class VerifierKey:
    """Names a verifier within a benchmark; ``str()`` is its key in ``rewards``."""

    alias: str
    """The linked world's alias; empty for the benchmark's own world."""
    name: str

    def __str__(self) -> str:
        return f"{self.alias}/{self.name}" if self.alias else self.name


class VerifierKind(StrEnum):
    """How a verifier is written."""

    SQL = "sql"
    ASSERTIONS = "assertions"
    """Rows that must be there, as JSON."""
    PYTHON = "python"


class Mode(StrEnum):
    """What the score of assertions is."""

    ALL = "all"
    """1 when all hold, else 0."""
    FRACTION = "fraction"
    """The part of them that holds."""


class Comparison(StrEnum):
    """How the value of a field is compared."""

    IS = "is"
    """Equality; written as the bare value."""
    CONTAINS = "contains"
    MATCHES = "matches"
    IN = "in"
    GT = "gt"
    LT = "lt"


@dataclass(frozen=True)
class Condition:
    """What one field of a row must be like."""

    field: str
    comparison: Comparison
    operand: JsonValue


@dataclass(frozen=True)
class Assertion:
    """As many rows as it says match ``where``, and each of them matches ``expect``."""

    entity: str
    where: tuple[Condition, ...]
    expect: tuple[Condition, ...] = ()
    least: int = 1
    most: int | None = None
    """None when any number above ``least`` will do."""


@dataclass(frozen=True)
class Assertions:
    """The content of a verifier that is JSON."""

    mode: Mode
    assertions: tuple[Assertion, ...]


@dataclass(frozen=True)
class Verifier:
    """A verifier's file."""

    name: str
    kind: VerifierKind
    path: Path
    assertions: Assertions | None = None
    """Of that kind only; None also when there is a fault in them."""


@dataclass(frozen=True)
class ToolCall:
    """One step of a solution or script."""

    tool: str
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True)
class Script:
    """A solution or script: calls in order, then perhaps a last message."""

    calls: tuple[ToolCall, ...]
    final_answer: str | None = None


@dataclass(frozen=True)
class RunDefaults:
    """``[run]`` of the file, as its author means it to be run; read and checked, not used yet."""

    models: tuple[str, ...] = ()
    k: int | None = None
    agent: str | None = None


@dataclass(frozen=True)
class Connector:
    """``connector.toml``: shown to people, not used yet."""

    name: str
    docs_url: str | None = None


@dataclass(frozen=True)
class WorldBundle:
    """One world, the benchmark's own or a linked one."""

    root: Path
    alias: str = ""
    """Empty for the benchmark's own world."""
    name: str = ""
    description: str = ""
    instructions: str = ""
    """What the agent is told before any prompt."""
    now: datetime = FIXED_NOW
    """UTC; what the first ``World.now()`` of a session sees."""
    entities: tuple[Entity, ...] = ()
    """In the schema's order; inferred from the data when there is no schema."""
    rows: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)
    """Seed rows by entity, each with every column, in the file's order."""
    handlers: Path | None = None
    """``tools/handlers.py``; None when the world has no tools."""
    verifiers: Mapping[str, Verifier] = field(default_factory=dict)
    """By name; empty when the grader half is not there."""
    dependencies: Mapping[str, str] = field(default_factory=dict)
    """``[dependencies.<alias>] world``: a folder when local, a World's name in a cluster."""
    connector: Connector | None = None
    inferred: tuple[str, ...] = ()
    """Sentences on what was inferred from the data; empty when there is a schema."""

    def entity(self, name: str) -> Entity | None:
        """Return the table of that name, or None."""
        return next((each for each in self.entities if each.name == name), None)


@dataclass(frozen=True)
class ReadWorld:
    """A benchmark's world with its links and tasks, and everything that is wrong with them.

    With a fault among the findings the rest is what could be read, and must not be served.
    """

    main: WorldBundle
    linked: Mapping[str, WorldBundle] = field(default_factory=dict)
    """By alias."""
    tasks: tuple[Task, ...] = ()
    """In the file's order, which is reward and ordinal order."""
    solutions: Mapping[str, Script] = field(default_factory=dict)
    """By task id; empty when the solutions half is not there."""
    scripts: Mapping[str, Mapping[str, Script]] = field(default_factory=dict)
    """By script name, then task id."""
    run: RunDefaults = RunDefaults()
    findings: tuple[Finding, ...] = ()

    @property
    def faults(self) -> tuple[Finding, ...]:
        """The findings that forbid serving and grading."""
        return tuple(f for f in self.findings if f.severity is Severity.FAULT)

    @property
    def worlds(self) -> tuple[WorldBundle, ...]:
        """The benchmark's own world, then the linked ones."""
        return (self.main, *self.linked.values())

    def task(self, task_id: str) -> Task | None:
        """Return the task of that id, or None."""
        return next((each for each in self.tasks if each.id == task_id), None)

    def verifier(self, key: VerifierKey) -> Verifier | None:
        """Return the file behind a task's verifier, or None when it is missing."""
        world = self.linked.get(key.alias) if key.alias else self.main
        return world.verifiers.get(key.name) if world else None
