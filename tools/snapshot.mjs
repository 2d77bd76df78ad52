// Starts Pyodide under Node.js with numpy and the book's package, lets every explorer answer, and
// writes the memory as it then is: a page that starts from it has all of that behind it.
//
//   node tools/snapshot.mjs CORE NUMPY CODE OUT [LIBRARY ...]
//
// CORE: the folder with Pyodide's parts. NUMPY: its unpacked wheel. CODE: the folder of our package.
// OUT: gets snapshot.bin and snapshot.json. LIBRARY: numpy's compiled parts, as paths in NUMPY, to
// load before Python starts. Exit 3, and the list on stdout: that list was not the whole one.

import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { handlesOf, preload } from "../book/_live/libraries.js";

const [core, numpy, code, out, ...names] = process.argv.slice(2);
const PACKAGES = "/lib/python3.12/site-packages";
const OURS = "/book";

// What a page may need beyond what the explorers import: how Python writes a warning.
const PYTHON = `
import gc, linecache, sys, tokenize, traceback, tracemalloc, warnings
sys.path.insert(0, ${JSON.stringify(OURS)})
from worked_examples import live
live.rehearse()
gc.collect()
`;

function copyInto(FS, from, to, wanted) {
  for (const name of fs.readdirSync(from, { recursive: true }).sort()) {
    if (!wanted.test(name)) continue;
    const target = path.posix.join(to, name.split(path.sep).join("/"));
    FS.mkdirTree(path.posix.dirname(target));
    FS.writeFile(target, fs.readFileSync(path.join(from, name)));
    FS.utime(target, 0, 0); // the same memory from the same files
  }
}

// What was freed still lies there, and would be sent to every reader: overwrite it with zeros.
function clearFreeMemory(Module) {
  const blocks = [];
  for (let size = 1 << 18; size >= 64; size >>= 1) {
    const end = Module._sbrk(0);
    while (Module._sbrk(0) === end) blocks.push(Module._calloc(size, 1)); // until it would grow
  }
  blocks.forEach((block) => Module._free(block));
}

const PAGE = 1 << 16; // bytes of a page of a wasm memory
const LEAST = 320 * PAGE; // what Pyodide's core declares

// The memory grows by a fifth at a time: what lies behind its last block is left out. A page's
// memory grows there again when it has to.
function cut(snapshot, Module) {
  const header = snapshot.length - Module.HEAP8.length;
  const used = Math.ceil(Module._sbrk(0) / PAGE) * PAGE;
  return snapshot.subarray(0, header + Math.max(used, LEAST));
}

// Python writes times and random seeds into its memory: here they are always the same, so that the
// same files give the same memory, and browsers may keep it. On a page the clock and the seeds of
// what is made there are the browser's own.
function standStill() {
  process.env.TZ = "UTC";
  let now = 1e12;
  Date.now = () => (now += 1); // Python sees by a folder's time that it has new files
  performance.now = () => 0;
  let last = 0;
  crypto.getRandomValues = (view) => {
    new Uint8Array(view.buffer, view.byteOffset, view.byteLength).forEach((_, i, bytes) => {
      last = (75 * (last + 1)) % 65537;
      bytes[i] = last;
    });
    return view;
  };
}

async function main() {
  standStill();
  globalThis.require = createRequire(import.meta.url); // pyodide.asm.js asks Node.js for it
  const { loadPyodide } = await import(pathToFileURL(path.join(core, "pyodide.mjs")));
  await import(pathToFileURL(path.join(core, "pyodide.asm.js")));
  const modules = names.map((name) => [
    `${PACKAGES}/${name}`,
    new WebAssembly.Module(fs.readFileSync(path.join(numpy, name))),
  ]);
  let layout;
  preload(modules, (found) => (layout = found));
  const pyodide = await loadPyodide({
    indexURL: core,
    _makeSnapshot: true,
    // Nothing of the machine that makes it may be in it.
    env: { HOME: "/home/pyodide", PYTHONHASHSEED: "0", PYTHONOPTIMIZE: "2" },
    _sysExecutable: "/python",
    args: [],
  });
  copyInto(pyodide.FS, path.join(numpy, "numpy"), `${PACKAGES}/numpy`, /\.(py|so)$/);
  copyInto(pyodide.FS, code, OURS, /\.(py|npz)$/);
  pyodide.runPython(PYTHON);
  const handles = handlesOf(pyodide._module);
  const loaded = Object.keys(handles).map((name) => path.posix.relative(PACKAGES, name)).sort();
  if (loaded.some((name) => !names.includes(name))) {
    console.log(JSON.stringify(loaded));
    process.exit(3);
  }
  clearFreeMemory(pyodide._module);
  fs.writeFileSync(path.join(out, "snapshot.bin"), cut(pyodide.makeMemorySnapshot(), pyodide._module));
  const description = { libraries: names.map((name) => `${PACKAGES}/${name}`), handles, layout };
  fs.writeFileSync(path.join(out, "snapshot.json"), JSON.stringify(description));
}

await main();
