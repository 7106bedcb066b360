"""The few requests to the API server that starting and stopping need."""

import http.client
import json
import ssl
import urllib.error
import urllib.request
from typing import Any

from clusterlib.programs import API_URL
from clusterlib.settings import Settings

Document = dict[str, Any]
"""A JSON document as the API server takes and gives it."""


def is_healthy(folders: Settings, url: str) -> bool:
    """Return whether a health URL answers 200. Only the API server's certificate is checked."""
    try:
        with urllib.request.urlopen(url, timeout=5, context=_context(folders, url)) as response:
            return bool(response.status == http.client.OK)
    except (OSError, http.client.HTTPException):
        return False


def request(
    folders: Settings, method: str, path: str, body: Document | None = None
) -> Document | None:
    """Send one request as the administrator and return the parsed answer, or None where the object is not there.

    Raises:
        urllib.error.HTTPError: If the API server answers with another fault than 404.
        OSError: If it does not answer.
    """
    url = f"{API_URL}{path}"
    data = None if body is None else json.dumps(body).encode()
    message = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(
            message, timeout=20, context=_context(folders, url)
        ) as response:
            answer: Document = json.load(response)
            return answer
    except urllib.error.HTTPError as error:
        if error.code == http.client.NOT_FOUND:
            return None
        raise


def _context(folders: Settings, url: str) -> ssl.SSLContext | None:
    if not url.startswith("https"):
        return None
    keys = folders.certificates
    context = ssl.create_default_context(cafile=str(keys / "authority.crt"))
    if url.startswith(API_URL):
        context.load_cert_chain(keys / "administrator.crt", keys / "administrator.key")
    else:
        # The controller manager and the scheduler make a certificate for themselves at each start.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
