// The lab's API, from where the page came.

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

// ask sends a request; a fault is thrown with its text and status.
export async function ask(method, path, body) {
  const headers = shown ? { Authorization: "Bearer " + shown } : {};
  const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const text = await answer.text();
  if (answer.ok) return JSON.parse(text);
  let said = text;
  try {
    said = JSON.parse(text).error;
  } catch {
    // not of this API: shown as it is
  }
  throw Object.assign(new Error(said), { status: answer.status });
}

// at is a path below a lab.
export const at = (lab, ...names) => ["/v1/labs", lab, ...names].map((n, i) => (i ? encodeURIComponent(n) : n)).join("/");
