"""A lab, its nodes and its links."""

from __future__ import annotations

import itertools
import os
import shlex
import socket
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Sequence, Tuple, Type, Union

from .connection import Connection
from .errors import CommandFailed, LabError, NotFound
from .result import Result
from .values import Value, parameters

if TYPE_CHECKING:
    from .client import Client

#: A command: words, or a line that is split as a shell does; no shell is involved.
Command = Union[str, Sequence[str]]

#: Bytes of a recording in one message.
_PIECE = 1 << 16


@dataclass(frozen=True)
class Executed:
    """A command that ran to its end."""

    exit: int  # exit code; 128 and the number of the signal that killed it
    stdout: str
    stderr: str
    took: float  # seconds


class Lab:
    """A network that is up, or will be: in a ``with`` statement it is up inside and gone behind it."""

    def __init__(self, client: "Client", name: str, request: Optional[Dict[str, Any]] = None) -> None:
        """Made by Client.lab and Client.open."""
        self.name = name
        self._client = client
        self._request = request

    @property
    def _api(self) -> Connection:
        return self._client.connection

    def _call(self, call: str, **fields: Any) -> Any:
        return self._api.call(call, {"lab": self.name, **fields})

    def up(self) -> "Lab":
        """Bring the lab up; it returns when its programs run. Ctrl-C leaves nothing of it."""
        if self._request is None:
            raise LabError(f"lab {self.name} was opened by its name: its file is not known here")
        self.name = self._client.stream("Up", self._request)["lab"]["name"]
        return self

    def down(self) -> None:
        """Take the lab down."""
        self._call("Down")

    def __enter__(self) -> "Lab":
        return self.up() if self._request is not None else self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if self._request is None:
            return
        try:
            self.down()
        except NotFound:  # somebody took it down inside
            pass

    def exec(
        self,
        node: str,
        command: Command,
        *,
        input: str = "",
        env: Optional[Dict[str, str]] = None,
        timeout: Optional[float] = None,
        check: bool = True,
    ) -> Executed:
        """Run a command in a node to its end. With ``check``, an exit code that is not 0 is raised as
        CommandFailed. After ``timeout`` seconds it is killed, and TimeoutError raised."""
        argv = _words(command)
        request = self._command(node, argv, input, env)
        try:
            answer = self._api.call("Exec", request, timeout)
        except (TimeoutError, socket.timeout):  # one and the same since Python 3.10
            raise TimeoutError(f"{node}: {' '.join(argv)}: killed after {timeout:g} s") from None
        done = Executed(answer["exit"], answer["stdout"], answer["stderr"], answer["took_s"])
        if check and done.exit != 0:
            raise CommandFailed(node, argv, done)
        return done

    def start(
        self, node: str, command: Command, *, input: str = "", env: Optional[Dict[str, str]] = None
    ) -> "Process":
        """Start a command in a node and return at once. In a ``with`` statement it is killed at its end."""
        argv = _words(command)
        return Process(self, node, argv, self._command(node, argv, input, env))

    def _command(
        self, node: str, argv: List[str], input: str, env: Optional[Dict[str, str]]
    ) -> Dict[str, Any]:
        return {"lab": self.name, "node": node, "argv": argv, "stdin": input, "env": env or {}}

    def do(self, action: str) -> str:
        """Carry out an action as a timeline writes it, such as ``"cut s1 r1"``; it returns what an
        ``exec`` printed, otherwise nothing."""
        return str(self._call("Act", do=action)["output"])

    def link(self, a: str, b: str) -> "Link":
        """The link, or links, between two nodes."""
        return Link(self, a, b)

    def router(self, name: str) -> "Router":
        """An emulated router."""
        return Router(self, name)

    def run(self) -> Result:
        """Go through the timeline of the lab's file and take its measurements; the lab stays up."""
        return Result(self._client.stream("Play", {"lab": self.name})["ran"]["result"])

    def certificate(self) -> Dict[str, Any]:
        """Whether the emulated network does what was asked of it: ``faithful``, and ``reasons`` why not."""
        return dict(self._call("Certify"))

    def reset_certificate(self) -> Dict[str, Any]:
        """The certificate of what was until now. Counting begins anew, so that the next one is about what comes."""
        return dict(self._call("Certify", reset=True))

    def routers(self) -> List[Dict[str, Any]]:
        """Programs, ports and counters of all emulated routers."""
        return list(self._call("ListRouters")["routers"])

    def status(self) -> Dict[str, Any]:
        """Nodes, processes and links at this moment."""
        return dict(self._call("GetStatus"))

    def traffic(self) -> Dict[str, Any]:
        """Counters of all links at this moment."""
        return dict(self._call("GetTraffic"))

    def links(self) -> List[Dict[str, Any]]:
        """Parameters and counters of all emulated links."""
        return list(self._call("ListLinks")["links"])

    def topology(self) -> Dict[str, Any]:
        """The lab as a graph, in networkx's node-link form."""
        return dict(self._call("GetTopology"))

    def graph(self) -> Any:
        """The lab as a networkx MultiGraph. Needs networkx."""
        import networkx

        t, graph = self.topology(), networkx.MultiGraph()
        graph.graph.update(t["graph"])
        for node in t["nodes"]:
            graph.add_node(node["id"], **{k: v for k, v in node.items() if k != "id"})
        for link in t["links"]:
            rest = {k: v for k, v in link.items() if k not in ("source", "target", "key")}
            graph.add_edge(link["source"], link["target"], link["key"], **rest)
        return graph

    def log(self, node: str, program: str) -> str:
        """What a program or daemon of a node printed."""
        return str(self._call("GetLog", node=node, program=program)["text"])

    def __repr__(self) -> str:
        return f"<Lab {self.name} at {self._api.url}>"


