// Where nodes stand: links pull, nodes push each other away, less and less, until it is calm. Nodes far apart do not
// push, so that a step takes time in proportion to the nodes, and 1,000 of them are no trouble.

const REACH = 3.5; // how far nodes push, in lengths of a link

// A Layout moves nodes {x, y} with links [[i, j], ...], numbers of nodes.
export class Layout {
  constructor(nodes, links) {
    this.nodes = nodes;
    this.links = links;
    this.heat = 1;
    this.degree = nodes.map(() => 0);
    for (const [a, b] of links) {
      this.degree[a]++;
      this.degree[b]++;
    }
    this.begin();
  }

  // begin puts neighbours near each other: rings round the node with the most links, in the order of a walk by
  // breadth. It is the same each time.
  begin() {
    const near = this.nodes.map(() => []);
    for (const [a, b] of this.links) {
      near[a].push(b);
      near[b].push(a);
    }
    const order = this.nodes.map((_, i) => i).sort((a, b) => this.degree[b] - this.degree[a] || a - b);
    const seen = new Set();
    const walk = [];
    for (const root of order) {
      if (seen.has(root)) continue;
      seen.add(root);
      for (const queue = [root]; queue.length; ) {
        const i = queue.shift();
        walk.push(i);
        for (const j of near[i]) if (!seen.has(j)) queue.push(j), seen.add(j);
      }
    }
    walk.forEach((i, n) => {
      const angle = n * 2.399963; // the golden angle: no two stand in the same place
      this.nodes[i].x = Math.sqrt(n + 0.5) * Math.cos(angle);
      this.nodes[i].y = Math.sqrt(n + 0.5) * Math.sin(angle);
    });
  }

  get calm() {
    return this.heat < 0.01;
  }

  // step moves all nodes once.
  step() {
    const force = this.nodes.map(() => [0, 0]);
    this.push(force);
    this.pull(force);
    this.nodes.forEach((n, i) => {
      const [x, y] = force[i];
      const length = Math.hypot(x, y);
      if (length === 0 || n.held) return;
      const most = Math.min(length, this.heat);
      n.x += (x / length) * most;
      n.y += (y / length) * most;
    });
    this.heat *= this.nodes.length > 300 ? 0.985 : 0.98;
  }

  // push looks only at nodes in the same and in neighbouring squares.
  push(force) {
    const squares = new Map();
    const key = (x, y) => x * 100003 + y;
    const place = this.nodes.map((n, i) => {
      const at = [Math.floor(n.x / REACH), Math.floor(n.y / REACH)];
      const k = key(...at);
      squares.has(k) ? squares.get(k).push(i) : squares.set(k, [i]);
      return at;
    });
    this.nodes.forEach((n, i) => {
      for (let dx = -1; dx <= 1; dx++)
        for (let dy = -1; dy <= 1; dy++)
          for (const j of squares.get(key(place[i][0] + dx, place[i][1] + dy)) || []) {
            if (j === i) continue;
            const x = n.x - this.nodes[j].x || (i - j) * 1e-3;
            const y = n.y - this.nodes[j].y;
            const square = x * x + y * y;
            if (square > REACH * REACH) continue;
            force[i][0] += x / square;
            force[i][1] += y / square;
          }
    });
  }

  // pull is weaker at nodes with many links: their neighbours need room.
  pull(force) {
    for (const [a, b] of this.links) {
      const x = this.nodes[b].x - this.nodes[a].x;
      const y = this.nodes[b].y - this.nodes[a].y;
      const length = Math.hypot(x, y);
      const by = (length * 0.6) / Math.sqrt(Math.min(this.degree[a], this.degree[b]));
      for (const [i, sign] of [[a, 1], [b, -1]]) {
        force[i][0] += sign * x * by;
        force[i][1] += sign * y * by;
      }
    }
  }
}

// spread holds nodes at the places that a map gives, in the scale of the rest: most links are longer than 1. Others
// begin beside a neighbour.
export function spread(known, nodes, links) {
  if (known.length === 0) return;
  const held = new Set(known);
  const between = links.filter(([a, b]) => held.has(nodes[a]) && held.has(nodes[b]));
  const lengths = between.map(([a, b]) => Math.hypot(nodes[a].x - nodes[b].x, nodes[a].y - nodes[b].y)).sort((a, b) => a - b);
  const unit = lengths[lengths.length >> 2] || 1;
  for (const n of known) {
    n.x /= unit;
    n.y /= unit;
    n.held = true;
  }
  for (const [a, b] of links)
    for (const [i, j] of [[a, b], [b, a]]) {
      if (held.has(nodes[i]) || !held.has(nodes[j])) continue;
      nodes[i].x = nodes[j].x + 0.5 * Math.cos(i);
      nodes[i].y = nodes[j].y + 0.5 * Math.sin(i);
    }
}
