"""What can go wrong, as exceptions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, List, Optional, Tuple

if TYPE_CHECKING:
    from .lab import Executed
    from .result import Result


class LabError(Exception):
    """Something failed; ``status`` is that of HTTP, 0 where no server answered."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Unreachable(LabError):
    """No server answers, or none could be started."""


class NotFound(LabError):
    """No such lab, node, link, program or handler."""


class Refused(LabError):
    """The state of the lab does not allow it: a lab of that name is up, or somebody else works on it."""


class FileError(LabError):
    """A lab file with mistakes: ``lines`` has the number of a line and what is wrong there, for each."""

    def __init__(self, message: str, lines: List[Tuple[int, str]], status: int = 422) -> None:
        super().__init__(message, status)
        self.lines = lines


class CommandFailed(LabError):
    """A command in a node ended with an exit code that is not 0: ``executed`` has its output."""

    def __init__(self, node: str, argv: List[str], executed: "Executed") -> None:
        said = (executed.stderr or executed.stdout).strip()
        super().__init__(
            f"{node}: {' '.join(argv)}: exit code {executed.exit}" + (f"\n{said}" if said else "")
        )
        self.executed = executed


class RunFailed(LabError):
    """A step, a measurement or a series of a run failed: ``result`` has all that there was."""

    def __init__(self, result: "Result", what: List[str]) -> None:
        super().__init__(f"lab {result.name}: " + "; ".join(what))
        self.result = result


def from_fault(fault: Any, source: Optional[str] = None) -> LabError:
    """Make the exception for an answer that says what failed. ``source`` is the file that was sent: where
    it was made from a dictionary nobody has seen its lines, so they are quoted."""
    if not isinstance(fault, dict) or "error" not in fault:
        return LabError(f"an answer that is not of this API: {json.dumps(fault)[:200]}")
    message, status = str(fault["error"]), int(fault.get("status", 0))
    if fault.get("lines"):
        lines = [(int(line["line"]), str(line["text"])) for line in fault["lines"]]
        if source is not None:
            text = source.split("\n")
            message = "\n".join(
                f"{what}, at {text[at - 1].strip()}" for at, what in lines if 0 < at <= len(text)
            )
        return FileError(message, lines, status)
    kinds = {404: NotFound, 409: Refused}
    return kinds.get(status, LabError)(message, status)
