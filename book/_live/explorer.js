// One explorer on the page: its controls, the line below them and its result.

import { readingOf, valuesOf } from "./values.js";

const QUIET = 700; // ms without a new result before it is read out: not every step of a slider

export class Explorer {
  /**
   * @param {HTMLElement} section    what explorer.py wrote
   * @param {(explorer: Explorer) => void} onMove  called at each move of a control
   */
  constructor(section, onMove) {
    this.name = section.dataset.explorer;
    this.section = section;
    this.controls = [...section.querySelectorAll("fieldset input, fieldset select")];
    this.note = section.querySelector(".explorer-note");
    this.result = section.querySelector(".explorer-result");
    this.said = section.querySelector(".explorer-said");
    for (const control of this.controls) {
      control.addEventListener("input", () => {
        showReading(control);
        onMove(this);
      });
    }
    section.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
    // The line's words change, its place does not: nothing below may jump.
    this.note.style.minHeight = `${this.note.offsetHeight}px`;
    section.querySelector("fieldset").disabled = false;
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

  /**
   * @param {"waiting"|"loading"|"live"|"failed"} state  for style sheets and tests
   * @param {string} words  for the line below the controls
   */
  tell(state, words) {
    this.section.dataset.state = state;
    this.note.textContent = words;
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
    this.said.textContent = sentences.join(" ");
  }
}

/** @param {HTMLInputElement} control */
export function showReading(control) {
  const reading = readingOf(control);
  if (reading === null) return;
  control.setAttribute("aria-valuetext", reading);
  control.parentElement.querySelector("output").textContent = reading;
}

/** Set each reading by where its control stands: a browser may have put it back there. */
export function showReadings(explorer) {
  explorer.controls.forEach(showReading);
}
