"""The paths that the store knows; anything else does not exist."""

import re
from dataclasses import dataclass
from enum import StrEnum

_UID = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})"
_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_DIGEST = r"sha256:[0-9a-f]{64}"

DOCUMENT_BYTES = 16 * 1024 * 1024
"""Largest seal, grading or check: the operator holds them in memory."""


class Content(StrEnum):
    """What the bytes at a path must be."""

    BUNDLE = "bundle"
    """An archive whose manifest has the digest in the path."""
    HASHED = "hashed"
    """Bytes whose SHA-256 is in the path."""
    FREE = "free"


@dataclass(frozen=True)
class StorePath:
    """A path of a known shape."""

    path: str
    content: Content
    is_document: bool
    """True for what stays below ``DOCUMENT_BYTES``."""

    @property
    def key(self) -> str:
        """Name of the object."""
        return self.path.removeprefix("/")

    @property
    def digest(self) -> str:
        """The last segment: a digest unless the content is free."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class _Shape:
    pattern: re.Pattern[str]
    content: Content
    is_document: bool


_SHAPES = (
    _Shape(re.compile(rf"/v1/bundles/{_DIGEST}"), Content.BUNDLE, False),
    _Shape(re.compile(rf"/v1/runs/{_UID}/{_NUMBER}/{_NUMBER}/seal"), Content.FREE, True),
    _Shape(
        re.compile(rf"/v1/runs/{_UID}/{_NUMBER}/{_NUMBER}/(?:snapshot|agent-log)"),
        Content.FREE,
        False,
    ),
    _Shape(re.compile(rf"/v1/runs/{_UID}/grades/{_DIGEST}"), Content.HASHED, True),
    _Shape(re.compile(rf"/v1/checks/{_UID}/{_NUMBER}/{_DIGEST}"), Content.HASHED, True),
)

_PREFIX = re.compile(
    rf"/v1/(?:bundles|(?:runs|checks)(?:/{_UID}(?:/(?:{_NUMBER}|grades)(?:/{_NUMBER})?)?)?)/"
)


def parse_path(path: str) -> StorePath | None:
    """Return what the store knows of a path, or None when it has no such path.

    >>> parse_path("/v1/runs/3f2a/0/1/seal").content
    <Content.FREE: 'free'>
    >>> parse_path("/v1/runs/../0/1/seal")
    """
    for shape in _SHAPES:
        if shape.pattern.fullmatch(path):
            return StorePath(path, shape.content, shape.is_document)
    return None


def is_prefix(path: str) -> bool:
    """Return whether a path, ending in ``/``, is one that objects can be listed below.

    >>> is_prefix("/v1/runs/3f2a/"), is_prefix("/v1/runs/3f2a")
    (True, False)
    """
    return _PREFIX.fullmatch(path) is not None
