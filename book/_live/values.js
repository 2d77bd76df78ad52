// Between a native control and the value that the Python view takes: pure functions of what a
// control's attributes say (written by code/worked_examples/controls.py).

/**
 * What the page knows of one control.
 * @typedef {object} Control
 * @property {string} type        "range", "checkbox" or "select-one"
 * @property {string} value       as the control holds it
 * @property {boolean} [checked]  of a checkbox
 * @property {{values?: string, readings?: string, decimals?: string, unit?: string}} dataset
 */

/**
 * The value that the view takes.
 * @param {Control} control
 * @returns {number|string|boolean}
 */
export function valueOf({ type, value, checked, dataset }) {
  if (type === "checkbox") return Boolean(checked);
  if (type !== "range") return value;
  return dataset.values ? JSON.parse(dataset.values)[Number(value)] : Number(value);
}

/**
 * The value as its control shows it, with its unit: what `reading` in controls.py writes. Null for
 * a control that shows its own value.
 * @param {Control} control
 * @returns {string|null}
 */
export function readingOf({ type, value, dataset }) {
  if (type !== "range") return null;
  if (dataset.readings) return JSON.parse(dataset.readings)[Number(value)];
  return `${Number(value).toFixed(Number(dataset.decimals))} ${dataset.unit}`.trim();
}

/**
 * What the field beside a slider holds where the slider stands: the number with its decimals, or the
 * place in the list.
 * @param {Control} slider
 * @returns {string}
 */
export function exactOf({ value, dataset }) {
  return dataset.values ? value : Number(value).toFixed(Number(dataset.decimals));
}

/**
 * What to say of a number that was typed and is not where the slider stands now.
 * @param {Control & {min: string, max: string, step: string}} slider
 * @param {string} label
 * @param {string} typed
 * @returns {string}
 */
export function faultOf(slider, label, typed) {
  const { min, max, step } = slider;
  const taken = `${label} takes a number from ${min} to ${max} in steps of ${step}`;
  return `${taken}; got ${typed}, so ${exactOf(slider)} is set.`;
}

/**
 * Every control's value, by its name.
 * @param {Iterable<Control & {name: string}>} controls
 * @returns {Record<string, number|string|boolean>}
 */
export function valuesOf(controls) {
  return Object.fromEntries([...controls].map((control) => [control.name, valueOf(control)]));
}
