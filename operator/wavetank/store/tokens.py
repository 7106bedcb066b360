"""Tokens of the store: what their holder may read and create, signed by the operator (Ed25519).

The operator makes the key and signs; the store knows the public half only. Nothing else imports
this module: it loads OpenSSL.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from pydantic import ValidationError

from wavetank.api.wire import Grant, Operation, Part
from wavetank.core.errors import WavetankError

ALGORITHM = "EdDSA"
SLACK = timedelta(hours=1)
"""How far a token may be past its end: nodes' clocks differ, and a Run must not fail by that."""
TOKEN_LIMIT = 16 * 1024
"""Characters of a token that are looked at; one with 100 grants has about this many."""


class TokenError(WavetankError):
    """A token is no token of ours, or no longer; the message says why and never holds it."""


class SigningKeyError(WavetankError):
    """A PEM text holds no Ed25519 key."""


class _Claims(Part):
    exp: int
    grants: list[Grant]


def make_key() -> tuple[bytes, bytes]:
    """Return a new key as PEM: (private, public)."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private, _public_pem(key)


def public_of(private_pem: bytes) -> bytes:
    """Return the public half of a private key, both PEM."""
    return _public_pem(_private(private_pem))


def _public_pem(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def sign(private_pem: bytes, grants: Sequence[Grant], expires_at: datetime) -> str:
    """Return a token for the grants; the same arguments give the same token."""
    claims = _Claims(exp=int(expires_at.timestamp()), grants=list(grants))
    payload = claims.model_dump(mode="json", by_alias=True, exclude_none=True)
    return jwt.encode(payload, _private(private_pem), algorithm=ALGORITHM)


def verify(public_pem: bytes, token: str, now: datetime) -> tuple[Grant, ...]:
    """Return what a token allows.

    Raises:
        TokenError: If it was not signed by the key, is malformed, or ended more than ``SLACK`` ago.
        SigningKeyError: If the PEM holds no Ed25519 key.
    """
    return verify_with(load_public(public_pem), token, now)


def load_public(public_pem: bytes) -> Ed25519PublicKey:
    """Return the key of a PEM text, for ``verify_with``."""
    try:
        key = load_pem_public_key(public_pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SigningKeyError("the public key is no PEM text of a key") from error
    if not isinstance(key, Ed25519PublicKey):
        raise SigningKeyError(f"the public key is no Ed25519 key but {type(key).__name__}")
    return key


def verify_with(key: Ed25519PublicKey, token: str, now: datetime) -> tuple[Grant, ...]:
    """Return what a token allows: ``verify`` for many tokens by one key."""
    if len(token) > TOKEN_LIMIT:
        raise TokenError(f"the token is longer than {TOKEN_LIMIT} characters")
    try:
        # Only this algorithm: a token must not choose how it is checked.
        # https://www.rfc-editor.org/rfc/rfc8725#section-3.1
        payload = jwt.decode(token, key, algorithms=[ALGORITHM], options={"verify_exp": False})
        claims = _Claims.model_validate(payload)
    except jwt.InvalidTokenError as error:
        raise TokenError("the token was not signed by this installation's key") from error
    except ValidationError as error:
        raise TokenError("the token's claims are not exp and grants") from error
    if now.timestamp() > claims.exp + SLACK.total_seconds():
        raise TokenError(f"the token ended at {datetime.fromtimestamp(claims.exp, now.tzinfo)}")
    return tuple(claims.grants)


def allows(grants: Sequence[Grant], operation: Operation, path: str, size: int = 0) -> bool:
    """Return whether a grant covers an operation on a path.

    Args:
        grants: What the token holds.
        operation: To get (also head and list) or to create.
        path: Absolute, in plain form. Prefixes cover whole segments only.
        size: Bytes of the object to create, or as many as have arrived.
    """
    return any(
        grant.operation is operation
        and _covers(grant.prefix, path)
        and (grant.max_bytes is None or size <= grant.max_bytes)
        for grant in grants
    )


def _covers(prefix: str, path: str) -> bool:
    """Return whether a path is the prefix or lies below it.

    >>> _covers("/v1/runs/a", "/v1/runs/ab"), _covers("/v1/runs/a/", "/v1/runs/a/1/1/seal")
    (False, True)
    """
    whole = prefix.rstrip("/")
    return path.rstrip("/") == whole or path.startswith(f"{whole}/")


def _private(private_pem: bytes) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(private_pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise SigningKeyError("the private key is no PEM text of an unencrypted key") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise SigningKeyError(f"the private key is no Ed25519 key but {type(key).__name__}")
    return key
