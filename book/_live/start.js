// Starts Python in the worker: from the snapshot, in which numpy and the explorers are imported
// already, or the plain way from Pyodide's parts.

import { adopt, preload } from "./libraries.js";

/**
 * What manifest.js says of the runtime.
 * @typedef {object} Runtime
 * @property {string} numpy       file name of its wheel
 * @property {string} package     file name of the book's own package
 * @property {Snapshot|null} snapshot
 *
 * @typedef {object} Snapshot
 * @property {{path: string, file: string}[]} libraries  in the order in which they are loaded
 * @property {Record<string, number[]>} handles
 * @property {import("./libraries.js").Layout} layout
 *
 * What code/worked_examples/live.py answers.
 * @typedef {object} Live
 * @property {(name: string, values: string) => string} answer
 * @property {(file: Uint8Array) => string} take
 */

const CORE = ["pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "pyodide-lock.json"];
const SETTINGS = { env: { HOME: "/home/pyodide" }, _sysExecutable: "/python", args: [] };

/**
 * The files that a start needs.
 * @param {Runtime} runtime
 * @param {boolean} plain
 * @returns {string[]}
 */
export function filesFor(runtime, plain) {
  return plain
    ? [...CORE, "python_stdlib.zip", runtime.numpy, runtime.package]
    : [...CORE, "snapshot.packed", "empty.zip", ...runtime.snapshot.libraries.map((l) => l.file)];
}

/**
 * @param {Runtime} runtime
 * @param {boolean} plain
 * @param {ReturnType<typeof import("./files.js").openFiles>} files
 * @param {string} base  address of the folder with the files
 * @returns {Promise<Live>}
 */
export async function start(runtime, plain, files, base) {
  files.begin(filesFor(runtime, plain));
  // Pyodide fetches its parts by itself: let it have ours, checked and on their way.
  globalThis.fetch = (address) => files.get(String(address).split("/").pop());
  // `import` cannot check a sum, so the two scripts are fetched with theirs before.
  await Promise.all([files.get("pyodide.mjs"), files.get("pyodide.asm.js")]);
  const { loadPyodide } = await import(new URL("pyodide.mjs", base).href);
  await import(new URL("pyodide.asm.js", base).href);
  const begin = plain ? build : restore;
  const settings = { ...SETTINGS, indexURL: base };
  const pyodide = await Promise.race([begin(loadPyodide, settings, runtime, files), files.failed]);
  return pyodide.pyimport("worked_examples.live");
}

/** The snapshot's way. */
async function restore(loadPyodide, settings, { snapshot }, files) {
  const memory = files.get("snapshot.packed").then(unpack);
  const libraries = await Promise.all(
    snapshot.libraries.map(async ({ path, file }) => [
      path,
      await WebAssembly.compileStreaming(files.get(file)),
    ]),
  );
  let fail;
  const misplaced = new Promise((_, reject) => (fail = reject));
  preload(libraries, ({ table, memory: end }) => {
    if (table === snapshot.layout.table && end === snapshot.layout.memory) return;
    fail(new Error("this browser lays memory out otherwise than the snapshot has it"));
    throw new Error("no start from the snapshot");
  });
  const pyodide = await Promise.race([
    // Whatever Python needs of its library is imported in the snapshot: no need to load it again.
    loadPyodide({ ...settings, stdLibURL: `${settings.indexURL}empty.zip`, _loadSnapshot: memory }),
    misplaced,
  ]);
  adopt(pyodide._module, snapshot.handles);
  return pyodide;
}

/** @param {Response} response @returns {Promise<ArrayBuffer>} */
function unpack(response) {
  const stream = response.body.pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

/** The plain way: some seconds slower. */
async function build(loadPyodide, settings, runtime, files) {
  const pyodide = await loadPyodide(settings);
  await pyodide.loadPackage("numpy", { messageCallback: () => {}, checkIntegrity: false });
  const ours = await (await files.get(runtime.package)).arrayBuffer();
  pyodide.unpackArchive(ours, "zip", { extractDir: "/book" });
  pyodide.runPython("import sys; sys.path.insert(0, '/book')");
  return pyodide;
}
