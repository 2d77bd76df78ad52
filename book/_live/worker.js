// The worker: starts Python, then answers one question after the other.
// Takes {begin: {plain, again}} once, then {ask: {name, values}}.
// Gives {loaded: share} while it starts, {ready: true} or {failed: why}, then {html} or {failed}.

import { FILES, RUNTIME } from "./manifest.js";
import { openFiles } from "./files.js";
import { filesFor, start } from "./start.js";

const BASE = new URL(".", import.meta.url).href;

/** @type {(name: string, values: string) => string} */
let answer;

/** @param {{plain: boolean, again: boolean}} how */
async function begin({ plain, again }) {
  const sizeOf = (name) => FILES[name].size;
  const whole = filesFor(RUNTIME, plain).map(sizeOf).reduce((sum, size) => sum + size);
  let loaded = 0;
  const onLoaded = (size) => postMessage({ loaded: (loaded += size) / whole });
  answer = await start(RUNTIME, plain, openFiles(FILES, { base: BASE, again, onLoaded }), BASE);
  postMessage({ ready: true });
}

/** @param {{name: string, values: object}} question */
async function ask({ name, values }) {
  postMessage({ html: answer(name, JSON.stringify(values)) });
}

onmessage = ({ data }) => {
  const work = data.begin ? begin(data.begin) : ask(data.ask);
  work.catch((error) => postMessage({ failed: String(error?.message ?? error) }));
};
