"""A real lab, through a real server: root, and scaffold as $SCAFFOLD or in PATH."""

import os
import threading
import unittest
from typing import Any, Dict, List

import scaffold_lab
from scaffold_lab import Client, CommandFailed, FileError, LabError, NotFound, Refused, Unreachable

NAME = "py_" + str(os.getpid())

NETWORK: Dict[str, Any] = {
    "name": NAME,
    "nodes": {
        "ctl": "controller",
        "r1": {"kind": "router", "service": True},
        "c1": "host",
        "s1": {
            "kind": "host",
            "programs": [{"name": "sleeper", "run": "sh -c 'echo grüße; exec sleep 1000'"}],
        },
    },
    "links": [["c1", "r1"], {"ends": ["s1", "r1"], "delay": "1ms", "seed": 7}],
    "timeline": [{"at": "100ms", "do": "link s1 r1 loss 1%", "label": "lossy"}],
    "series": [{"name": "load", "panel": "Mbit/s", "node": "s1", "received": "r1", "every": "20ms"}],
    "measure": [{"name": "who", "node": "c1", "run": "hostname"}],
}


def neighbour(lab: scaffold_lab.Lab) -> str:
    """The link-local address of r1, from s1."""
    return next(str(n["link_local"]) for n in lab.status()["nodes"] if n["name"] == "r1") + "%to-r1"


@unittest.skipUnless(os.geteuid() == 0, "labs need root")
class ALab(unittest.TestCase):
    said: List[str] = []
    client: Client
    lab: scaffold_lab.Lab

    @classmethod
    def setUpClass(cls) -> None:
        cls.client = Client(progress=cls.said.append)
        cls.addClassCleanup(cls.client.close)
        cls.lab = cls.client.lab(NETWORK)
        cls.lab.up()

    def test_it_tells_its_progress(self) -> None:
        self.assertIn(f"lab {NAME}: daemons", self.said)

    def test_commands_run_in_nodes(self) -> None:
        done = self.lab.exec("c1", "sh -c 'hostname; cat; echo $HUE >&2'", input="grün\n", env={"HUE": "red"})
        self.assertEqual((done.exit, done.stdout, done.stderr), (0, "c1\ngrün\n", "red\n"))

    def test_a_command_that_fails_is_raised(self) -> None:
        with self.assertRaises(CommandFailed) as caught:
            self.lab.exec("c1", ["sh", "-c", "echo why >&2; exit 3"])
        self.assertEqual((caught.exception.executed.exit, caught.exception.executed.stderr), (3, "why\n"))
        self.assertEqual(self.lab.exec("c1", "sh -c 'kill -9 $$'", check=False).exit, 137)

    def test_a_command_is_killed_after_its_time(self) -> None:
        with self.assertRaisesRegex(TimeoutError, "c1: sleep 1007: killed after 0.3 s"):
            self.lab.exec("c1", "sleep 1007", timeout=0.3)
        self.assertEqual(
            self.lab.exec("c1", "sh -c 'while pgrep -xf \"sleep 100[7]\"; do sleep 0.01; done'").exit, 0
        )

    def test_a_command_runs_beside(self) -> None:
        with self.lab.start(
            "s1", "sh -c 'echo ready; read x; echo never; sleep 1000'", input="go\n"
        ) as process:
            process.expect("ready", 20)
            process.expect("never", 20)
            self.assertTrue(process.running)
        self.assertEqual((process.wait().exit, process.wait().stdout), (137, "ready\nnever\n"))
        process = self.lab.start("s1", "printf 'one\\ntwo\\nthree'")
        self.assertEqual(list(process.lines()), ["one", "two", "three"])
        self.assertEqual(process.wait(20).exit, 0)
        with self.assertRaises(NotFound):
            process.signal("TERM")
        with self.assertRaisesRegex(LabError, "ended without"):
            process.expect("four")

    def test_a_link_changes_while_it_carries_packets(self) -> None:
        link = self.lab.link("s1", "r1")
        link.set(delay=0.05, one_way=True)
        delays = [line["params"]["delay"] for line in link.stats()[0]["lines"]]
        self.assertEqual(delays, [50_000_000, 1_000_000])
        said = self.lab.exec("s1", f"ping -c 1 -W 5 {neighbour(self.lab)}").stdout
        self.assertGreaterEqual(float(said.split("time=")[1].split(" ")[0]), 51)
        link.set(delay="1ms", one_way=True)
        with self.assertRaisesRegex(LabError, "expected a time from 0s to 1m0s"):
            link.set(delay=3600)
        with self.assertRaisesRegex(NotFound, "no emulated link between"):
            self.lab.link("c1", "r1").set(delay=1)

    def test_a_link_is_cut_and_healed(self) -> None:
        link = self.lab.link("s1", "r1")
        link.cut()
        states = {tuple(l["ends"]): l["state"] for l in self.lab.traffic()["links"]}
        self.assertEqual(states, {("c1", "r1"): "up", ("s1", "r1"): "cut"})
        link.heal()
        self.assertEqual(self.lab.traffic()["links"][1]["state"], "up")

    def test_actions_are_those_of_a_timeline(self) -> None:
        self.assertEqual(self.lab.do("exec c1: hostname"), "c1\n")
        self.assertEqual(self.lab.do("restart s1/sleeper"), "")
        with self.assertRaisesRegex(LabError, 'no link between "c1" and "s1"'):
            self.lab.do("cut c1 s1")

    def test_a_timeline_runs_in_it(self) -> None:
        result = self.lab.run().check()
        self.assertEqual(result.measures["who"].output, "c1\n")
        self.assertEqual((result.steps[0].label, result.steps[0].at), ("lossy", 0.1))
        load = result.series["load"]
        self.assertEqual(len(load.times), len(load.values))
        self.assertGreater(len(load.times), 1)
        self.assertTrue(self.client.figure(result).startswith(b"<?xml"))
        self.assertTrue(self.client.figure(result, "png").startswith(b"\x89PNG"))

    def test_its_topology_is_a_graph(self) -> None:
        t = self.lab.topology()
        self.assertEqual([n["id"] for n in t["nodes"]], ["ctl", "r1", "c1", "s1"])
        self.assertEqual(
            [(l["source"], l["target"], l["emulated"]) for l in t["links"]],
            [("c1", "r1", False), ("s1", "r1", True)],
        )

    def test_logs_are_text(self) -> None:
        self.assertIn("grüße", self.lab.log("s1", "sleeper"))
        with self.assertRaises(NotFound):
            self.lab.log("s1", "nothing")

    def test_what_is_not_there_is_not_found(self) -> None:
        for ask in (
            lambda: self.client.open("nolab"),
            lambda: self.lab.exec("c9", "true"),
            lambda: self.lab.exec("c1", "no-such-program"),
            lambda: self.lab.link("a/b", "c").stats(),
        ):
            with self.assertRaises(NotFound):
                ask()

    def test_a_second_lab_of_the_name_is_refused(self) -> None:
        with self.assertRaisesRegex(Refused, "already up"):
            self.client.lab(NETWORK).up()
        self.assertEqual([l["name"] for l in self.client.labs()], [NAME])

    def test_a_lab_that_is_left_alone_stays_up(self) -> None:
        with self.client.open(NAME) as lab:
            self.assertEqual(lab.status()["phase"], "up")
        self.assertEqual(self.lab.status()["phase"], "up")

    def test_mistakes_in_a_file_are_told_one_by_one(self) -> None:
        with self.assertRaises(FileError) as caught:
            self.client.check({"nodes": {"ctl": "controller", "r1": "route"}, "links": [["r1", "c1"]]})
        said = [text for _, text in caught.exception.lines]
        self.assertTrue(any('found "route"' in s for s in said), said)
        self.assertIn('at "r1": "route"', str(caught.exception))


