// The worker: starts Python, then answers one question after the other.
// Takes {begin: {plain, again}} once, then {ask: {name, values}} or {give: {file}}.
// Gives {loaded: share} while it starts, {ready: true} or {failed: why}, then {html} or {failed}.

import { FILES, RUNTIME } from "./manifest.js";
import { openFiles } from "./files.js";
import { filesFor, start } from "./start.js";

const BASE = new URL(".", import.meta.url).href;

/** @type {import("./start.js").Live} */
let live;

/** @param {{plain: boolean, again: boolean}} how */
async function begin({ plain, again }) {
  const sizeOf = (name) => FILES[name].size;
  const whole = filesFor(RUNTIME, plain).map(sizeOf).reduce((sum, size) => sum + size);
  let loaded = 0;
  const onLoaded = (size) => postMessage({ loaded: (loaded += size) / whole });
  live = await start(RUNTIME, plain, openFiles(FILES, { base: BASE, again, onLoaded }), BASE);
  postMessage({ ready: true });
}

/** @param {{name: string, values: object}} question */
async function ask({ name, values }) {
  postMessage({ html: live.answer(name, JSON.stringify(values)) });
}

/** @param {{file: ArrayBuffer}} gift */
async function take({ file }) {
  postMessage({ html: live.take(new Uint8Array(file)) });
}

/** Say why, without the lines that led there: of what Python writes, the last one says it. */
function reasonOf(error) {
  return String(error?.message ?? error).trim().split("\n").pop();
}

onmessage = ({ data }) => {
  const work = data.begin ? begin(data.begin) : data.give ? take(data.give) : ask(data.ask);
  work.catch((error) => postMessage({ failed: reasonOf(error) }));
};
