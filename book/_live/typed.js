// A sentence that the reader types, read by a trained model: the button that loads it, the text
// box, which head to show, and the result. What code/worked_examples/own_sentence.py writes.

import { download } from "./download.js";
import { tie } from "./explorer.js";
import { valuesOf } from "./values.js";

// ms: what a slow phone may need for the longest text, and for taking the file.
const PATIENCE = 30_000;
const NOT_REPEATED = { patience: PATIENCE, repeat: false };
const LIVE = "Every move is computed in this page; the text goes nowhere.";

const megabytes = (bytes) => (bytes / 1e6).toFixed(1);

export class Typed {
  /**
   * @param {HTMLElement} section  with `data-file`, `data-size`, `data-integrity`, `data-about`: see
   *   sphinx_ext/model.py
   * @param {import("./client.js").Client} client
   */
  constructor(section, client) {
    const find = (selector) => section.querySelector(selector);
    Object.assign(this, { section, client, name: section.dataset.typed });
    this.offer = find(".typed-offer");
    this.button = find(".typed-offer button");
    this.progress = find("progress");
    this.loaded = find(".typed-loaded");
    this.form = find("form");
    this.text = find("textarea");
    this.controls = [...section.querySelectorAll("fieldset :is(input, select)[name]")];
    this.note = find(".typed-note");
    this.said = find(".explorer-said");
    this.result = find(".explorer-result");
    const { file, size, integrity } = section.dataset;
    this.wanted = { address: new URL(file, document.baseURI).href, size: Number(size), integrity };
    this.given = false; // whether the worker that is running has the model
    this.busy = false; // whether the reader waits for it
    this.button.addEventListener("click", () => this.busy || this.load());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.read(this.text.value);
    });
    // A sentence has no line breaks: Enter reads it, as in a box of one line.
    this.text.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.form.requestSubmit();
    });
    const moved = () => this.asked !== undefined && this.read(this.asked);
    for (const control of this.controls) {
      tie(control, moved, (sentence) => (this.note.textContent = this.said.textContent = sentence));
    }
    this.section.dataset.state = "rest";
    find(".typed-about").textContent = section.dataset.about;
    this.offer.hidden = false;
  }

  /**
   * @param {"loading"|"reading"|"live"|"failed"} state  for style sheets and tests
   * @param {string} words  shown, and read out
   */
  tell(state, words) {
    this.section.dataset.state = state;
    this.note.textContent = this.said.textContent = words;
  }

  /** Get the model into the worker; then read what is asked for, or what stands in the box. */
  async load() {
    this.busy = true;
    this.tell("loading", "The model is loading.");
    this.button.setAttribute("aria-disabled", "true"); // `disabled` would lose the focus
    this.offer.hidden = this.progress.hidden = false;
    this.show(0);
    this.client.wake();
    try {
      const file = await download(this.wanted, (bytes) => this.show(bytes));
      this.show(this.wanted.size);
      this.client.give(`${this.name} model`, file, { patience: PATIENCE });
    } catch (error) {
      this.fail(`The model could not be loaded: ${error.message}.`);
    }
  }

  /** @param {number} bytes  of the model's file that are there */
  show(bytes) {
    const { size } = this.wanted;
    this.progress.max = size;
    this.progress.value = bytes;
    const then = bytes === size ? "; now Python takes it in" : "";
    this.loaded.textContent = `${megabytes(bytes)} of ${megabytes(size)} MB${then}`;
  }

  /** The worker has the model. */
  taken() {
    this.given = true;
    this.settle();
    this.offer.hidden = true;
    if (this.form.hidden) {
      this.form.hidden = false;
      this.text.focus(); // the button, which had the focus, is gone
    }
    this.read(this.asked ?? this.text.value);
  }

  /** @param {string} text */
  read(text) {
    const isNew = text !== this.shown;
    this.asked = text;
    if (this.busy && !this.given) return; // it is read as soon as the model is there
    if (!this.given) return void this.load();
    this.busy = true;
    // A move of a control is answered at once: nobody needs to be told that it is under way.
    if (isNew) this.tell("reading", "The model is reading.");
    this.client.ask(this.name, { text, ...valuesOf(this.controls) }, NOT_REPEATED);
  }

  /** @param {string} html */
  answer(html) {
    this.result.innerHTML = html;
    this.busy = this.client.expects(this.name);
    if (this.busy) return; // the reader has moved on already
    this.shown = this.asked;
    this.tell("live", LIVE);
    this.said.textContent = [...this.result.querySelectorAll("p")]
      .map((p) => p.textContent)
      .join(" ");
  }

  /** There is another worker, which has no model. */
  forget() {
    this.given = false;
  }

  /** @param {string} why  why the worker ended */
  stopped(why) {
    this.given = false;
    if (this.busy) this.fail(`Python stopped: ${why}.`);
  }

  /** @param {string} sentence */
  fail(sentence) {
    this.settle();
    this.busy = this.offer.hidden = false;
    const kept = this.form.hidden ? "" : " Your text is still here.";
    this.tell("failed", `${sentence}${kept} The button tries again.`);
  }

  settle() {
    this.button.removeAttribute("aria-disabled");
    this.progress.hidden = true;
    this.loaded.textContent = "";
  }
}
