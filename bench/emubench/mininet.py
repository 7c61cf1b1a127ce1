"""A chain of Mininet's LinuxRouter nodes between two hosts, for a benchmark.

The argument is JSON: for each node, from the host that sends to the host that receives, what ip(8) is
told there. The script sends the two hosts' network namespaces over the Unix socket that is file 3, and
stays until that is closed. emubench runs it in namespaces of processes, mounts and network of its own.
"""

import json
import os
import socket
import subprocess
import sys

from mininet.net import Mininet
from mininet.node import Node
from mininet.topo import Topo

Mininet.inited = True  # else it raises limits of the whole machine


class LinuxRouter(Node):
    """As in Mininet's examples/linuxrouter.py, for IPv6."""

    def config(self, **params):
        super().config(**params)
        self.cmd("sysctl net.ipv6.conf.all.forwarding=1")


class Chain(Topo):
    """n0 is the host that sends, the last node the one that receives."""

    def build(self, nodes=3, **_opts):
        for i in range(nodes):
            kind = {"cls": LinuxRouter} if 0 < i < nodes - 1 else {}
            self.addHost("n%d" % i, ip=None, **kind)
        for i in range(nodes - 1):
            self.addLink("n%d" % i, "n%d" % (i + 1), intfName1="right", intfName2="left")


def main():
    told = json.loads(sys.argv[1])
    control = socket.socket(fileno=3)
    net = Mininet(topo=Chain(nodes=len(told)), controller=None)
    net.start()
    for i, commands in enumerate(told):
        ip = net["n%d" % i].popen(["ip", "-batch", "-"], stdin=subprocess.PIPE, universal_newlines=True)
        _out, said = ip.communicate("\n".join(commands))
        if ip.returncode:
            sys.exit("node %d: %s" % (i, said))
    ends = [os.open("/proc/%d/ns/net" % net["n%d" % i].pid, os.O_RDONLY) for i in (0, len(told) - 1)]
    socket.send_fds(control, [b"."], ends)
    control.recv(1)


main()
