"""Emulated routers in a ring, with a host at each of two."""

import os
import unittest
from typing import Any, Dict

from scaffold_lab import Client, Lab, LabError, NotFound

NAME = "py_" + str(os.getpid()) + "r"

RING: Dict[str, Any] = {
    "name": NAME,
    "nodes": {
        "a": "host",
        "b": "host",
        "e0": "emulated",
        "e1": "emulated",
        "e2": "emulated",
        "e3": "emulated",
    },
    "links": [
        *({"ends": [f"e{i}", f"e{(i + 1) % 4}"], "delay": "1ms", "cost": 1 + i} for i in range(4)),
        ["a", "e0"],
        ["b", "e2"],
    ],
}


@unittest.skipUnless(os.geteuid() == 0, "labs need root")
class ARing(unittest.TestCase):
    client: Client
    lab: Lab

    @classmethod
    def setUpClass(cls) -> None:
        cls.client = Client()
        cls.addClassCleanup(cls.client.close)
        cls.lab = cls.client.lab(RING).up()

    def packets(self, router: str) -> int:
        return int(self.lab.router(router).state()["counters"]["in"])

    def test_traffic_crosses_the_routers_of_the_shortest_path(self) -> None:
        short, long = self.packets("e1"), self.packets("e3")
        self.lab.exec("a", "ping -c 3 -i 0.01 -W 5 b")
        self.assertGreaterEqual(self.packets("e1") - short, 6)
        self.assertEqual(self.packets("e3"), long)

    def test_handlers_are_read_and_written(self) -> None:
        router = self.lab.router("e1")
        self.assertEqual(router.state()["program"], "forward")
        self.assertTrue(router.handlers()["icmp-rate"]["write"])
        router.set("icmp-rate", 7)
        self.assertEqual(router.get("icmp-rate"), "7")
        for wrong, kind, said in (
            (lambda: router.get("nothing"), NotFound, "nothing"),
            (lambda: router.set("icmp-rate", "many"), LabError, "many"),
            (lambda: self.lab.router("e9").get("drops"), NotFound, "e9"),
            (lambda: router.swap("no-such-program"), LabError, "no-such-program"),
        ):
            with self.assertRaisesRegex(kind, said):
                wrong()
        self.assertEqual(router.swap("forward")["program"], "forward")

    def test_all_routers_are_listed(self) -> None:
        self.assertEqual([r["name"] for r in self.lab.routers()], ["e0", "e1", "e2", "e3"])


if __name__ == "__main__":
    unittest.main()
