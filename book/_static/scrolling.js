// Shows what scrolls sideways, and lets the keyboard reach it. Takes the page as it is. While a wide
// formula, table or output is wider than its place it has a tabindex, a class for each side on which
// it goes on, and, where it is a table, a name; when it fits again all that goes.

const SCROLLING = "div.math, .katex-display, .cell_output .text_html, .pst-scrollable-table-container";
const SIDES = ["goes-on-left", "goes-on-right"];

const places = [...document.querySelectorAll(SCROLLING)].filter((e) => !e.querySelector(".explorer"));

/** @param {Element} element @returns {boolean[]} whether it goes on to the left, to the right */
function hidden({ scrollLeft, scrollWidth, clientWidth }) {
  return [scrollLeft > 1, scrollLeft + clientWidth < scrollWidth - 1];
}

/** @param {Element} element  @param {boolean[]} goesOn */
function mark(element, goesOn) {
  SIDES.forEach((side, i) => element.classList.toggle(side, goesOn[i]));
  const scrolls = goesOn.includes(true);
  // Not by its tabindex: the theme's script sets that as well.
  if ((element.dataset.scrolls === "true") === scrolls) return;
  element.dataset.scrolls = String(scrolls);
  const attributes = { tabindex: "0" };
  if (element.querySelector("table")) {
    attributes.role = "region";
    attributes["aria-label"] = `Output ${1 + places.indexOf(element)}: a table that scrolls sideways`;
  }
  for (const [name, value] of Object.entries(attributes)) {
    if (scrolls) element.setAttribute(name, value);
    else element.removeAttribute(name);
  }
}

/** @param {Element[]} elements  all are measured before any is changed: one layout for all */
function markAll(elements) {
  const measured = elements.map(hidden);
  elements.forEach((element, i) => mark(element, measured[i]));
}

const watcher = new ResizeObserver((entries) => markAll(entries.map((entry) => entry.target)));
for (const element of places) {
  watcher.observe(element);
  element.addEventListener("scroll", () => markAll([element]), { passive: true });
}
// A formula's width is known once its fonts are there.
document.fonts.ready.then(() => markAll(places));