class Link:
    """The emulated link between two nodes, or all of them where there are several."""

    def __init__(self, lab: Lab, a: str, b: str) -> None:
        self.a, self.b = a, b
        self._lab = lab

    def _call(self, call: str, **fields: Any) -> List[Dict[str, Any]]:
        return list(self._lab._call(call, a=self.a, b=self.b, **fields)["links"])

    def set(self, *, one_way: bool = False, **values: Value) -> List[Dict[str, Any]]:
        """Change the link while it carries packets: both directions, or with ``one_way`` that from a to b.

        Parameters are those of docs/emu.md, ``burst_loss`` for ``burst-loss``. Text is read as in a lab file
        ("20ms", "1%", "10Mbit"). Numbers are seconds for times, 0 to 1 for shares, bit/s for the rate and
        bytes for the queue; a timedelta is a time."""
        return self._call("SetLinks", set=parameters(values), one_way=one_way)

    def stats(self) -> List[Dict[str, Any]]:
        """Present parameters and counters of both directions; ``lines[0]`` begins at ``ends[0]``."""
        return self._call("ListLinks")

    def capture(self, path: Union[str, "os.PathLike[str]"]) -> "Capture":
        """Record what crosses the link, in both directions, into a pcap file, in a ``with`` statement."""
        return Capture(self, path)

    def replay(self, recording: Union[str, "os.PathLike[str]"], speed: float = 1) -> Dict[str, Any]:
        """Let the frames of a pcap file arrive at b as if a had sent them, ``speed`` times as fast as they
        were recorded; it returns when they have, and says how many frames arrived."""
        where = {"lab": self._lab.name, "a": self.a, "b": self.b, "speed": speed}
        with open(recording, "rb") as file:
            pieces = ({"pcap": piece} for piece in iter(lambda: file.read(_PIECE), b""))
            (played,) = self._lab._api.stream("Replay", itertools.chain([where], pieces))
        return dict(played)

    def cut(self) -> None:
        """Lose every packet in both directions; the carrier stays."""
        self._lab.do(f"cut {self.a} {self.b}")

    def unplug(self) -> None:
        """Take the link down."""
        self._lab.do(f"unplug {self.a} {self.b}")

    def heal(self) -> None:
        """Undo cut and unplug."""
        self._lab.do(f"heal {self.a} {self.b}")

    def fail(self) -> None:
        """Break the link: both ends lose their carrier, and routes follow."""
        self._lab.do(f"fail {self.a} {self.b}")

    def repair(self) -> None:
        """Undo fail."""
        self._lab.do(f"repair {self.a} {self.b}")

    def __repr__(self) -> str:
        return f"<Link {self.a} - {self.b} of lab {self._lab.name}>"


class Capture:
    """A recording of a link that goes on until the end of its ``with`` statement."""

    def __init__(self, link: Link, file: Union[str, "os.PathLike[str]"]) -> None:
        """Made by Link.capture."""
        self._link = link
        self._file = file

    def __enter__(self) -> "Capture":
        lab, where = self._link._lab, {"a": self._link.a, "b": self._link.b}
        self._stream = lab._api.stream("Capture", [{"lab": lab.name, **where}])
        self._pieces = iter(self._stream)
        first = next(self._pieces)  # what crosses from now on is recorded
        self._out = open(self._file, "wb")
        self._thread = threading.Thread(target=self._read, args=(first,), daemon=True)
        self._thread.start()
        return self

    def _read(self, first: Dict[str, Any]) -> None:
        try:
            for piece in itertools.chain([first], self._pieces):
                self._out.write(piece["pcap"])
                self._out.flush()
        except (OSError, LabError):
            pass  # it was ended

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self._stream.leave()
        self._thread.join()
        self._out.close()
        self._stream.close()


