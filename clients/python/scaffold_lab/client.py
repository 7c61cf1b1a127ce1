"""The client: labs by file or by name."""

from __future__ import annotations

import json
import os
import socket
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Type, Union

from .connection import Connection
from .lab import Lab
from .result import Result
from .server import Server

#: Where ``scaffold lab serve`` is unless it was told otherwise.
DEFAULT_SOCKET = "/run/scaffold/lab.sock"

#: A lab file: its path, or what it holds as a dictionary (docs/lab.md).
File = Union[str, "os.PathLike[str]", Dict[str, Any]]


class Client:
    """Speaks to a server. Without a ``url`` that is the one in $SCAFFOLD_LAB_API, or the one on its usual
    socket; where none answers there, one is started, which ends with ``close`` or with this program."""

    def __init__(
        self,
        url: Optional[str] = None,
        token: Optional[str] = None,
        *,
        binary: Optional[str] = None,
        progress: Optional[Callable[[str], None]] = None,
    ) -> None:
        """``url`` is ``unix:/path`` or ``http://host:port``; ``token`` is needed for the latter, by default
        $SCAFFOLD_LAB_TOKEN. ``binary`` is the scaffold to start. ``progress`` is called with what labs do on
        their way up and through a run; ``print`` is a good one."""
        self._server: Optional[Server] = None
        self._progress = progress
        url = url or os.environ.get("SCAFFOLD_LAB_API")
        if url is None and _answers(DEFAULT_SOCKET):
            url = "unix:" + DEFAULT_SOCKET
        if url is None:
            self._server = Server(binary)
            url = self._server.url
        self.connection = Connection(url, token or os.environ.get("SCAFFOLD_LAB_TOKEN"))

    def close(self) -> None:
        """End the server if it was started here: labs that are still up go with it."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def version(self) -> Dict[str, Any]:
        """What answers: version, api, pid."""
        return dict(self.connection.call("GetVersion"))

    def check(self, file: File) -> Dict[str, Any]:
        """Read a lab file without doing anything; its mistakes are raised as FileError."""
        request = _request(file)
        return dict(self.connection.call("Check", request, source=_unseen(request)))

    def lab(self, file: File, *, name: Optional[str] = None, plane: Optional[str] = None) -> Lab:
        """The lab of a file, for a ``with`` statement; or call ``up`` and ``down`` on it."""
        request = _request(file, name, plane)
        name = name or str(self.connection.call("Check", request, source=_unseen(request))["name"])
        return Lab(self, name, request)

    def open(self, name: str) -> Lab:
        """A lab that is up. A ``with`` statement does not take it down."""
        lab = Lab(self, name)
        lab.status()
        return lab

    def run(self, file: File, *, name: Optional[str] = None, plane: Optional[str] = None) -> Result:
        """Bring a lab up, go through its timeline, measure, and take it down, as ``scaffold lab run`` does.
        What fails is in the result; its ``check`` raises it."""
        return Result(self.stream("Run", _request(file, name, plane))["ran"]["result"])

    def labs(self) -> List[Dict[str, Any]]:
        """The labs that are up."""
        return list(self.connection.call("ListLabs")["labs"])

    def down(self) -> List[str]:
        """Take all labs down, also what crashes left, and return their names."""
        return list(self.connection.call("DownAll")["removed"])

    def figure(self, figure: Union[Result, Dict[str, Any]], format: str = "svg") -> bytes:
        """Draw a result, or a figure as internal/lab/v1/lab.proto describes it, as svg or png."""
        key, value = ("result", figure.raw) if isinstance(figure, Result) else ("figure", figure)
        return bytes(self.connection.call("Draw", {"format": format, key: value})["image"])

    def stream(self, call: str, request: Dict[str, Any]) -> Dict[str, Any]:
        """Make a call that tells what goes on; pass the progress on and return the last event."""
        last: Dict[str, Any] = {}
        for event in self.connection.stream(call, [request], _unseen(request)):
            if "progress" not in event:
                last = event
            elif self._progress is not None:
                self._progress(event["progress"])
        return last


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
        return True


def _request(file: File, name: Optional[str] = None, plane: Optional[str] = None) -> Dict[str, Any]:
    request: Dict[str, Any] = {}
    if isinstance(file, dict):
        request["source"] = json.dumps(file, indent=1, ensure_ascii=False)
    else:
        path = os.path.abspath(os.fspath(file))
        with open(path, encoding="utf-8") as text:
            request.update(source=text.read(), path=path)
    if name is not None:
        request["name"] = name
    if plane is not None:
        request["plane"] = plane
    return request


def _unseen(request: Dict[str, Any]) -> Optional[str]:
    """The source that was made here: its lines mean nothing to anybody."""
    return None if "path" in request else request.get("source")
