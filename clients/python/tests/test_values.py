"""What needs no server."""

import ast
import datetime
import pathlib
import unittest
from typing import Dict

import scaffold_lab

from scaffold_lab import CommandFailed, Executed, FileError, LabError, NotFound, Refused, Result, RunFailed
from scaffold_lab._schema import CALLS, MESSAGES
from scaffold_lab.connection import Connection
from scaffold_lab.errors import from_fault
from scaffold_lab.values import Value, parameters

RESULT = {
    "name": "x",
    "took_s": 2.5,
    "steps": [{"at_s": 1, "began_s": 1.001, "took_s": 0.1, "do": "cut a b", "error": "no"}],
    "measures": [{"name": "m", "node": "a", "began_s": 2, "took_s": 0.1, "exit": 3, "output": "o"}],
    "series": [{"name": "s", "panel": "p", "points": [[0.1, 5], [0.2, 6]]}],
}


class Parameters(unittest.TestCase):
    def test_numbers_become_what_a_lab_file_has(self) -> None:
        given: Dict[str, Value] = dict(
            delay=0.02,
            jitter=datetime.timedelta(milliseconds=2),
            loss=0.01,
            burst_loss=1e-5,
            burst=8,
            rate=10e6,
            queue=65536,
            seed=7,
        )
        want = {
            "delay": "20000000ns",
            "jitter": "2000000ns",
            "loss": "1%",
            "burst-loss": "0.001%",
            "burst": "8",
            "rate": "10000000bit",
            "queue": "65536",
            "seed": "7",
        }
        self.assertEqual(parameters(given), want)

    def test_text_stays_text(self) -> None:
        self.assertEqual(
            parameters({"delay": "20ms", "unordered": True, "rate": 0}),
            {"delay": "20ms", "unordered": "true", "rate": "none"},
        )


class Errors(unittest.TestCase):
    def test_each_status_has_its_exception(self) -> None:
        for status, kind in ((404, NotFound), (409, Refused), (500, LabError)):
            got = from_fault({"status": status, "error": "e"})
            self.assertIs(type(got), kind)
            self.assertEqual((str(got), got.status), ("e", status))

    def test_mistakes_in_a_dictionary_are_shown_with_their_text(self) -> None:
        fault = {
            "status": 422,
            "error": "lab:2: unknown",
            "lines": [{"file": "lab", "line": 2, "text": "unknown"}],
        }
        got = from_fault(fault, '{\n "nods": {}\n}')
        assert isinstance(got, FileError)
        self.assertEqual((str(got), got.lines), ('unknown, at "nods": {}', [(2, "unknown")]))
        self.assertEqual(str(from_fault(fault)), "lab:2: unknown")

    def test_an_answer_of_somebody_else_is_told(self) -> None:
        self.assertIn("not of this API", str(from_fault(["hello"])))

    def test_a_failed_command_shows_what_it_said(self) -> None:
        self.assertEqual(
            str(CommandFailed("h", ["a", "b"], Executed(3, "out", "err\n", 0.1))), "h: a b: exit code 3\nerr"
        )

    def test_an_address_that_is_none_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "expected unix:"):
            Connection("localhost")


class Calls(unittest.TestCase):
    def test_all_are_in_the_schema(self) -> None:
        seen = set()
        for path in pathlib.Path(scaffold_lab.__file__).parent.glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                    continue
                if node.func.attr in ("call", "stream", "_call") and isinstance(node.args[0], ast.Constant):
                    name = str(node.args[0].value)
                    seen.add(name)
                    fields = {k.arg for k in node.keywords} - {"source", None}
                    self.assertLessEqual(fields, set(MESSAGES[CALLS[name][0]]), name)
        self.assertEqual(set(CALLS) - seen, {"ListNames"})  # labs() has what it says

    def test_a_field_that_the_schema_does_not_have_is_not_sent(self) -> None:
        with self.assertRaisesRegex(TypeError, "LabName has no field lap"):
            Connection("unix:/nowhere").call("GetStatus", {"lap": "x"})


class Results(unittest.TestCase):
    def test_a_result_has_its_series_as_lists(self) -> None:
        r = Result(RESULT)
        self.assertEqual((r.series["s"].times, r.series["s"].values), ([0.1, 0.2], [5, 6]))
        self.assertEqual((r.measures["m"].exit, r.steps[0].do, r.took), (3, "cut a b", 2.5))

    def test_what_failed_is_raised(self) -> None:
        with self.assertRaisesRegex(RunFailed, "lab x: cut a b: no; m: exit code 3"):
            Result(RESULT).check()
        Result({"name": "x", "took_s": 1, "steps": None, "measures": None}).check()


if __name__ == "__main__":
    unittest.main()