class Process:
    """A command that runs in a node until it ends, is stopped, or this program ends. Its output is read
    all the time, so that it never waits for somebody to take it."""

    def __init__(self, lab: Lab, node: str, argv: List[str], request: Dict[str, Any]) -> None:
        """Made by Lab.start."""
        self.node, self.argv = node, argv
        self._lab = lab
        self._events = iter(lab._api.stream("Start", [request]))
        self.pid: int = next(self._events)["pid"]
        self._news = threading.Condition()
        self._out: List[Tuple[str, str]] = []
        self._done: Optional[Executed] = None
        self._error: Optional[BaseException] = None
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        error: Optional[BaseException] = LabError(
            f"{self.node}: {self.argv[0]}: the server did not say how it ended"
        )
        done: Optional[Executed] = None
        try:
            for event in self._events:
                if "ended" in event:
                    ended = event["ended"]
                    done = Executed(ended["exit"], self.stdout, self.stderr, ended["took_s"])
                    continue
                with self._news:
                    self._out.extend(event.items())
                    self._news.notify_all()
        except BaseException as problem:  # to be raised where somebody waits
            error = problem
        with self._news:
            self._done, self._error = done, None if done else error
            self._news.notify_all()

    def _text(self, name: str) -> str:
        with self._news:
            return "".join(text for of, text in self._out if of == name)

    @property
    def stdout(self) -> str:
        """What it printed so far."""
        return self._text("stdout")

    @property
    def stderr(self) -> str:
        """What it printed so far on its other output."""
        return self._text("stderr")

    @property
    def running(self) -> bool:
        """Whether it runs, as far as is known here."""
        return self._done is None and self._error is None

    def lines(self) -> Iterator[str]:
        """The lines of its standard output, without their ends, as they come, until it ends."""
        at, rest = 0, ""
        while True:
            with self._news:
                self._news.wait_for(lambda: len(self._out) > at or not self.running)
                new, at = self._out[at:], len(self._out)
                ended = not self.running and not new
            *whole, rest = (rest + "".join(text for of, text in new if of == "stdout")).split("\n")
            yield from whole
            if ended:
                if rest:
                    yield rest
                return

    def expect(self, text: str, timeout: Optional[float] = None) -> None:
        """Wait until it has printed ``text`` on either output."""
        with self._news:
            found = self._news.wait_for(lambda: self._printed(text) or not self.running, timeout)
        if not found:
            raise TimeoutError(f"{self.node}: {self.argv[0]}: no {text!r} after {timeout:g} s")
        if not self._printed(text):
            raise LabError(f"{self.node}: {self.argv[0]} ended without {text!r}: {self.stdout}{self.stderr}")

    def _printed(self, text: str) -> bool:
        return any(text in "".join(t for of, t in self._out if of == name) for name in ("stdout", "stderr"))

    def wait(self, timeout: Optional[float] = None) -> Executed:
        """Wait for its end; after ``timeout`` seconds, TimeoutError, and it goes on."""
        with self._news:
            if not self._news.wait_for(lambda: not self.running, timeout):
                raise TimeoutError(f"{self.node}: {self.argv[0]} runs after {timeout:g} s")
        if self._error is not None:
            raise self._error
        assert self._done is not None
        return self._done

    def signal(self, name: str) -> None:
        """Send a signal, such as ``"TERM"``, to it and its children."""
        self._lab._call("Signal", node=self.node, pid=self.pid, signal=name)

    def stop(self) -> Executed:
        """Kill it with its children, wait, and return what it printed until then."""
        try:
            self.signal("KILL")
        except NotFound:  # it has ended
            pass
        return self.wait()

    def __enter__(self) -> "Process":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Process {self.pid} on {self.node}: {' '.join(self.argv)}>"


class Router:
    """An emulated router: its program's state is read and written, through handlers, while packets cross
    it, and the program itself is replaced."""

    def __init__(self, lab: Lab, name: str) -> None:
        self.name = name
        self._lab = lab

    def _call(self, call: str, **fields: Any) -> Any:
        return self._lab._call(call, router=self.name, **fields)

    def state(self) -> Dict[str, Any]:
        """Program, ports and counters."""
        return dict(self._call("GetRouter"))

    def handlers(self) -> Dict[str, Dict[str, Any]]:
        """What can be read or written, by name: doc, read, write."""
        return {h["name"]: h for h in self._call("ListHandlers")["handlers"]}

    def get(self, handler: str) -> str:
        """Read a handler."""
        return str(self._call("GetHandler", handler=handler)["value"])

    def set(self, handler: str, value: object) -> None:
        """Write a handler; the value is written as text."""
        self._call("SetHandler", handler=handler, value=str(value))

    def swap(self, program: str, **parameters: object) -> Dict[str, Any]:
        """Give it another program, and return its state."""
        given = {k: str(v) for k, v in parameters.items()}
        return dict(self._call("SwapProgram", program=program, parameters=given))

    def __repr__(self) -> str:
        return f"<Router {self.name} of lab {self._lab.name}>"


def _words(command: Command) -> List[str]:
    return shlex.split(command) if isinstance(command, str) else list(command)
