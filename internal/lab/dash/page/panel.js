// What is known of the link or node that is chosen.

import { ask } from "./api.js";
import { percent, short } from "./rates.js";

const element = (name, text, kind) => {
  const e = document.createElement(name);
  if (text !== undefined) e.textContent = text;
  if (kind) e.className = kind;
  return e;
};

function table(rows) {
  const t = element("table");
  for (const cells of rows) {
    const tr = t.appendChild(element("tr"));
    cells.forEach((c, i) => tr.appendChild(element(i ? "td" : "th", c, i ? "number" : "")));
  }
  return t;
}

const time = (ns) => (ns >= 1e6 ? short(ns / 1e6, "ms") : short(ns / 1e3, "µs"));

const TIMES = ["delay", "jitter", "reorder_by"];
const SHARES = ["loss", "burst_loss", "duplicate", "reorder"];

// parameter writes one of a line as people do.
function parameter(name, value) {
  if (TIMES.includes(name)) return time(value);
  if (SHARES.includes(name)) return percent(value);
  if (name === "rate") return short(value, "bit/s");
  return String(value);
}

// A Panel shows one thing and asks for it again and again.
export class Panel {
  constructor(place) {
    this.place = place;
  }

  // link shows both directions side by side: rates, then, of an emulated link, parameters and counters.
  async link(lab, l, rates) {
    const head = ["", `${l.source} →`, `→ ${l.source}`];
    const parts = [element("h2", `${l.source} - ${l.target}`), element("p", `${l.interfaces.join(" - ")}: ${rates.state} ${rates.causes.join(", ")}`)];
    const both = (name, f) => [name, ...rates.lines.map(f)];
    parts.push(table([head, both("rate", (r) => short(r.bps, "bit/s")), both("packets", (r) => short(r.pps, "/s")), both("lost", (r) => percent(r.loss))]));
    if (l.emulated) {
      const { links } = await ask("ListLinks", { lab, a: l.source, b: l.target });
      const e = links[Math.min(l.key, links.length - 1)];
      const lines = e.ends[0] === l.source ? e.lines : [e.lines[1], e.lines[0]];
      const names = Object.keys({ ...lines[0].params, ...lines[1].params }).filter((n) => n !== "seed"); // larger than numbers are here
      parts.push(element("h3", "Parameters"));
      parts.push(table([head, ...names.map((n) => [n.replace("_", "-"), ...lines.map((x) => parameter(n, x.params[n] ?? 0))])]));
      parts.push(element("h3", "Counters"));
      const counters = Object.keys(lines[0].counters).map((n) => [n.replace("_", " "), ...lines.map((x) => x.counters[n])]);
      const late = ["p50_ns", "p99_ns", "max_ns"].map((n) => ["late " + n.slice(0, -3), ...lines.map((x) => time(x.late[n]))]);
      parts.push(table([head, ...counters, ["refused", ...lines.map((x) => x.refused + x.starved)], ...late]));
    }
    this.place.replaceChildren(...parts);
  }

  // node shows processes, or, of a router inside the engine, its program and handlers.
  async node(lab, n) {
    const parts = [element("h2", n.id), element("p", n.kind + (n.service ? ", resolves names" : ""))];
    if (n.kind === "emulated" || n.kind === "frr") parts.push(...(await this.router(lab, n)));
    if (n.kind !== "emulated") parts.push(...(await this.processes(lab, n)));
    this.place.replaceChildren(...parts);
  }

  async processes(lab, n) {
    const status = await ask("GetStatus", { lab });
    const state = status.nodes.find((other) => other.name === n.id);
    if (!state) return [];
    const rows = state.processes.map((p) => [p.name, p.service || "", p.state, p.pids.slice(0, 3).join(" ")]);
    return [table([["namespace", state.namespace]]), element("h3", "Processes"), table([["", "service", "state", "pids"], ...rows])];
  }

  async router(lab, n) {
    const r = await ask("GetRouter", { lab, router: n.id });
    const parts = [table([["program", r.program], ["state", r.failure || (r.down ? "down" : "runs")], ["runs on shard", r.shard ?? ""]])];
    parts.push(element("h3", "Counters"), table(Object.entries(r.counters).map(([k, v]) => [k.replaceAll("_", " "), typeof v === "object" ? JSON.stringify(v) : v])));
    parts.push(element("h3", "Handlers"));
    const { handlers } = await ask("ListHandlers", { lab, router: n.id });
    for (const h of handlers) parts.push(await this.handler(lab, n, h));
    return parts;
  }

  // handler shows a value at once where it is short to read; others are read by a click.
  async handler(lab, n, h) {
    const e = element("details");
    const summary = e.appendChild(element("summary", h.name + (h.write ? " (can be written)" : "")));
    summary.title = h.doc;
    const value = element("pre", "");
    e.append(element("div", h.doc), value);
    const open = this.opened.has(n.id + "/" + h.name);
    e.open = open;
    const read = async () => {
      try {
        value.textContent = h.read ? (await ask("GetHandler", { lab, router: n.id, handler: h.name })).value : "cannot be read";
      } catch (problem) {
        value.textContent = problem.message;
      }
    };
    if (open) await read();
    e.addEventListener("toggle", () => {
      this.opened[e.open ? "add" : "delete"](n.id + "/" + h.name);
      if (e.open) read();
    });
    return e;
  }

  opened = new Set();

  fail(problem) {
    this.place.replaceChildren(element("p", problem.message));
  }
}
