// Lets the keyboard reach what scrolls sideways. Takes the page as it is; sets tabindex on a wide
// formula, table or output while it is wider than its place, and takes it off when it fits again.

const SCROLLING = "div.math, .katex-display, .cell_output .text_html, .pst-scrollable-table-container";

/** @param {Element} element */
function mark(element) {
  const scrolls = element.scrollWidth > element.clientWidth + 1;
  if (scrolls) element.setAttribute("tabindex", "0");
  else element.removeAttribute("tabindex");
}

const watcher = new ResizeObserver((entries) => entries.forEach((entry) => mark(entry.target)));
document.querySelectorAll(SCROLLING).forEach((element) => watcher.observe(element));
// A formula's width is known once its fonts are there.
document.fonts.ready.then(() => document.querySelectorAll(SCROLLING).forEach(mark));
