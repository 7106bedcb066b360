"""A tool's arguments: their JSON Schema, and strict validation, from the function's signature."""

import inspect
import json
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, cast

import pydantic
import pydantic_core
import typing_extensions
from pydantic.json_schema import GenerateJsonSchema

from wavetank.bundles.world import JsonValue
from wavetank.worlds.docstrings import Described

JsonSchema = dict[str, JsonValue]


class SignatureProblem(Exception):
    """A function cannot be a tool; the message says why and how to mend it."""


class Arguments:
    """The arguments of one tool."""

    def __init__(self, function: Callable[..., object], described: Described) -> None:
        """Read the signature.

        Raises:
            SignatureProblem: When a parameter is missing a type, or cannot be an argument.
        """
        self._adapter: pydantic.TypeAdapter[dict[str, object]] = pydantic.TypeAdapter(
            _typed_dict(function, described)
        )
        schema = self._adapter.json_schema(schema_generator=_WithoutTitles)
        schema.pop("title", None)
        # An agent's model reads "no arguments" better from an empty object than from nothing.
        self.schema: JsonSchema = {"type": "object", "properties": {}, **schema}

    def validated(self, arguments: Mapping[str, JsonValue]) -> dict[str, object]:
        """Return the arguments as the function takes them.

        Raises:
            pydantic.ValidationError: With every fault; nothing is silently converted.
        """
        return self._adapter.validate_json(json.dumps(arguments), strict=True)


def problems(error: pydantic.ValidationError) -> list[dict[str, str]]:
    """Return each fault with the path of the argument it is about."""
    return [
        {"path": ".".join(str(part) for part in each["loc"]), "message": each["msg"]}
        for each in error.errors(include_url=False, include_context=False, include_input=False)
    ]


class _WithoutTitles(GenerateJsonSchema):
    """Titles repeat the names; a model that reads them gains nothing."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False


def _typed_dict(function: Callable[..., object], described: Described) -> type:
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise SignatureProblem(f"its annotations cannot be read: {error}.") from error
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters:
        raise SignatureProblem("it has no parameter. The first one takes the World.")
    fields = {each.name: _field(each, hints, described) for each in parameters[1:]}
    # A typed dict, not a model: its names may be any, also those that models use themselves.
    make: Callable[[str, object], type] = cast("Any", typing_extensions.TypedDict)
    made = make("Arguments", fields)
    setattr(made, "__pydantic_config__", pydantic.ConfigDict(strict=True, extra="forbid"))  # noqa: B010
    return made


def _field(parameter: inspect.Parameter, hints: Mapping[str, Any], described: Described) -> object:
    name = parameter.name
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise SignatureProblem(f"the parameter '{name}' has no fixed name. Name each argument.")
    if name not in hints:
        raise SignatureProblem(f"the parameter '{name}' has no type. Annotate it.")
    optional = parameter.default is not parameter.empty
    info = pydantic.Field(
        description=described.arguments.get(name),
        json_schema_extra={"default": _default(parameter)} if optional else None,
    )
    kind: Any = Annotated[hints[name], info]
    return typing_extensions.NotRequired[kind] if optional else typing_extensions.Required[kind]


def _default(parameter: inspect.Parameter) -> pydantic.JsonValue:
    shown = pydantic_core.to_jsonable_python(parameter.default, fallback=repr)
    return cast("pydantic.JsonValue", shown)
