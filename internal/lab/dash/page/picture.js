// The picture: lines and circles in an SVG, moved and zoomed by its viewBox.

import { Layout, spread } from "./layout.js";
import { look } from "./rates.js";

const SVG = "http://www.w3.org/2000/svg";
const FRAME = 40; // milliseconds of layout between two pictures
const NAMES = 60; // so many names are shown without asking

function make(name, attributes, parent) {
  const e = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  return parent.appendChild(e);
}

// A Picture shows one topology; chosen is called with {node: i} or {link: i} for what is clicked.
export class Picture {
  constructor(svg, topology, chosen) {
    this.svg = svg;
    this.parts = Object.fromEntries(["links", "nodes", "names"].map((id) => [id, svg.querySelector("#" + id)]));
    for (const part of Object.values(this.parts)) part.replaceChildren();
    const number = Object.fromEntries(topology.nodes.map((n, i) => [n.id, i]));
    this.nodes = topology.nodes.map((n) => ({ ...n }));
    this.links = topology.links.map((l) => [number[l.source], number[l.target]]);
    this.draw(topology, chosen);
    this.place();
    this.handle();
  }

  // place lets nodes find their places, those that a map has positions of excepted.
  place() {
    this.layout = new Layout(this.nodes, this.links);
    const known = this.nodes.filter((n) => n.position);
    for (const n of known) [n.x, n.y] = [n.position[0], -n.position[1]];
    spread(known, this.nodes, this.links);
    this.settle();
  }

  // settle moves nodes for a while before each picture.
  settle() {
    if (this.gone) return;
    const until = performance.now() + FRAME;
    while (!this.layout.calm && performance.now() < until) this.layout.step();
    if (!this.touched) this.fit();
    this.move();
    if (!this.layout.calm) requestAnimationFrame(() => this.settle());
  }

  draw(topology, chosen) {
    const { links, nodes, names } = this.parts;
    const click = (e, what, title) => {
      e.addEventListener("click", () => this.moved || chosen(what));
      make("title", {}, e).textContent = title;
    };
    this.lines = this.links.map((_, i) => make("line", { class: "idle" }, links));
    this.hits = topology.links.map((l, i) => {
      const e = make("line", { class: "hit" }, links);
      click(e, { link: i }, `${l.source} - ${l.target}`);
      return e;
    });
    this.dots = this.nodes.map((n, i) => {
      const e = make("circle", { class: "node " + n.kind, r: n.kind === "host" ? 0.16 : 0.22 }, nodes);
      click(e, { node: i }, `${n.id} (${n.kind})`);
      return e;
    });
    this.labels = this.nodes.map((n) => {
      const e = make("text", { "font-size": 0.26 }, names);
      e.textContent = n.id;
      return e;
    });
  }

  // move puts all at the places of the nodes. Several links between two nodes stand side by side.
  move() {
    const beside = {};
    this.links.forEach(([a, b], i) => {
      const [p, q] = [this.nodes[a], this.nodes[b]];
      const pair = Math.min(a, b) + " " + Math.max(a, b);
      const n = (beside[pair] = (beside[pair] ?? -1) + 1);
      const length = Math.hypot(q.x - p.x, q.y - p.y) || 1;
      const off = (n % 2 ? -1 : 1) * Math.ceil(n / 2) * 0.12 * (a < b ? 1 : -1);
      const [dx, dy] = [((q.y - p.y) / length) * off, (-(q.x - p.x) / length) * off];
      for (const e of [this.lines[i], this.hits[i]]) {
        e.setAttribute("x1", p.x + dx);
        e.setAttribute("y1", p.y + dy);
        e.setAttribute("x2", q.x + dx);
        e.setAttribute("y2", q.y + dy);
      }
    });
    this.nodes.forEach((n, i) => {
      this.dots[i].setAttribute("cx", n.x);
      this.dots[i].setAttribute("cy", n.y);
      this.labels[i].setAttribute("x", n.x);
      this.labels[i].setAttribute("y", n.y - 0.3);
    });
  }

  fit() {
    const xs = this.nodes.map((n) => n.x);
    const ys = this.nodes.map((n) => n.y);
    const least = Math.min(...xs) - 1;
    const top = Math.min(...ys) - 1;
    this.view = [least, top, Math.max(...xs) + 1 - least, Math.max(...ys) + 1 - top];
    this.show();
  }

  show() {
    this.svg.setAttribute("viewBox", this.view.join(" "));
    const inView = this.nodes.length * Math.min(1, (this.view[2] * this.view[3]) / Math.max(1, this.area()));
    this.parts.names.classList.toggle("hidden", inView > NAMES);
  }

  area() {
    const box = (key) => Math.max(...this.nodes.map((n) => n[key])) - Math.min(...this.nodes.map((n) => n[key]));
    return box("x") * box("y");
  }

  // handle lets the wheel zoom and the pointer drag.
  handle() {
    const stop = new AbortController();
    const on = (name, f) => this.svg.addEventListener(name, f, { signal: stop.signal, passive: false });
    this.close = () => {
      this.gone = true;
      stop.abort();
    };
    const scale = () => Math.max(this.view[2] / this.svg.clientWidth, this.view[3] / this.svg.clientHeight);
    on("wheel", (e) => {
      e.preventDefault();
      this.touched = true;
      const by = Math.exp(Math.sign(e.deltaY) * 0.15);
      const p = new DOMPoint(e.clientX, e.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
      const [x, y, w, h] = this.view;
      this.view = [p.x - (p.x - x) * by, p.y - (p.y - y) * by, w * by, h * by];
      this.show();
    });
    let from = null;
    on("pointerdown", (e) => {
      from = [e.clientX, e.clientY];
      this.moved = false;
    });
    on("pointermove", (e) => {
      if (!from || !e.buttons) return;
      const [dx, dy] = [e.clientX - from[0], e.clientY - from[1]];
      if (!this.moved && Math.hypot(dx, dy) < 4) return;
      this.moved = this.touched = true;
      from = [e.clientX, e.clientY];
      this.view[0] -= dx * scale();
      this.view[1] -= dy * scale();
      this.show();
    });
    on("pointerup", () => (from = null));
  }

  // paint colours links by what they carry.
  paint(rates, chosen) {
    this.lines.forEach((e, i) => {
      const { kind, width } = look(rates[i]);
      e.setAttribute("class", kind + (chosen.link === i ? " chosen" : ""));
      e.style.strokeWidth = width;
    });
  }

  // mark shows which node is chosen, and which routers have failed.
  mark(chosen, failed) {
    this.dots.forEach((e, i) => {
      const n = this.nodes[i];
      e.setAttribute("class", "node " + n.kind + (chosen.node === i ? " chosen" : "") + (failed.has(n.id) ? " failed" : ""));
    });
  }
}
