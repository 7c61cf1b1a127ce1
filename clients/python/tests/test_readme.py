"""What the README shows works."""

import os
import pathlib
import re
import unittest
from typing import Any, Dict

HERE = pathlib.Path(__file__).parent.parent


class Readme(unittest.TestCase):
    @unittest.skipUnless(os.geteuid() == 0, "labs need root")
    def test_its_example_runs(self) -> None:
        found = re.search(r"```python\n(.*?)```", (HERE / "README.md").read_text(encoding="utf-8"), re.DOTALL)
        assert found is not None
        back = os.getcwd()
        self.addCleanup(os.chdir, back)
        os.chdir(HERE.parent.parent)
        names: Dict[str, Any] = {"print": lambda *said: None}
        exec(compile(found.group(1), "README.md", "exec"), names)
        self.assertIn("hello from", names["result"].measures["after"].output)


if __name__ == "__main__":
    unittest.main()
