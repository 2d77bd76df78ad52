// Compiles the Python files of wheels and of the standard library beforehand, with the Pyodide that
// will run them, and lets matplotlib write its list of fonts.
//
//   node tools/lite.mjs CORE WHEELS OUT
//
// CORE: the folder with Pyodide's parts. WHEELS: a folder with wheels and their pyodide-lock.json.
// OUT: gets each archive under its own name, .pyc in place of .py, without the tests.

import path from "node:path";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [core, wheels, out] = process.argv.slice(2).map((folder) => path.resolve(folder));

const PYTHON = `
import importlib._bootstrap_external as bootstrap, io, json, zipfile
from pathlib import Path

from matplotlib import font_manager

SITE = "/lib/python3.12/site-packages/"
font_manager.json_dump(font_manager.FontManager(), "/fontlist.json")
GENERATED = {"matplotlib/fontlist.json": Path("/fontlist.json").read_bytes()}


def compiled(source, root):
    """Return the archive with .pyc files: the same bytes from the same files."""
    target = io.BytesIO()
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            if name.endswith("/") or "/tests/" in name:
                continue
            data = GENERATED.get(name) or old.read(name)
            if name.endswith(".py"):
                try:
                    code = compile(data, root + name, "exec", dont_inherit=True)
                except SyntaxError:
                    pass  # such as a template
                else:
                    name, data = name + "c", bootstrap._code_to_timestamp_pyc(code, 0, 0)
            new.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, 6)
    return target.getvalue()


for source in sorted([*Path("/wheels").glob("*.whl"), Path("/core/python_stdlib.zip")]):
    root = "/lib/python312.zip/" if source.suffix == ".zip" else SITE
    Path("/out", source.name).write_bytes(compiled(source, root))
`;

globalThis.require = createRequire(import.meta.url); // pyodide.asm.js asks Node.js for it
const { loadPyodide } = await import(pathToFileURL(path.join(core, "pyodide.mjs")));
const pyodide = await loadPyodide({
  indexURL: core,
  lockFileURL: path.join(wheels, "pyodide-lock.json"),
  packageCacheDir: wheels,
  env: { HOME: "/home/pyodide", PYTHONHASHSEED: "0" },
  stdout: () => {},
});
await pyodide.loadPackage("matplotlib");
for (const [place, folder] of Object.entries({ "/core": core, "/wheels": wheels, "/out": out })) {
  pyodide.mountNodeFS(place, folder);
}
await pyodide.runPythonAsync(PYTHON);
