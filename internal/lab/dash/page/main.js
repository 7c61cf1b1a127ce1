// One lab at a time: its topology once, what its links carry each second.

import { ask } from "./api.js";
import { Picture } from "./picture.js";
import { Panel } from "./panel.js";
import { Rates } from "./rates.js";

const EVERY = 1000; // milliseconds between two looks
const LABS = 5; // looks between two looks at the list of labs

const byID = (id) => document.getElementById(id);
const select = byID("lab");
const panel = new Panel(byID("panel"));
let shown = null; // {name, topology, map, rates, chosen, failed}

// list fills the choice of labs; the first one is shown.
async function list() {
  const { names } = await ask("ListNames");
  if (names.join() !== [...select.options].map((o) => o.value).join()) {
    const now = shown && names.includes(shown.name) ? shown.name : names[0];
    select.replaceChildren(...names.map((n) => new Option(n, n, false, n === now)));
  }
  if (select.value !== (shown ? shown.name : "")) await open(select.value);
}

async function open(name) {
  if (shown) shown.map.close();
  shown = null;
  byID("sum").textContent = "";
  if (!name) return;
  const topology = await ask("GetTopology", { lab: name });
  const chosen = {};
  const map = new Picture(byID("map"), topology, (what) => {
    for (const key of Object.keys(chosen)) delete chosen[key];
    Object.assign(chosen, what);
    look().catch(tell);
  });
  shown = { name, topology, map, rates: new Rates(), chosen, failed: new Set() };
  byID("sum").textContent = `${topology.nodes.length} nodes, ${topology.links.length} links`;
}

// look shows what is so now.
async function look() {
  if (!shown) return;
  const { name, topology, map, rates, chosen } = shown;
  const now = rates.take(await ask("GetTraffic", { lab: name }));
  if (!shown || shown.name !== name) return; // another lab was chosen meanwhile
  map.paint(now, chosen);
  map.mark(chosen, shown.failed);
  try {
    if (chosen.link !== undefined) await panel.link(name, topology.links[chosen.link], now[chosen.link]);
    if (chosen.node !== undefined) await panel.node(name, topology.nodes[chosen.node]);
  } catch (problem) {
    panel.fail(problem);
  }
}

// failures looks for routers inside the engine that are down, or whose program has panicked.
async function failures() {
  if (!shown || !shown.topology.nodes.some((n) => n.kind === "emulated" || n.kind === "frr")) return;
  const lab = shown;
  const { routers } = await ask("ListRouters", { lab: lab.name });
  lab.failed = new Set(routers.filter((r) => r.down || r.failure).map((r) => r.name));
}

function tell(problem) {
  if (problem.status === 404 && shown) {
    shown.map.close();
    shown = null; // it was taken down
    return;
  }
  byID("said").textContent = problem.status === 401 ? "The token is missing or wrong: open the address that scaffold lab serve printed, with its #token." : problem.message;
}

async function run() {
  for (let n = 0; ; n++) {
    const began = performance.now();
    try {
      if (n % LABS === 0 || !shown) {
        await list();
        await failures();
      }
      if (!document.hidden) await look();
      byID("said").textContent = select.options.length ? "" : "No lab is up: scaffold lab up FILE";
    } catch (problem) {
      tell(problem);
    }
    const took = performance.now() - began; // of a large lab: it is asked less often, so that it does not only answer us
    await new Promise((done) => setTimeout(done, Math.max(EVERY, 2 * took)));
  }
}

select.addEventListener("change", () => open(select.value).then(look).catch(tell));
run();
