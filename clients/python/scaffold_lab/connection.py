"""Calls of the lab's API: Connect's JSON over a Unix socket or TCP, as ``_schema`` has it."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import socket
import struct
import urllib.parse
from typing import Any, Dict, Iterable, Iterator, Optional, Tuple

from ._schema import CALLS, MESSAGES, SERVICE
from .errors import LabError, Unreachable, from_fault

#: What HTTP says where Connect has these codes; 500 for the others.
_STATUS = {
    "canceled": 499,
    "invalid_argument": 400,
    "deadline_exceeded": 504,
    "not_found": 404,
    "already_exists": 409,
    "permission_denied": 403,
    "resource_exhausted": 429,
    "failed_precondition": 400,
    "aborted": 409,
    "unimplemented": 501,
    "unavailable": 503,
    "unauthenticated": 401,
}

#: Before each message of a stream: its flags, of which 2 marks the end, and its length.
_ENVELOPE = struct.Struct(">BI")

Request = Dict[str, Any]


class _UnixConnection(http.client.HTTPConnection):
    """HTTP whose other side is the path of a socket."""

    def __init__(self, path: str, timeout: Optional[float]) -> None:
        super().__init__("lab", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Connection:
    """Where the API is. Each call has a connection of its own: closing it cancels what it began."""

    def __init__(self, url: str, token: Optional[str] = None) -> None:
        """``url`` is ``unix:/path/to/socket`` or ``http://host:port``."""
        self.url = url
        self._token = token
        if not url.startswith("unix:") and not urllib.parse.urlsplit(url).hostname:
            raise ValueError(f"{url!r}: expected unix:/path/to/socket or http://host:port")

    def _open(self, timeout: Optional[float]) -> http.client.HTTPConnection:
        if self.url.startswith("unix:"):
            return _UnixConnection(self.url[len("unix:") :], timeout)
        at = urllib.parse.urlsplit(self.url)
        return http.client.HTTPConnection(at.hostname or "", at.port or 80, timeout=timeout)

    @contextlib.contextmanager
    def _send(
        self, call: str, kind: str, body: Any, timeout: Optional[float], source: Optional[str]
    ) -> Iterator[Tuple[http.client.HTTPConnection, http.client.HTTPResponse]]:
        """Send a request; an answer that says that it failed is raised."""
        headers = {"Content-Type": kind}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        with contextlib.closing(self._open(timeout)) as connection:
            try:
                connection.request("POST", f"/{SERVICE}/{call}", body, headers)
                answer = connection.getresponse()
            except (ConnectionError, FileNotFoundError, http.client.HTTPException) as problem:
                raise Unreachable(
                    f"{self.url}: no lab server answers ({problem}): scaffold lab serve starts one"
                ) from problem
            if answer.status >= 300:
                raise from_fault(_fault(_parse(answer.read())), source)
            with answer:
                yield connection, answer

    def call(
        self,
        call: str,
        request: Optional[Request] = None,
        timeout: Optional[float] = None,
        source: Optional[str] = None,
    ) -> Any:
        """Make a call that has one answer. After ``timeout`` seconds without it, TimeoutError. ``source`` is the
        lab file that nobody has seen."""
        takes, gives = CALLS[call]
        body = _written(takes, request or {})
        with self._send(call, "application/json", body, timeout, source) as (_, answer):
            return _read(gives, _parse(answer.read()))

    def stream(self, call: str, requests: Iterable[Request], source: Optional[str] = None) -> "Stream":
        """Make a call that takes or gives several messages."""
        takes, gives = CALLS[call]
        body = (_ENVELOPE.pack(0, len(text)) + text for text in (_written(takes, r) for r in requests))
        return Stream(self._send(call, "application/connect+json", body, None, source), gives, source)


class Stream:
    """The messages of an answer, as they come. Closing it cancels the call."""

    def __init__(
        self,
        response: contextlib.AbstractContextManager[
            Tuple[http.client.HTTPConnection, http.client.HTTPResponse]
        ],
        gives: str,
        source: Optional[str],
    ) -> None:
        self._response, self._gives, self._source = response, gives, source
        self._connection, self._answer = response.__enter__()

    def __iter__(self) -> Iterator[Any]:
        try:
            while True:
                flags, length = _ENVELOPE.unpack(self._exactly(_ENVELOPE.size))
                value = _parse(self._exactly(length))
                if flags & 2:
                    break
                yield _read(self._gives, value)
            if "error" in value:
                raise from_fault(_fault(value["error"]), self._source)
        except http.client.HTTPException as problem:
            raise Unreachable(
                f"the lab server went away in the midst of its answer: {problem!r}"
            ) from problem
        finally:
            self.close()

    def _exactly(self, length: int) -> bytes:
        text = self._answer.read(length)
        if len(text) < length:
            raise http.client.IncompleteRead(text, length - len(text))
        return text

    def leave(self) -> None:
        """Say that no more is wanted: the server sends what it has, and ends."""
        if self._connection.sock is not None:
            self._connection.sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close the connection."""
        self._response.__exit__(None, None, None)


def _parse(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError as problem:
        raise LabError(f"an answer that is not JSON: {text[:200]!r}") from problem


def _written(message: str, request: Request) -> bytes:
    unknown = request.keys() - MESSAGES[message].keys()
    if unknown:
        raise TypeError(f"{message} has no field {', '.join(sorted(unknown))}")
    return json.dumps(request, default=lambda value: base64.b64encode(value).decode()).encode()


def _read(kind: str, value: Any) -> Any:
    """Make numbers and bytes of what JSON has as text: whole numbers of 64 bits, and base64."""
    if isinstance(value, list):
        return [_read(kind, one) for one in value]
    if kind in ("int64", "uint64"):
        return int(value)
    if kind == "bytes":
        return base64.b64decode(value)
    if kind in MESSAGES:
        return {name: _read(MESSAGES[kind].get(name, ""), one) for name, one in value.items()}
    return value


def _fault(error: Any) -> Any:
    """An error of Connect as the exceptions have it: its status, its text, and the mistakes of a lab file."""
    if not isinstance(error, dict) or "code" not in error:
        return error
    lines = [line for detail in error.get("details", ()) for line in detail.get("debug", {}).get("lines", ())]
    return {
        "status": _STATUS.get(error["code"], 500),
        "error": error.get("message", error["code"]),
        "lines": lines,
    }
