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

const CORE_WASM = "pyodide.asm.wasm";
const CORE = ["pyodide.mjs", "pyodide.asm.js", CORE_WASM, "pyodide-lock.json"];
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
  const parts = plain ? null : partsOf(runtime.snapshot, files);
  // Pyodide fetches its parts by itself: let it have ours, checked and on their way.
  globalThis.fetch = (address) => {
    const name = String(address).split("/").pop();
    // The core that it asks for is being compiled already: see `restore`.
    return parts && name === CORE_WASM ? new Promise(() => {}) : files.get(name);
  };
  // `import` cannot check a sum, so the two scripts are fetched with theirs before.
  await Promise.all([files.get("pyodide.mjs"), files.get("pyodide.asm.js")]);
  const { loadPyodide } = await import(new URL("pyodide.mjs", base).href);
  await import(new URL("pyodide.asm.js", base).href);
  const settings = { ...SETTINGS, indexURL: base };
  const begun = plain
    ? build(loadPyodide, settings, runtime, files)
    : restore(loadPyodide, settings, runtime.snapshot, parts);
  const pyodide = await Promise.race([begun, files.failed]);
  return pyodide.pyimport("worked_examples.live");
}

/**
 * What a start from the snapshot is made of, compiled and unpacked while the rest arrives.
 * @param {Snapshot} snapshot
 */
function partsOf(snapshot, files) {
  const compiled = (name) => WebAssembly.compileStreaming(files.get(name));
  const parts = {
    core: compiled(CORE_WASM),
    libraries: Promise.all(
      snapshot.libraries.map(async ({ path, file }) => [path, await compiled(file)]),
    ),
    memory: files.get("snapshot.packed").then(unpack),
  };
  // A failure is told where the part is awaited.
  for (const part of Object.values(parts)) part.catch(() => {});
  return parts;
}

/** The snapshot's way. */
async function restore(loadPyodide, settings, { layout, handles }, { core, libraries, memory }) {
  let fail;
  const failed = new Promise((_, reject) => (fail = reject));
  core.catch(fail);
  // Pyodide would begin to compile its core only now.
  WebAssembly.instantiateStreaming = async (_, imports) => {
    const module = await core;
    const instance = await WebAssembly.instantiate(module, imports);
    return { module, instance };
  };
  preload(await libraries, ({ table, memory: end }) => {
    if (table === layout.table && end === layout.memory) return;
    fail(new Error("this browser lays memory out otherwise than the snapshot has it"));
    throw new Error("no start from the snapshot");
  });
  const pyodide = await Promise.race([
    // Whatever Python needs of its library is imported in the snapshot: no need to load it again.
    loadPyodide({ ...settings, stdLibURL: `${settings.indexURL}empty.zip`, _loadSnapshot: memory }),
    failed,
  ]);
  adopt(pyodide._module, handles);
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
