// Counters into rates, and numbers into text.

const OLD = 0.2; // seconds: below it two looks are one

// A Rates remembers the last counters.
export class Rates {
  // take turns an answer of traffic into {state, lines: [{bps, pps, loss, limit}]} for each link, or null the first
  // time. loss is a share of packets; limit is in bit/s, 0 for none.
  take(now) {
    const last = this.last;
    const over = last ? now.at_s - last.at_s : 0;
    if (last && over < OLD) return this.rates;
    this.last = now;
    const known = last && last.links.length === now.links.length;
    this.rates = now.links.map((link, i) => ({
      state: link.state,
      causes: link.causes || [],
      lines: link.lines.map((line, way) => rate(line, known ? last.links[i].lines[way] : line, over)),
    }));
    return this.rates;
  }
}

function rate(line, before, over) {
  const grown = (key) => Math.max(0, line[key] - before[key]);
  const per = (key) => (over > 0 ? grown(key) / over : 0);
  const all = grown("packets") + grown("lost");
  return { bps: per("bytes") * 8, pps: per("packets"), loss: all ? grown("lost") / all : 0, limit: line.rate_bit_s || 0 };
}

// look is how a link is shown: what is worse in one of its directions.
export function look(link) {
  if (link.state === "cut") return { kind: "cut", width: 2 };
  if (link.state !== "up") return { kind: "down", width: 2 };
  const bps = Math.max(...link.lines.map((l) => l.bps));
  const width = 1.5 + Math.min(6, Math.max(0, Math.log10(bps / 1e4)) * 1.1);
  if (link.lines.some((l) => l.loss > 0.0005)) return { kind: "loss", width };
  if (link.lines.some((l) => l.limit && l.bps > 0.9 * l.limit)) return { kind: "full", width };
  return { kind: bps > 1e4 ? "load" : "idle", width };
}

// short writes a number with a unit: 12.3 Mbit/s.
export function short(value, unit) {
  const steps = ["", "k", "M", "G", "T"];
  let i = 0;
  for (; value >= 1000 && i < steps.length - 1; i++) value /= 1000;
  return `${value >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toPrecision(3)} ${steps[i]}${unit}`;
}

export const percent = (share) => (share ? `${(share * 100).toPrecision(3)} %` : "0");
