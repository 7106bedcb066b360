"""The CRDs in crds/ are the generator's, and people can read them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from wavetank.api.crds import SHAPES, Shape, definition, text
from wavetank.api.structural import Schema

CRDS = Path(__file__).parents[2] / "crds"
EVERY_KIND = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.plural)


def _schema(shape: Shape) -> Schema:
    schema: Schema = definition(shape)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _nodes(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from _nodes(field, f"{path}.{name}")
    if "items" in schema:
        yield from _nodes(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from _nodes(schema["additionalProperties"], f"{path}{{}}")


def _ours(shape: Shape) -> list[tuple[str, Schema]]:
    return [node for node in _nodes(_schema(shape)) if node[0].startswith((".spec", ".status"))]


@EVERY_KIND
def test_the_file_in_crds_is_what_the_models_give(shape: Shape) -> None:
    assert (CRDS / f"{shape.plural}.yaml").read_text() == text(shape), "run `make crds`"


@EVERY_KIND
def test_every_field_has_a_description_that_starts_with_its_name(shape: Shape) -> None:
    wrong = [
        path
        for path, schema in _ours(shape)
        if not path.endswith(("[]", "{}"))
        and not schema.get("description", "").startswith(path.rpartition(".")[2])
    ]

    assert wrong == []


@EVERY_KIND
def test_every_text_and_list_and_map_is_bounded(shape: Shape) -> None:
    bound = {"string": "maxLength", "array": "maxItems"}
    unbounded = [
        path
        for path, schema in _ours(shape)
        if schema.get("type") in bound
        and bound[schema["type"]] not in schema
        and not {"enum", "format"} & schema.keys()
    ]
    maps = [path for path, schema in _ours(shape) if "additionalProperties" in schema]

    assert unbounded == []
    assert all("maxProperties" in dict(_ours(shape))[path] for path in maps)


@EVERY_KIND
def test_no_number_is_a_float(shape: Shape) -> None:
    assert [path for path, schema in _ours(shape) if schema.get("type") == "number"] == []


@EVERY_KIND
def test_only_scalars_of_the_spec_itself_have_defaults(shape: Shape) -> None:
    defaults = {path: schema["default"] for path, schema in _ours(shape) if "default" in schema}

    assert defaults == (
        {".spec.k": 1, ".spec.parallelism": 10, ".spec.allowFaults": False, ".spec.suspend": False}
        if shape.plural == "runs"
        else {}
    )


@EVERY_KIND
def test_lists_in_status_are_atomic_but_for_conditions(shape: Shape) -> None:
    kinds = {
        path: schema["x-kubernetes-list-type"]
        for path, schema in _ours(shape)
        if path.startswith(".status") and schema.get("type") == "array"
    }

    assert kinds.pop(".status.conditions") == "map"
    assert set(kinds.values()) == {"atomic"}


@EVERY_KIND
def test_a_client_side_apply_can_keep_its_copy(shape: Shape) -> None:
    assert len(text(shape)) < 256 * 1024
