"""The three kinds of ``wavetank.dev/v1alpha1``, and how an object is read.

``World.model_validate(raw)`` reads an object as the API server sends it; ``read`` does the same
and tells every fault as a ``SpecError``. What the operator writes is ``status.document()``.
"""

from collections.abc import Mapping
from typing import TypeVar

from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

from wavetank.api.benchmark import Benchmark, BenchmarkSpec, BenchmarkStatus
from wavetank.api.fields import Model
from wavetank.api.run import Run, RunSpec
from wavetank.api.run_status import RunStatus
from wavetank.api.world import World, WorldSpec, WorldStatus
from wavetank.core.errors import Finding, Severity, SpecError
from wavetank.core.identity import GROUP, VERSION

API_VERSION = f"{GROUP}/{VERSION}"

Kind = TypeVar("Kind", World, Benchmark, Run)

__all__ = [
    "API_VERSION",
    "Benchmark",
    "BenchmarkSpec",
    "BenchmarkStatus",
    "Run",
    "RunSpec",
    "RunStatus",
    "World",
    "WorldSpec",
    "WorldStatus",
    "read",
]


def read(kind: type[Kind], raw: Mapping[str, JsonValue]) -> Kind:
    """Return an object of the API server as its model.

    Args:
        kind: ``World``, ``Benchmark`` or ``Run``.
        raw: The object with ``metadata``, ``spec`` and maybe ``status``.

    Raises:
        SpecError: If its fields are not as the kind says, for instance since it was stored under
            an older or newer CRD; with one finding for each field.
    """
    parts = {name: value for name, value in raw.items() if name in kind.model_fields}
    try:
        return kind.model_validate(parts)
    except ValidationError as error:
        raise SpecError(
            [
                Finding(Severity.FAULT, _path(fault["loc"]), _words(kind, fault))
                for fault in error.errors(include_url=False)
            ]
        ) from error


def _words(kind: type[Model], fault: ErrorDetails) -> str:
    if fault["type"] == "extra_forbidden":
        return f"is not a field of this version's {kind.__name__}: leave it out."
    return f"{fault['msg'].removeprefix('Value error, ')}."


def _path(location: tuple[int | str, ...]) -> str:
    steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in location]
    return "".join(steps).removeprefix(".")
