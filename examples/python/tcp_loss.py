"""How fast is TCP over a link that loses packets?

Mathis, Semke, Mahdavi and Ott said in 1997 ("The Macroscopic Behavior of the TCP Congestion Avoidance
Algorithm"): no faster than MSS / RTT * sqrt(3/2) / sqrt(loss). Here the kernel's own TCP, with Reno, sends
over two emulated routers whose link has that delay and loss, and the figure shows both.

Run it as a whole, or cell by cell in an editor that knows "# %%":

    sudo SCAFFOLD=bin/scaffold PYTHONPATH=clients/python python3 examples/python/tcp_loss.py docs/python
"""

# %% What is asked
import argparse
import json
import math
import pathlib
import sys

import scaffold_lab

arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
arguments.add_argument("dir", nargs="?", default=".", help="where tcp_loss.json, .svg and .png go")
arguments.add_argument(
    "--seconds", type=float, default=10, help="of each point, after a quarter of it to settle"
)
arguments.add_argument("--flows", type=int, default=8, help="at once; they do not share a bottleneck")
arguments.add_argument("--rtts", type=float, nargs="+", default=[0.01, 0.02, 0.04, 0.08], help="seconds")
arguments.add_argument(
    "--losses", type=float, nargs="+", default=[0.001, 0.003, 0.01], help="shares of packets"
)
arguments.add_argument(
    "--draw", metavar="FILE", help="draw the points of a tcp_loss.json and measure nothing"
)
arguments.add_argument("--name", default="tcp_loss", help="of the lab, so that it can run twice at once")
ask = arguments.parse_args(sys.argv[1:] if "ipykernel" not in sys.modules else [])

# %% The network: two hosts, two emulated routers. Only the link in the middle is slow and lossy.
network = {
    "name": ask.name,
    "nodes": {"client": "host", "e1": "emulated", "e2": "emulated", "server": "host"},
    "links": [["client", "e1"], {"ends": ["e1", "e2"], "delay": "1ms"}, ["e2", "server"]],
}

# %% The programs. The server counts what comes, from when all flows have settled.
SERVER = """
import socket, sys, threading, time
flows, seconds = int(sys.argv[1]), float(sys.argv[2])
listener = socket.create_server(("::", 5001), family=socket.AF_INET6, backlog=flows)
got = [0] * flows
def take(i, connection):
    while True:
        n = len(connection.recv(1 << 18))
        if n == 0:
            return
        got[i] += n
print("ready", flush=True)
for i in range(flows):
    threading.Thread(target=take, args=(i, listener.accept()[0]), daemon=True).start()
time.sleep(seconds / 4)
before, began = sum(got), time.monotonic()
time.sleep(seconds)
print((sum(got) - before) * 8 / (time.monotonic() - began) / flows)
"""

CLIENT = """
import socket, sys, threading
def send():
    s = socket.create_connection(("server", 5001))
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
    try:
        while True:
            s.sendall(bytes(1 << 16))
    except ConnectionError:
        pass
for _ in range(int(sys.argv[1])):
    threading.Thread(target=send).start()
"""

MSS = 1428  # bytes of data in a segment of TCP over IPv6 with timestamps, at an MTU of 1500


def measured(lab: scaffold_lab.Lab, rtt: float, loss: float, seed: int) -> float:
    """One point: bit/s of a flow, on average. What is lost is data; acknowledgements only take their time."""
    link = lab.link("e1", "e2")
    link.set(delay=rtt / 2, loss=0)
    link.set(loss=loss, seed=seed, one_way=True)
    server = lab.start("server", ["python3", "-u", "-c", SERVER, str(ask.flows), str(ask.seconds)])
    server.expect("ready", timeout=60)
    with lab.start("client", ["python3", "-c", CLIENT, str(ask.flows)]):
        done = server.wait(timeout=ask.seconds * 10 + 60)
    if done.exit != 0:
        raise SystemExit(f"the server: {done.stderr}")
    return float(done.stdout.split()[-1])