@unittest.skipUnless(os.geteuid() == 0, "labs need root")
class AServer(unittest.TestCase):
    def test_a_lab_goes_with_its_block_and_its_server(self) -> None:
        with Client() as client:
            pid = client.version()["pid"]
            with client.lab(NETWORK, name=NAME + "b") as lab:
                self.assertEqual(lab.name, NAME + "b")
                self.assertTrue(os.path.exists(f"/run/netns/scaf-{lab.name}-c1"))
            self.assertEqual(client.labs(), [])
            client.lab(NETWORK, name=NAME + "c").up()
        self.assertFalse(os.path.exists(f"/run/netns/scaf-{NAME}c-c1"))
        self.assertFalse(os.path.exists(f"/proc/{pid}"))

    def test_a_run_that_is_left_is_undone(self) -> None:
        with Client() as client:
            begun = threading.Event()

            def leave(said: str) -> None:
                begun.set()
                if "daemons" in said:
                    raise KeyboardInterrupt

            client = Client(client.connection.url, progress=leave)
            with self.assertRaises(KeyboardInterrupt):
                client.run(NETWORK, name=NAME + "d")
            self.assertTrue(begun.is_set())
        self.assertFalse(os.path.exists(f"/run/netns/scaf-{NAME}d-c1"))

    def test_a_program_that_is_not_there_is_told(self) -> None:
        with self.assertRaisesRegex(Unreachable, "there is no such program"):
            Client(binary="/no/scaffold")
        with self.assertRaisesRegex(Unreachable, "no lab server answers"):
            Client("unix:/no/socket").labs()


if __name__ == "__main__":
    unittest.main()
