"""The store's path grammar."""

import pytest

from wavetank.store.paths import Content, StorePath, is_prefix, parse_path

DIGEST = "sha256:" + "0123456789abcdef" * 4
UID = "3f2a1b9c-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    ("path", "content", "is_document"),
    [
        (f"/v1/bundles/{DIGEST}", Content.BUNDLE, False),
        (f"/v1/runs/{UID}/0/1/snapshot", Content.FREE, False),
        (f"/v1/runs/{UID}/19999/12/agent-log", Content.FREE, False),
        (f"/v1/runs/{UID}/0/1/seal", Content.FREE, True),
        (f"/v1/runs/{UID}/grades/{DIGEST}", Content.HASHED, True),
        (f"/v1/checks/{UID}/3/{DIGEST}", Content.HASHED, True),
    ],
)
def test_known_paths(path: str, content: Content, is_document: bool) -> None:
    assert parse_path(path) == StorePath(path, content, is_document)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/v1",
        "/v1/bundles",
        f"/v1/bundles/{DIGEST}/",
        f"/v1/bundles/{DIGEST}\n",
        f"/v1/bundles/{DIGEST[:-1]}",
        f"/v1/bundles/{DIGEST}0",
        f"/v1/bundles/{DIGEST.upper()}",
        f"/v2/bundles/{DIGEST}",
        f"v1/bundles/{DIGEST}",
        "/v1/runs//0/1/seal",
        "/v1/runs/./0/1/seal",
        "/v1/runs/../0/1/seal",
        "/v1/runs/-u/0/1/seal",
        f"/v1/runs/{'u' * 64}/0/1/seal",
        f"/v1/runs/{UID}/-1/1/seal",
        f"/v1/runs/{UID}/01/1/seal",
        f"/v1/runs/{UID}/1.0/1/seal",
        f"/v1/runs/{UID}/\u0661/1/seal",
        f"/v1/runs/{UID}/1234567890/1/seal",
        f"/v1/runs/{UID}/0/seal",
        f"/v1/runs/{UID}/0/1/Seal",
        f"/v1/runs/{UID}/0/1/reward",
        f"/v1/runs/{UID}/grades/1",
        f"/v1/checks/{UID}/{DIGEST}",
    ],
)
def test_all_else_is_unknown(path: str) -> None:
    assert parse_path(path) is None


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        ("/v1/runs/", True),
        ("/v1/bundles/", True),
        (f"/v1/runs/{UID}/", True),
        (f"/v1/runs/{UID}/0/", True),
        (f"/v1/runs/{UID}/0/1/", True),
        (f"/v1/runs/{UID}/grades/", True),
        (f"/v1/checks/{UID}/3/", True),
        ("/", False),
        ("/v1/", False),
        ("/v1/incoming/", False),
        (f"/v1/runs/{UID}", False),
        (f"/v1/runs/{UID}//", False),
        (f"/v1/runs/{UID}/../", False),
        (f"/v1/runs/{UID}/0/1/seal/", False),
    ],
)
def test_prefixes_that_can_be_listed(path: str, is_one: bool) -> None:
    assert is_prefix(path) is is_one
