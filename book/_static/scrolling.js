// Lets the keyboard reach what scrolls sideways. Takes the page as it is; sets tabindex on a wide
// formula, table or output while it is wider than its place, and takes it off when it fits again.

const SCROLLING = "div.math, .katex-display, .cell_output .text_html, .pst-scrollable-table-container";

const places = [...document.querySelectorAll(SCROLLING)];

/** @param {Element[]} elements  all are measured before any is changed: one layout for all */
function mark(elements) {
  const scrolls = elements.map((element) => element.scrollWidth > element.clientWidth + 1);
  elements.forEach((element, i) => {
    if (element.hasAttribute("tabindex") === scrolls[i]) return;
    if (scrolls[i]) element.setAttribute("tabindex", "0");
    else element.removeAttribute("tabindex");
  });
}

const watcher = new ResizeObserver((entries) => mark(entries.map((entry) => entry.target)));
places.forEach((element) => watcher.observe(element));
// A formula's width is known once its fonts are there.
document.fonts.ready.then(() => mark(places));
