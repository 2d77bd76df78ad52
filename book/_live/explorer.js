// One explorer on the page: its controls, the line below them and its result.

import { exactOf, faultOf, readingOf, valuesOf } from "./values.js";

const QUIET = 700; // ms without a new result before it is read out: not every step of a slider
const AT_DEFAULTS = "All controls are back at their defaults.";

export class Explorer {
  /**
   * @param {HTMLElement} section    what explorer.py wrote
   * @param {(explorer: Explorer) => void} onMove  called at each move of a control
   */
  constructor(section, onMove) {
    this.name = section.dataset.explorer;
    this.section = section;
    this.onMove = onMove;
    this.controls = [...section.querySelectorAll("fieldset :is(input, select)[name]")];
    this.note = section.querySelector(".explorer-note");
    this.reset = section.querySelector(".explorer-reset");
    this.result = section.querySelector(".explorer-result");
    this.said = section.querySelector(".explorer-said");
    this.aside = "";
    for (const control of this.controls) {
      control.addEventListener("input", () => this.move());
      const exact = exactBeside(control);
      exact?.addEventListener("input", () => this.type(control, exact));
      exact?.addEventListener("change", () => this.settle(control, exact));
    }
    this.reset.addEventListener("click", () => this.goBack());
    section.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
    // The line's words change, its place does not: nothing below may jump.
    this.note.style.minHeight = `${this.note.offsetHeight}px`;
    section.querySelector("fieldset").disabled = false;
    this.reset.disabled = false;
    this.refresh();
  }

  /** The controls' values, by name. */
  values() {
    return valuesOf(this.controls);
  }

  /** Whether a control stands elsewhere than the result in the page was computed for. */
  get moved() {
    return this.controls.some((control) => {
      if (control.type === "checkbox") return control.checked !== control.defaultChecked;
      // As numbers: the page has 10.0 where the browser says 10.
      if (control.type === "range") return Number(control.value) !== Number(control.defaultValue);
      return ![...control.selectedOptions].every((option) => option.defaultSelected);
    });
  }

  /** Let what stands beside the controls follow them: a browser may have put them back somewhere. */
  refresh(except) {
    for (const control of this.controls) {
      const reading = readingOf(control);
      if (reading === null) continue;
      control.setAttribute("aria-valuetext", reading);
      const exact = exactBeside(control);
      if (exact !== except) exact.value = exactOf(control);
    }
    // Not `disabled`: that would take the focus from the one who has just pressed it.
    this.reset.setAttribute("aria-disabled", String(!this.moved));
  }

  /** @param {HTMLElement} [typing]  the field whose text is not to be touched */
  move(typing) {
    this.refresh(typing);
    this.tell(this.section.dataset.state, this.words);
    this.aside = "";
    this.onMove(this);
  }

  /** A number is being typed; one that is out of range may be half of one that is not. */
  type(slider, exact) {
    const { badInput, rangeOverflow, rangeUnderflow, valueMissing } = exact.validity;
    if (badInput || rangeOverflow || rangeUnderflow || valueMissing || exact.value === "") return;
    slider.value = exact.value;
    this.move(exact);
  }

  /** It is typed: the slider takes what it can of it, and the field shows that. */
  settle(slider, exact) {
    const typed = exact.value;
    if (typed !== "") slider.value = typed;
    if (typed === "" || Number(typed) === Number(slider.value)) return this.refresh();
    this.move();
    this.mention(faultOf(slider, slider.labels[0].textContent, typed));
  }

  goBack() {
    if (!this.moved) return;
    this.section.querySelector("form").reset();
    this.move();
    this.mention(AT_DEFAULTS);
  }

  /**
   * @param {"waiting"|"loading"|"live"|"failed"} state  for style sheets and tests
   * @param {string} words  for the line below the controls
   */
  tell(state, words) {
    this.section.dataset.state = state;
    this.words = words;
    this.note.textContent = words;
  }

  /** Show a sentence in that line until the next move, and say it. */
  mention(sentence) {
    this.note.textContent = sentence;
    this.said.textContent = sentence;
    this.aside = sentence;
  }

  /** @param {string} html  what the view returned */
  show(html) {
    this.result.innerHTML = html;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.announce(), QUIET);
  }

  /** Let a screen reader say the result's sentences; the table is there to be read. */
  announce() {
    const sentences = [...this.result.querySelectorAll("p")].map((p) => p.textContent);
    this.said.textContent = [this.aside, ...sentences].filter(Boolean).join(" ");
  }
}

/** @param {HTMLElement} control  @returns {HTMLInputElement|HTMLSelectElement|null} */
function exactBeside(control) {
  return control.parentElement.querySelector(".explorer-exact");
}
