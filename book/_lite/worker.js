// Runs in the kernel's worker in Pyodide's place: loads it, and tells the page how far it is.
// Takes the settings that tools/lite.py writes: runtimeURL, Pyodide's folder, and sizes, the bytes of
// each file that a start fetches. Gives {python: {loaded, whole}} for each file that has arrived,
// then {python: {ready: true}}, or {python: {failed: why}}. The kernel's own messages pass beside.

/** @param {object} news */
function tell(news) {
  postMessage({ python: news });
}

/** Let each file that arrives, and each that does not, be told. @param {Record<string, number>} sizes */
function watchFiles(sizes) {
  const fetchPlainly = fetch;
  const whole = Object.values(sizes).reduce((sum, size) => sum + size);
  const arrived = new Set();
  self.fetch = async (address, options) => {
    const name = String(address?.url ?? address).split("/").pop();
    try {
      const response = await fetchPlainly(address, options);
      if (!response.ok) throw new Error(response.statusText);
      arrived.add(name);
      const loaded = [...arrived].reduce((sum, one) => sum + (sizes[one] ?? 0), 0);
      tell({ loaded, whole });
      return response;
    } catch (error) {
      tell({ failed: `the file ${name} did not arrive` });
      throw error;
    }
  };
  tell({ loaded: 0, whole });
  return () => (self.fetch = fetchPlainly);
}

/** What the kernel calls. @param {object} settings @returns {Promise<object>} Pyodide */
async function start({ runtimeURL, sizes, ...settings }) {
  const rest = watchFiles(sizes);
  try {
    importScripts(`${runtimeURL}pyodide.js`);
    const pyodide = await self.loadPyodide({ ...settings, indexURL: runtimeURL });
    rest();
    // The kernel has Python run some lines of its own; it is ready when these have imported it.
    const run = pyodide.runPythonAsync;
    pyodide.runPythonAsync = async (text, options) => {
      const result = await run(text, options);
      if (text.includes("import pyodide_kernel")) {
        pyodide.runPythonAsync = run;
        tell({ ready: true });
      }
      return result;
    };
    return pyodide;
  } catch (error) {
    tell({ failed: String(error?.message ?? error).trim().split("\n").pop() });
    throw error;
  }
}

self.loadPyodide = start;
