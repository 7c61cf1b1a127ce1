"""HTTP to the server, over a Unix socket or TCP."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import urllib.parse
from typing import Any, ContextManager, Iterator, Optional, Tuple

from .errors import LabError, Unreachable, from_fault


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
    """Where the API is. Each request has a connection of its own: closing it cancels what it began."""

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

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        timeout: Optional[float] = None,
        source: Optional[str] = None,
    ) -> Tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Send a request; an answer that says that it failed is raised. Closing the connection cancels it."""
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        text = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        connection = self._open(timeout)
        try:
            try:
                connection.request(method, path, text, headers)
                answer = connection.getresponse()
            except (ConnectionError, FileNotFoundError, http.client.HTTPException) as problem:
                raise Unreachable(
                    f"{self.url}: no lab server answers ({problem}): scaffold lab serve starts one"
                ) from problem
            if answer.status >= 300:
                raise from_fault(_parse(answer.read()), source)
        except BaseException:
            connection.close()
            raise
        return connection, answer

    @contextlib.contextmanager
    def response(
        self,
        method: str,
        path: str,
        body: Any = None,
        timeout: Optional[float] = None,
        source: Optional[str] = None,
    ) -> Iterator[http.client.HTTPResponse]:
        """Send a request, for a ``with`` statement that reads the answer."""
        connection, answer = self.send(method, path, body, timeout, source)
        try:
            yield answer
            answer.close()
        finally:
            connection.close()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        timeout: Optional[float] = None,
        source: Optional[str] = None,
    ) -> Any:
        """Send a request and return its JSON. After ``timeout`` seconds without an answer, TimeoutError."""
        with self.response(method, path, body, timeout, source) as answer:
            return _parse(answer.read())

    def fetch(self, method: str, path: str, body: Any = None) -> bytes:
        """Send a request and return what it answers as it is."""
        with self.response(method, path, body) as answer:
            return answer.read()

    def lines(self, method: str, path: str, body: Any = None, source: Optional[str] = None) -> "Lines":
        """Send a request and return the lines of its answer as they come. Closing them cancels it."""
        return Lines(self.response(method, path, body, source=source), source)


class Lines:
    """The lines of an answer, each an object. One that says that the whole failed is raised."""

    def __init__(self, response: ContextManager[http.client.HTTPResponse], source: Optional[str]) -> None:
        self._response = response
        self._source = source
        self._answer = response.__enter__()

    def __iter__(self) -> Iterator[Any]:
        try:
            for line in self._answer:
                value = _parse(line)
                if isinstance(value, dict) and "error" in value:
                    raise from_fault(value, self._source)
                yield value
        except http.client.HTTPException as problem:
            raise Unreachable(
                f"the lab server went away in the midst of its answer: {problem!r}"
            ) from problem
        finally:
            self.close()

    def close(self) -> None:
        """Close the connection."""
        self._response.__exit__(None, None, None)


def _parse(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError as problem:
        raise LabError(f"an answer that is not JSON: {text[:200]!r}") from problem


def quoted(*names: str) -> str:
    """Names as parts of a path."""
    return "/".join(urllib.parse.quote(name, safe="") for name in names)
