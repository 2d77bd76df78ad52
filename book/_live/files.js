// The runtime's files, fetched from the folder in which this script lies, each checked against the
// sum that manifest.js has for it. What is not in the manifest is not fetched.

/** @typedef {{size: number, integrity: string}} File */

/**
 * @param {Record<string, File>} manifest
 * @param {object} options
 * @param {string} options.base      address of the folder
 * @param {boolean} options.again    past the browser's cache: what it holds may be the damaged file
 * @param {(size: number) => void} options.onLoaded  told each file's size when it is there
 */
export function openFiles(manifest, { base, again, onLoaded }) {
  const fetchPlainly = globalThis.fetch.bind(globalThis);
  /** @type {Map<string, Promise<Response>>} */
  const begun = new Map();
  let fail;
  /** Rejected when the first file fails: Pyodide itself would only warn, and wait for ever. */
  const failed = new Promise((_, reject) => (fail = reject));
  failed.catch(() => {});

  /** @param {string} name @returns {Promise<Response>} */
  async function load(name) {
    const file = manifest[name];
    if (!file) throw new Error(`${name} is not part of this site`);
    const cache = again ? "reload" : "default";
    const address = new URL(name, base);
    const response = await fetchPlainly(address, { integrity: file.integrity, cache }).catch(() => {
      throw new Error(`${name} did not arrive whole`);
    });
    if (!response.ok) throw new Error(`${name} is missing`);
    onLoaded(file.size);
    return response;
  }

  /** Begin to fetch, ahead of being asked. @param {string[]} names */
  function begin(names) {
    for (const name of names) {
      const promise = load(name);
      promise.catch(fail);
      begun.set(name, promise);
    }
  }

  /** @param {string} name @returns {Promise<Response>} */
  function get(name) {
    const early = begun.get(name);
    begun.delete(name); // a response can be read once
    if (early) return early;
    const promise = load(name);
    promise.catch(fail);
    return promise;
  }

  return { begin, get, failed };
}
