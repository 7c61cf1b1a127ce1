// The lab's API, from where the page came, as schema.js has it.

import { calls, messages, service } from "./schema.js";

// The token stands behind the # of the address, which no browser sends anywhere. It is taken out of the address, so
// that it is not on the screen, and kept for reloads of this tab.
function token() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname);
  }
  return given || sessionStorage.getItem("token");
}

const shown = token();

// ask makes a call; a fault is thrown with its text and status.
export async function ask(call, request = {}) {
  const [takes, gives] = calls[call];
  const unknown = Object.keys(request).find((name) => !(name in messages[takes]));
  if (unknown) throw new TypeError(`${takes} has no field ${unknown}`);
  const headers = { "Content-Type": "application/json", ...(shown && { Authorization: "Bearer " + shown }) };
  const answer = await fetch(`/${service}/${call}`, { method: "POST", headers, body: JSON.stringify(request) });
  const text = await answer.text();
  if (answer.ok) return read(gives, JSON.parse(text));
  let said = text;
  try {
    said = JSON.parse(text).message;
  } catch {
    // not of this API: shown as it is
  }
  throw Object.assign(new Error(said), { status: answer.status });
}

// read makes numbers of those of 64 bits, which JSON has as text.
function read(type, value) {
  if (Array.isArray(value)) return value.map((v) => read(type, v));
  if (type === "int64" || type === "uint64") return Number(value);
  for (const [name, kind] of Object.entries(messages[type] ?? {})) if (name in value) value[name] = read(kind, value[name]);
  return value;
}
