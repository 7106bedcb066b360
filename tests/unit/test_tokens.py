"""Tokens of the store: what is signed, what is refused, what a grant covers."""

import base64
import json
from datetime import UTC, datetime, timedelta

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st

from wavetank.api.wire import Grant, Operation
from wavetank.store import tokens
from wavetank.store.tokens import SigningKeyError, TokenError, allows, make_key, sign, verify

PRIVATE, PUBLIC = make_key()
NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
GRANTS = (
    Grant(operation=Operation.GET, prefix="/v1/bundles/sha256:aa"),
    Grant(operation=Operation.CREATE, prefix="/v1/runs/u1", max_bytes=100),
)


def test_a_token_gives_back_its_grants() -> None:
    assert verify(PUBLIC, sign(PRIVATE, GRANTS, NOW + timedelta(hours=1)), NOW) == GRANTS


def test_the_same_grants_make_the_same_token() -> None:
    # Repeated writes of a Run's Secret must not change it.
    assert sign(PRIVATE, GRANTS, NOW) == sign(PRIVATE, GRANTS, NOW)


def test_the_public_half_can_be_had_from_the_private_one() -> None:
    assert tokens.public_of(PRIVATE) == PUBLIC


def test_every_key_is_another_one() -> None:
    assert make_key() != make_key()


def test_clocks_may_differ_by_an_hour_and_no_more() -> None:
    token = sign(PRIVATE, GRANTS, NOW)

    assert verify(PUBLIC, token, NOW + timedelta(hours=1)) == GRANTS
    with pytest.raises(TokenError, match=r"^the token ended at 2026-05-04 12:00:00\+00:00$"):
        verify(PUBLIC, token, NOW + timedelta(hours=1, seconds=1))


def encoded(part: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


CLAIMS = {"exp": int(NOW.timestamp()) + 60, "grants": [{"operation": "get", "prefix": "/v1"}]}


def signed(claims: dict[str, object]) -> str:
    return jwt.encode(claims, PRIVATE, algorithm="EdDSA")


def test_what_this_test_signs_by_hand_is_accepted() -> None:
    assert verify(PUBLIC, signed(CLAIMS), NOW) == (Grant(operation=Operation.GET, prefix="/v1"),)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "x",
        "a.b.c",
        "\u00e9.\u00e9.\u00e9",
        sign(make_key()[0], GRANTS, NOW),
        sign(PRIVATE, GRANTS, NOW)[:-10],
        f"{encoded({'alg': 'none', 'typ': 'JWT'})}.{encoded(CLAIMS)}.",
        # The public key as the secret of a symmetric algorithm: the classic confusion.
        jwt.PyJWS().encode(json.dumps(CLAIMS).encode(), b"0" * 64, algorithm="HS256"),
        jwt.encode(CLAIMS, ec.generate_private_key(ec.SECP256R1()), algorithm="ES256"),
        jwt.encode(CLAIMS, rsa.generate_private_key(65537, 2048), algorithm="RS256"),
        "x" * (tokens.TOKEN_LIMIT + 1),
    ],
    ids=[
        "empty",
        "word",
        "three words",
        "not ASCII",
        "other key",
        "cut",
        "no algorithm",
        "HS256",
        "ES256",
        "RS256",
        "too long",
    ],
)
def test_only_what_our_key_signed_is_accepted(token: str) -> None:
    with pytest.raises(TokenError):
        verify(PUBLIC, token, NOW)


def test_claims_that_were_changed_are_refused() -> None:
    head, _, signature = sign(PRIVATE, GRANTS, NOW).split(".")

    with pytest.raises(TokenError):
        verify(PUBLIC, f"{head}.{encoded(CLAIMS)}.{signature}", NOW)


@pytest.mark.parametrize(
    "claims",
    [
        {"grants": []},
        {"exp": CLAIMS["exp"]},
        {**CLAIMS, "exp": None},
        {**CLAIMS, "exp": "soon"},
        {**CLAIMS, "grants": {}},
        {**CLAIMS, "grants": [{"operation": "delete", "prefix": "/v1"}]},
        {**CLAIMS, "grants": [{"operation": "get"}]},
        {**CLAIMS, "more": 1},
    ],
)
def test_claims_of_another_shape_are_refused(claims: dict[str, object]) -> None:
    with pytest.raises(TokenError):
        verify(PUBLIC, signed(claims), NOW)


def test_no_message_holds_the_token() -> None:
    token = sign(make_key()[0], GRANTS, NOW)

    with pytest.raises(TokenError) as caught:
        verify(PUBLIC, token, NOW)

    assert not any(part in str(caught.value) for part in token.split("."))


def test_a_key_of_another_kind_is_named() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    with pytest.raises(SigningKeyError, match="no Ed25519 key but ECPrivateKey"):
        sign(private, GRANTS, NOW)
    with pytest.raises(SigningKeyError, match="no Ed25519 key but"):
        tokens.load_public(public)
    for text in (b"", b"key", PRIVATE):
        with pytest.raises(SigningKeyError, match="no PEM text"):
            tokens.load_public(text)


@pytest.mark.parametrize(
    ("prefix", "path", "is_covered"),
    [
        ("/v1/runs/u1", "/v1/runs/u1", True),
        ("/v1/runs/u1", "/v1/runs/u1/", True),
        ("/v1/runs/u1", "/v1/runs/u1/0/1/seal", True),
        ("/v1/runs/u1/", "/v1/runs/u1/0/1/seal", True),
        ("/v1/runs/u1", "/v1/runs/u11/0/1/seal", False),
        ("/v1/runs/u1", "/v1/runs/", False),
        ("/v1/runs/u1/0/1", "/v1/runs/u1/0/10/seal", False),
        ("/v1", "/v1/bundles/sha256:aa", True),
        ("/", "/v1/bundles/sha256:aa", True),
        ("v1", "/v1/bundles/sha256:aa", False),
        ("/V1", "/v1/bundles/sha256:aa", False),
    ],
)
def test_prefixes_cover_whole_segments(prefix: str, path: str, is_covered: bool) -> None:
    grants = [Grant(operation=Operation.GET, prefix=prefix)]

    assert allows(grants, Operation.GET, path) is is_covered
    assert allows(grants, Operation.CREATE, path) is False


def test_the_largest_of_several_grants_counts() -> None:
    grants = [
        Grant(operation=Operation.CREATE, prefix="/v1/runs", max_bytes=10),
        Grant(operation=Operation.CREATE, prefix="/v1/runs/u1", max_bytes=20),
        Grant(operation=Operation.GET, prefix="/v1/runs"),
    ]

    assert allows(grants, Operation.CREATE, "/v1/runs/u1/0/1/seal", 20)
    assert not allows(grants, Operation.CREATE, "/v1/runs/u1/0/1/seal", 21)
    assert not allows(grants, Operation.CREATE, "/v1/runs/u2/0/1/seal", 11)


def test_no_grant_allows_nothing() -> None:
    assert not allows((), Operation.GET, "/v1/runs/u1")


SEGMENTS = st.lists(st.sampled_from(["a", "ab", "b", "0"]), min_size=1, max_size=4)


@given(SEGMENTS, SEGMENTS)
def test_a_prefix_covers_exactly_the_paths_that_begin_with_its_segments(
    prefix: list[str], path: list[str]
) -> None:
    grants = [Grant(operation=Operation.GET, prefix="/" + "/".join(prefix))]

    covered = allows(grants, Operation.GET, "/" + "/".join(path))

    assert covered is (path[: len(prefix)] == prefix)
