"""Whole networks on one machine, from Python.

A lab is a network of hosts, routers and emulated links that a file, or a dictionary of the same shape,
describes. This package brings labs up, runs commands in their nodes, changes links, breaks things, runs
timelines and gives back what was measured::

    import scaffold_lab

    with scaffold_lab.Client() as client:
        with client.lab("examples/slow.yaml") as lab:
            print(lab.exec("c1", "curl -s http://hello.svc/").stdout)
            lab.link("s2", "r1").set(delay=0.1, loss=0.02)
            result = lab.run()

It speaks to ``scaffold lab serve``, which it starts by itself where none runs; that takes root. What
it says there is in internal/lab/v1/lab.proto; keys of lab files are those of docs/lab.md.
"""

from .client import Client
from .errors import CommandFailed, FileError, LabError, NotFound, Refused, RunFailed, Unreachable
from .lab import Executed, Lab, Link, Process, Router
from .result import Measure, Result, Series, Step

__all__ = [
    "Client",
    "CommandFailed",
    "Executed",
    "FileError",
    "Lab",
    "LabError",
    "Link",
    "Measure",
    "NotFound",
    "Process",
    "Refused",
    "Result",
    "Router",
    "RunFailed",
    "Series",
    "Step",
    "Unreachable",
]
