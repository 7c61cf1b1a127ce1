"""Emulated routers in a ring, with a host at each of two."""

import os
import tempfile
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

    def test_traffic_goes_round_a_link_that_fails(self) -> None:
        link, long = self.lab.link("e0", "e1"), self.packets("e3")
        link.fail()
        self.assertEqual(link.stats()[0]["causes"], ["fail"])
        self.assertEqual(self.lab.traffic()["links"][0]["state"], "failed")
        with self.lab.start("a", "ping -i 0.01 b") as ping:
            ping.expect("bytes from", 20)
        self.assertGreater(self.packets("e3"), long)
        link.repair()
        self.assertEqual(link.stats()[0]["causes"], [])

    def test_what_crosses_a_link_is_recorded_and_played_again(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.pcap")
            with self.lab.link("e1", "e2").capture(path):
                self.lab.exec("a", "ping -c 20 -i 0.01 -s 1000 b")
            size = os.path.getsize(path)
            self.assertGreater(size, 20 * 1000)
            before = self.packets("e2")
            played = self.lab.link("e1", "e2").replay(path, speed=10)
            self.assertEqual(played["frames"], played["arrived"])
            self.assertGreaterEqual(self.packets("e2") - before, played["frames"])
            with self.assertRaises(LabError):
                self.lab.link("e1", "e2").replay(__file__)
            with self.assertRaises(NotFound), self.lab.link("e0", "e2").capture(path):
                pass

    def test_a_certificate_says_how_faithful_it_was(self) -> None:
        certificate = self.lab.certificate()
        self.assertEqual(certificate["faithful"], not certificate.get("reasons"))
        self.assertLessEqual(
            {("e0", "e1"), ("e1", "e0")}, {(row["from"], row["to"]) for row in certificate["links"]}
        )

    def test_a_certificate_begins_anew(self) -> None:
        until_now = self.lab.reset_certificate()
        after = self.lab.certificate()
        self.assertGreater(after["since"], until_now["since"])

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