def mathis(rtt: float, loss: float) -> float:
    """What the formula allows, in bit/s."""
    return MSS * 8 / rtt * math.sqrt(1.5 / loss)


# %% The experiment
def experiment() -> list:
    """All points."""
    points = []
    with scaffold_lab.Client() as client, client.lab(network) as lab:
        for loss in ask.losses:
            for rtt in ask.rtts:
                bps, bound = measured(lab, rtt, loss, seed=len(points) + 1), mathis(rtt, loss)
                points.append({"loss": loss, "rtt_s": rtt, "bit_s": bps, "mathis_bit_s": bound})
                print(
                    f"loss {loss:.2%}, {rtt * 1e3:g} ms: {bps / 1e6:.3g} Mbit/s, {bps / bound:.0%} of the formula",
                    flush=True,
                )
        late = max(line["late"]["p99_ns"] for line in lab.link("e1", "e2").stats()[0]["lines"])
        print(f"at the last point, 99 of 100 packets left the link at most {late / 1e6:.2f} ms too late")
    return points


folder = pathlib.Path(ask.dir)
folder.mkdir(parents=True, exist_ok=True)
if ask.draw:
    points = json.loads(pathlib.Path(ask.draw).read_text())["points"]
else:
    points = experiment()
    made = {"flows": ask.flows, "seconds": ask.seconds, "points": points}
    (folder / "tcp_loss.json").write_text(json.dumps(made, indent=1) + "\n")
losses, rtts = sorted({p["loss"] for p in points}), sorted({p["rtt_s"] for p in points})

# %% The figure: by matplotlib, or, where there is none, by the lab itself
TITLE = "TCP Reno over a link that loses packets"


def of(loss: float, key: str) -> list:
    """One line of the figure."""
    return [[p["rtt_s"] * 1e3, p[key] / 1e6] for p in points if p["loss"] == loss]


def by_matplotlib() -> None:
    """Both axes by powers of ten: the formula is straight lines."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5), layout="constrained")
    for loss, colour in zip(losses, ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")):
        axes.loglog(*zip(*of(loss, "mathis_bit_s")), "--", color=colour, linewidth=1)
        axes.loglog(*zip(*of(loss, "bit_s")), "o", color=colour, label=f"{loss:.1%} lost")
    axes.set(title=TITLE, xlabel="round trip, ms", ylabel="Mbit/s of one flow")
    axes.set_xticks([rtt * 1e3 for rtt in rtts], [f"{rtt * 1e3:g}" for rtt in rtts])
    low, high = axes.get_ylim()
    ticks = [m * 10**e for e in range(-3, 6) for m in (1, 2, 5) if low <= m * 10**e <= high]
    axes.set_yticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()
    axes.grid(True, which="both", color="#e4e4e4")
    axes.plot([], [], "--", color="grey", label="formula")
    axes.legend()
    for kind in ("svg", "png"):
        figure.savefig(
            folder / f"tcp_loss.{kind}", dpi=110, metadata={"Date": None} if kind == "svg" else None
        )


def by_the_lab() -> None:
    """What `scaffold lab plot` draws with."""
    lines = []
    for loss in losses:
        lines.append({"name": f"{loss:.1%}", "points": of(loss, "bit_s")})
        lines.append({"name": f"{loss:.1%} formula", "points": of(loss, "mathis_bit_s")})
    panel = {"label": "Mbit/s of one flow", "log": True, "lines": lines}
    drawing = {"title": TITLE, "axis": "round trip, ms", "end": max(rtts) * 1e3, "panels": [panel]}
    with scaffold_lab.Client() as client:
        for kind in ("svg", "png"):
            (folder / f"tcp_loss.{kind}").write_bytes(client.figure(drawing, kind))


try:
    by_matplotlib()
except ImportError:
    by_the_lab()
print("drawn:", folder / "tcp_loss.svg")
