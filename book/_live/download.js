// One large file that a reader has asked for: fetched with its progress told, checked against its
// sum before anything uses it, and kept in the browser (Cache API) for the next visit.

const KEPT = "worked-examples-model";
const STALLED = 20_000; // ms without a byte after which the network counts as lost

/**
 * @typedef {object} Wanted
 * @property {string} address    it holds the sum, so what was kept under it is never out of date
 * @property {number} size       bytes
 * @property {string} integrity  "sha256-" and the sum in base64
 */

/**
 * @param {Wanted} wanted
 * @param {(bytes: number) => void} onLoaded  how much is there
 * @returns {Promise<ArrayBuffer>}
 * @throws {Error}  one clause: why there is no file
 */
export async function download(wanted, onLoaded) {
  // Browsers have both on https and on the machine's own address alone.
  const kept = await globalThis.caches?.open(KEPT).catch(() => null);
  const old = await kept?.match(wanted.address).then((found) => found?.arrayBuffer(), () => null);
  if (old && (await isWhole(old, wanted))) return old;
  const file = await fetched(wanted, onLoaded);
  if (!(await isWhole(file, wanted))) {
    throw new Error("what arrived is not the file that this page was built with");
  }
  await keep(kept, file, wanted.address);
  return file;
}

/** @param {Wanted} wanted @param {(bytes: number) => void} onLoaded */
async function fetched({ address, size, integrity }, onLoaded) {
  const stopper = new AbortController();
  let timer;
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(() => stopper.abort(), STALLED);
  };
  wait();
  try {
    // Where `isWhole` cannot compute the sum the browser has to: it then tells no progress.
    const check = globalThis.crypto?.subtle ? { cache: "no-store" } : { integrity };
    const response = await fetch(address, { ...check, signal: stopper.signal });
    if (!response.ok) throw new Error(`the site does not have it (${response.status})`);
    const bytes = new Uint8Array(size);
    let end = 0;
    for (const reader = response.body.getReader(); ; ) {
      const { done, value } = await reader.read();
      if (done) break;
      if (end + value.length > size) throw new Error("more arrived than the file has");
      bytes.set(value, end);
      onLoaded((end += value.length));
      wait();
    }
    if (end < size) throw new Error("it did not arrive whole");
    return bytes.buffer;
  } catch (error) {
    // The browsers' own words differ from one to the next.
    const lost = error instanceof TypeError || error.name === "AbortError";
    throw lost ? new Error("it did not arrive whole; the network may be down") : error;
  } finally {
    clearTimeout(timer);
  }
}

/** @param {ArrayBuffer} file @param {Wanted} wanted */
async function isWhole(file, { size, integrity }) {
  if (file.byteLength !== size) return false;
  if (!globalThis.crypto?.subtle) return true; // the browser has checked it on arrival
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", file));
  return integrity === `sha256-${btoa(String.fromCharCode(...sum))}`;
}

/** Keep the file if the browser lets us, and only the newest one of this site. */
async function keep(kept, file, address) {
  try {
    const site = new URL("../", new URL(address, location.href)).href;
    for (const { url } of (await kept?.keys()) ?? []) {
      if (url.startsWith(site)) await kept.delete(url);
    }
    await kept?.put(address, new Response(file));
  } catch {
    // No room, or not allowed: it is fetched again at the next visit.
  }
}
