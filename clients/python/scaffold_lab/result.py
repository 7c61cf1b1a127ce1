"""What a run gave."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Dict, List, Optional

from .errors import RunFailed


@dataclass(frozen=True)
class Step:
    """One step of the timeline; times are seconds from the moment that the lab was up."""

    at: float  # when it was due
    began: float
    took: float
    do: str
    label: str
    output: str  # of exec
    error: str  # "" where it succeeded


@dataclass(frozen=True)
class Measure:
    """One measurement: a command with its output."""

    name: str
    node: str
    began: float  # seconds from the moment that the lab was up
    took: float
    exit: int
    output: str
    error: str


@dataclass(frozen=True)
class Series:
    """A quantity over the time of the run: ``values[i]`` was read at ``times[i]`` seconds."""

    name: str
    panel: str  # quantity and unit
    times: List[float]
    values: List[float]
    error: str


class Result:
    """What a run of a lab gave; ``raw`` is the same as internal/lab/v1/lab.proto has it."""

    def __init__(self, raw: Dict[str, Any]) -> None:
        self.raw = raw
        self.name: str = raw["name"]
        self.title: str = raw.get("title", "")
        self.took: float = raw["took_s"]
        self.steps: List[Step] = [
            Step(
                s["at_s"],
                s["began_s"],
                s["took_s"],
                s["do"],
                s.get("label", ""),
                s.get("output", ""),
                s.get("error", ""),
            )
            for s in raw.get("steps") or []
        ]
        self.measures: Dict[str, Measure] = {
            m["name"]: Measure(
                m["name"], m["node"], m["began_s"], m["took_s"], m["exit"], m["output"], m.get("error", "")
            )
            for m in raw.get("measures") or []
        }
        self.series: Dict[str, Series] = {
            s["name"]: Series(
                s["name"],
                s.get("panel", ""),
                [p[0] for p in s["points"]],
                [p[1] for p in s["points"]],
                s.get("error", ""),
            )
            for s in raw.get("series") or []
        }

    @property
    def faithful(self) -> Optional[bool]:
        """Whether the emulated network did what was asked of it, by the certificate that each run ends with
        (``raw["certificate"]``); None in a lab where nothing is emulated."""
        certificate = self.raw.get("certificate")
        return None if certificate is None else bool(certificate["faithful"])

    @property
    def failures(self) -> List[str]:
        """What failed, in words; nothing in a good run."""
        return (
            [f"{s.do}: {s.error}" for s in self.steps if s.error]
            + [
                f"{m.name}: {m.error or f'exit code {m.exit}'}"
                for m in self.measures.values()
                if m.error or m.exit
            ]
            + [f"series {s.name}: {s.error}" for s in self.series.values() if s.error]
        )

    def check(self) -> "Result":
        """Raise RunFailed if something failed."""
        if self.failures:
            raise RunFailed(self, self.failures)
        return self

    def save(self, path: str) -> None:
        """Write the result to a file that ``scaffold lab plot`` draws."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.raw, file)
            file.write("\n")

    def frame(self, panel: Optional[str] = None) -> Any:
        """The series as a pandas DataFrame in long form: series, panel, time_s, value. Needs pandas."""
        import pandas

        rows = [
            (s.name, s.panel, t, v)
            for s in self.series.values()
            if panel is None or s.panel == panel
            for t, v in zip(s.times, s.values)
        ]
        return pandas.DataFrame(rows, columns=["series", "panel", "time_s", "value"])

    def __repr__(self) -> str:
        return (
            f"<Result of lab {self.name}: {self.took:g} s, {len(self.steps)} steps, {len(self.measures)} measures, "
            f"{len(self.series)} series, {len(self.failures)} failures>"
        )
