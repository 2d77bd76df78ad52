// Makes the explorers of a page answer: wakes Python when it is likely to be wanted, passes moves
// on and shows what comes back. The result for the defaults is in the page already.

import { RUNTIME } from "./manifest.js";
import { Client } from "./client.js";
import { Explorer } from "./explorer.js";

const WAITING = "Move a control: this page computes the answer itself.";
const LIVE = "Live: every move is computed in this page.";

const explorers = new Map();
const tellAll = (...what) => explorers.forEach((explorer) => explorer.tell(...what));

const client = new Client(
  // After a failure another address: the browser may have kept what came from the first.
  (failures) =>
    new Worker(new URL(`worker.js${failures ? `?${failures}` : ""}`, import.meta.url), {
      type: "module",
    }),
  RUNTIME.snapshot !== null,
  {
    onLoading: (share) => tellAll("loading", `Python is loading: ${Math.round(100 * share)} %`),
    onReady: () => tellAll("live", LIVE),
    onFailed: (why) =>
      tellAll(
        "failed",
        `Python stopped: ${why}. The next move tries again; in Jupyter and Colab the ` +
          "controls work too.",
      ),
    onAnswer: (name, html) => explorers.get(name).show(html),
  },
);

/** @param {Explorer} explorer */
function ask(explorer) {
  client.ask(explorer.name, explorer.values());
}

for (const section of document.querySelectorAll("section.explorer[data-explorer]")) {
  const explorer = new Explorer(section, ask);
  explorers.set(explorer.name, explorer);
  explorer.tell("waiting", WAITING);
}

/** Ask for what the controls show, where a browser has put them back after a journey. */
function catchUp() {
  for (const explorer of explorers.values()) {
    explorer.refresh();
    if (explorer.moved) ask(explorer);
  }
}
catchUp();
addEventListener("pageshow", (event) => event.persisted && catchUp());

// Ahead of the first move, unless the reader saves data: then a touch has to come first.
const wake = () => client.wake();
for (const { section } of explorers.values()) {
  for (const touch of ["pointerdown", "focusin"]) section.addEventListener(touch, wake);
}
if (!navigator.connection?.saveData) {
  const watcher = new IntersectionObserver(
    (entries) => entries.some((entry) => entry.isIntersecting) && (watcher.disconnect(), wake()),
    { rootMargin: "100% 0px" },
  );
  explorers.forEach(({ section }) => watcher.observe(section));
}
