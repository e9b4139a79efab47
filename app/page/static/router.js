// Addresses: "#/models/ner?base=1". The part after "#" never reaches the server, so every address survives a reload.

/** @typedef {{ path: string[], query: URLSearchParams }} Address */

/** Addresses of earlier versions of the page. */
const OLD = { model: "models", job: "jobs" };

/** @returns {Address} */
export function address() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(decoded);
  if (parts[0] in OLD) parts[0] = OLD[parts[0]];
  return { path: parts, query: new URLSearchParams(query) };
}

/**
 * The address of a view.
 * @param {string[]} path
 * @param {Record<string, string | undefined | null>} [query]
 */
export function to(path, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(kept).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text && `?${text}`}`;
}

/** Go to an address. */
export function go(path, query) {
  location.hash = to(path, query);
}

/** Change the query of the current address without a new view or a step of the history. */
export function note(query) {
  const { path, query: old } = address();
  const all = { ...Object.fromEntries(old), ...query };
  history.replaceState(null, "", to(path, all));
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
