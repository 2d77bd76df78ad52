// Shows how far Python is while it starts for a notebook. Takes what the kernel's worker tells
// (worker.js); gives a line at the foot of the page, a bar, and few words to those who listen.

const MB = 1e6;
const words = {
  waiting: "Wait a moment: until Python starts, no cell runs.",
  failed: (why) =>
    `Python cannot start: ${why}. Reload the page; if that does not help, the site is not whole or cannot be reached.`,
  begun: "Python is starting.",
  half: "Python is starting: half of it is here.",
  whole: "Python is starting: all of it is here.",
  ready: "Python is ready.",
};

let line;

function make() {
  const foot = document.createElement("div");
  foot.id = "python-progress";
  foot.innerHTML =
    '<p aria-hidden="true"></p><progress aria-label="Python is starting"></progress><p role="status"></p>';
  document.body.append(foot);
  const [shown, said] = foot.querySelectorAll("p");
  return { foot, shown, said, bar: foot.querySelector("progress") };
}

/** Say something once. @param {string} text */
function say(text) {
  if (line.said.textContent !== text) line.said.textContent = text;
}

/** @param {{loaded?: number, whole?: number, ready?: boolean, failed?: string}} news */
function show({ loaded, whole, ready, failed }) {
  line ??= make();
  const { foot, shown, bar } = line;
  if (foot.dataset.state === "failed") return; // what follows from it would only hide it
  foot.dataset.state = failed ? "failed" : ready ? "ready" : "loading";
  if (failed) {
    shown.textContent = words.failed(failed);
    say(shown.textContent);
  } else if (ready) {
    shown.textContent = words.ready;
    bar.value = bar.max;
    say(words.ready);
    setTimeout(() => foot.remove(), 4000);
    line = undefined;
  } else {
    bar.max = whole;
    bar.value = loaded;
    const [here, all] = [loaded, whole].map((bytes) => Math.round(bytes / MB));
    shown.textContent =
      loaded < whole
        ? `Python is starting: ${here} of ${all} MB`
        : `Python is starting: all ${all} MB are here`;
    say(loaded < whole / 2 ? words.begun : loaded < whole ? words.half : words.whole);
  }
}

/** Before there is a worker Jupyter shows the notebook already, and drops what is run in it. */
function wait() {
  if (line) return;
  line = make();
  line.foot.dataset.state = "waiting";
  line.shown.textContent = words.waiting;
  say(words.waiting);
}

if (new URLSearchParams(location.search).get("path")?.endsWith(".ipynb"))
  document.addEventListener("DOMContentLoaded", wait);

// Jupyter makes the worker by itself, and offers no place to listen to it.
globalThis.Worker = class extends Worker {
  constructor(...how) {
    super(...how);
    this.addEventListener("message", ({ data }) => data?.python && show(data.python));
  }
};
