// numpy's compiled parts, put into Pyodide before Python starts. A snapshot of the memory holds
// addresses inside them, so they must lie where they lay when it was made: the same files, loaded
// in the same order, at the same moment. Used by the worker and by tools/snapshot.mjs.

/**
 * Where the libraries came to lie: the table's length before them, the memory's end after them.
 * @typedef {{table: number, memory: number}} Layout
 */

/**
 * Make the next `loadPyodide` load these modules. Call it after pyodide.asm.js has run.
 * @param {[string, WebAssembly.Module][]} libraries  path in Pyodide's file system, and its module
 * @param {(layout: Layout) => void} onPlaced  may throw to end the start
 */
export function preload(libraries, onPlaced) {
  const create = globalThis._createPyodideModule;
  globalThis._createPyodideModule = (settings) => {
    globalThis._createPyodideModule = create;
    settings.preRun.push((Module) => {
      const table = Module.wasmTable.length;
      for (const [path, module] of libraries) place(Module, path, module);
      onPlaced({ table, memory: Module.GOT.__heap_base.value });
    });
    return create(settings);
  };
}

const OPTIONS = { loadAsync: false, nodelete: true, allowUndefined: true };

function place(Module, path, module) {
  const library = Module.newDSO(path, undefined, "loading");
  library.refcount = Infinity; // it lies outside the heap, so it can never be unloaded
  library.global = false;
  library.exports = Module.loadWebAssemblyModule(module, OPTIONS, path, {});
}

/**
 * The handles under which Python has opened each library, for a snapshot's description.
 * @returns {Record<string, number[]>}  by path
 */
export function handlesOf(Module) {
  const handles = {};
  for (const [handle, { name }] of Object.entries(Module.LDSO.loadedLibsByHandle)) {
    if (handle !== "0") (handles[name] ??= []).push(Number(handle)); // 0 is Pyodide itself
  }
  return handles;
}

/** Give restored Python its libraries back under the handles that its memory knows. */
export function adopt(Module, handles) {
  for (const [path, numbers] of Object.entries(handles)) {
    for (const number of numbers) {
      Module.LDSO.loadedLibsByHandle[number] = Module.LDSO.loadedLibsByName[path];
    }
  }
}
