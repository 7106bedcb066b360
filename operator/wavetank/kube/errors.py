"""What the API server refused, by what the caller does about it.

    ClusterError (core)
      ApiError                 any refusal; the class for statuses that nobody handles apart
        NotFound               404
        AlreadyExists          409, of a create
        Conflict               409, of an update: read again, decide again
        Expired                410: list again
        Forbidden              403: quota, Pod Security, a terminating namespace or missing RBAC
        Unauthorized           401
        TooManyRequests        429, after the client's own tries
        Unavailable            5xx, or no answer at all
    SpecError (core)
      Invalid                  400, 413, 422: the object itself is wrong or too large for etcd;
                               the same again cannot work

All carry the request and the API server's own words as ``failure``.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from wavetank.core.errors import ClusterError, Finding, Severity, SpecError


@dataclass(frozen=True)
class Request:
    """Which request failed."""

    verb: str
    kind: str
    where: str
    """``namespace/name``, ``namespace`` of a list, or empty for all namespaces."""

    def __str__(self) -> str:
        return f"{self.verb} {self.kind} {self.where}".rstrip()


@dataclass(frozen=True)
class Cause:
    """One of the API server's causes: a field that is wrong, or why a namespace refuses."""

    field: str
    reason: str
    message: str


@dataclass(frozen=True)
class Failure:
    """A request and how the API server (or the way to it) answered."""

    request: Request
    code: int
    """HTTP status; 0 when there was no answer."""
    reason: str
    """The Status object's machine-readable reason, or empty."""
    message: str
    """The API server's own words."""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: float | None = None

    def __str__(self) -> str:
        code = self.code or "no answer"
        return f"{self.request}: {self.message} ({code}{' ' if self.reason else ''}{self.reason})"


class ApiError(ClusterError):
    """A request that did not do what was asked."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(str(failure), retry_after_seconds=failure.retry_after_seconds)

    @property
    def reason_text(self) -> str:
        """Return the API server's own words, for a status or an event."""
        return self.failure.message


class NotFound(ApiError):
    """The object, its namespace or its kind is not there."""


class AlreadyExists(ApiError):
    """An object of that name is there already; whose it is, a ``get`` tells."""


class Conflict(ApiError):
    """Somebody else changed the object (or the UID is another one): read and decide again."""


class Expired(ApiError):
    """A resourceVersion or continue token is too old: list again."""


class Unauthorized(ApiError):
    """The credentials are not accepted."""


class TooManyRequests(ApiError):
    """The API server is over its limit, also after the client's own tries."""


class Unavailable(ApiError):
    """The API server failed or could not be reached; a write may or may not have happened."""


class Forbidden(ApiError):
    """Not allowed: by quota, Pod Security, a terminating namespace, or for want of RBAC."""

    @property
    def is_quota(self) -> bool:
        """Tell whether a ResourceQuota is used up: wait, it costs no attempt."""
        return "exceeded quota:" in self.failure.message

    @property
    def is_terminating_namespace(self) -> bool:
        """Tell whether the namespace is being deleted: nothing can be created in it again."""
        return any(cause.reason == "NamespaceTerminating" for cause in self.failure.causes)

    @property
    def is_pod_security(self) -> bool:
        """Tell whether the namespace's Pod Security Standard refuses the Pod as it is."""
        return "violates PodSecurity" in self.failure.message

    @property
    def is_missing_rbac(self) -> bool:
        """Tell whether the operator's role lacks the permission."""
        return " cannot " in self.failure.message and " resource " in self.failure.message


class Invalid(SpecError):
    """The API server finds the object itself wrong; findings name the fields."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        where = f"{failure.request.kind} {failure.request.where}"
        causes = failure.causes or (Cause("", failure.reason, failure.message),)
        super().__init__(
            [
                Finding(Severity.FAULT, f"{where} {cause.field}".rstrip(), cause.message)
                for cause in causes
            ]
        )

    @property
    def reason_text(self) -> str:
        """Return the API server's own words, for a status or an event."""
        return self.failure.message


_BY_CODE: Mapping[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    410: Expired,
    429: TooManyRequests,
}


_TOO_LARGE = ("etcdserver: request is too large", "trying to send message larger than max")
"""etcd's and its client's limits come as a 500, though the same again cannot work."""


def error_for(failure: Failure) -> ApiError | Invalid:
    """Return the exception for a failure.

    >>> error_for(Failure(Request("get", "Pod", "a/b"), 404, "NotFound", "no Pod b"))
    NotFound('get Pod a/b: no Pod b (404 NotFound)')
    """
    code = failure.code
    if code in (400, 413, 422) or any(words in failure.message for words in _TOO_LARGE):
        return Invalid(failure)
    if code == 409:
        return (AlreadyExists if failure.reason == "AlreadyExists" else Conflict)(failure)
    if code == 0 or code >= 500:
        return Unavailable(failure)
    return _BY_CODE.get(code, ApiError)(failure)


def failure_of(request: Request, code: int, body: bytes, retry_after: str | None) -> Failure:
    """Read a refusal's body: a Status object, or what a proxy in between wrote."""
    try:
        status = json.loads(body)
    except ValueError:
        status = None
    if not isinstance(status, dict) or status.get("kind") != "Status":
        text = body[:500].decode(errors="replace").strip() or "an answer without a body"
        return Failure(request, code, "", text, (), _seconds(retry_after))
    details = status.get("details") or {}
    causes = tuple(
        Cause(cause.get("field", ""), cause.get("reason", ""), cause.get("message", ""))
        for cause in details.get("causes") or ()
    )
    return Failure(
        request,
        int(status.get("code") or code),
        status.get("reason", ""),
        status.get("message", ""),
        causes,
        _seconds(retry_after or details.get("retryAfterSeconds")),
    )


def _seconds(text: str | int | None) -> float | None:
    """Read Retry-After; its date form is not used by the API server and counts as absent."""
    try:
        return None if text is None else max(0.0, float(text))
    except ValueError:
        return None
