"""From a pydantic model to a structural schema, as a CustomResourceDefinition needs it.

Pure. ``crds`` calls it. pydantic writes JSON Schema with ``$ref`` and ``anyOf`` null; the API
server wants neither, and takes CEL rules where a bare pattern would leave people guessing.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from wavetank.api.fields import REMEDY, VALIDATIONS

Schema = dict[str, Any]
"""A JSON Schema; what is in it is pydantic's and the API server's matter."""

_DROPPED = frozenset({"$ref", "anyOf", "title", "default", REMEDY})
"""Not structural, or (default) only for a few fields: see ``crds``."""


_ORDER = ("description", "type", "format", "enum")
"""Keys that come first, as people read them."""


def structural(model: type[BaseModel]) -> Schema:
    """Return the structural schema of a model, references resolved and defaults left out."""
    root = model.model_json_schema(by_alias=True)
    return _node(root, root.get("$defs", {}))


def _node(schema: Schema, defs: Mapping[str, Schema]) -> Schema:
    kept = _translated(schema, defs)
    if "description" in kept:
        kept["description"] = " ".join(kept["description"].split())
    first = {name: kept[name] for name in _ORDER if name in kept}
    return first | kept


def _translated(schema: Schema, defs: Mapping[str, Schema]) -> Schema:
    merged = _resolved(schema, defs)
    kinds = [part for part in merged.get("anyOf", []) if part != {"type": "null"}]
    if len(kinds) == 1:
        rest = {name: value for name, value in merged.items() if name != "anyOf"}
        return _translated({**kinds[0], **rest}, defs)
    kept = {name: value for name, value in merged.items() if name not in {*_DROPPED, "$defs"}}
    if len(kinds) > 1:
        return kept | _int_or_string(kinds)
    if REMEDY in merged:
        kept |= {VALIDATIONS: [_pattern_rule(merged), *merged.get(VALIDATIONS, [])]}
        del kept["pattern"]
    if kept["type"] == "array":
        # Descriptions stand at fields; that of an item would repeat its field's.
        item = _node(kept["items"], defs)
        kept["items"] = {name: value for name, value in item.items() if name != "description"}
        kept.setdefault("x-kubernetes-list-type", "atomic")
    if kept["type"] == "object":
        kept |= _fields(kept, defs)
    return kept


def _fields(schema: Schema, defs: Mapping[str, Schema]) -> Schema:
    extra = schema.pop("additionalProperties", False)
    if extra is not False:
        return {"additionalProperties": _node(extra, defs)}
    properties = schema.get("properties", {})
    return {"properties": {name: _node(field, defs) for name, field in properties.items()}}


def _resolved(schema: Schema, defs: Mapping[str, Schema]) -> Schema:
    """Lay what stands beside a reference over what it refers to."""
    if "$ref" not in schema:
        return schema
    return {**defs[schema["$ref"].removeprefix("#/$defs/")], **schema}


def _int_or_string(kinds: list[Schema]) -> Schema:
    by_type = {kind["type"]: kind for kind in kinds}
    if set(by_type) != {"integer", "string"}:
        raise TypeError(f"{kinds} is no union that a CRD can hold; use int | str")
    # A rule would cost as much as for the longest request: only a bare pattern is cheap enough.
    return {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": by_type["string"]["pattern"],
        "x-kubernetes-int-or-string": True,
    }


def _pattern_rule(schema: Schema) -> Schema:
    pattern = schema["pattern"].replace("\\", "\\\\")
    return {"rule": f"self.matches('{pattern}')", "message": schema[REMEDY]}
