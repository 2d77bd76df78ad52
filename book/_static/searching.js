// What the search page shows of a page that it has found: the words around the first find in its
// text. What stands around the text, the folded set-up, and what a formula holds twice are left out.
// Comes after Sphinx's searchtools.js, whose `Search` it changes.

const NOT_TEXT =
  "script, style, button, form, .headerlink, .bd-header-article, #jb-print-docs-body, " +
  ".to-explorers, details.hide, .explorer-note, .prev-next-footer, .bd-sidebar-secondary, " +
  ".katex-html, annotation";
const BEFORE = 120; // letters
const SHOWN = 240;

/** @param {string} html  @param {string} anchor  of a heading, or "" @returns {string} */
function textOf(html, anchor) {
  const page = new DOMParser().parseFromString(html, "text/html");
  page.querySelectorAll(NOT_TEXT).forEach((element) => element.remove());
  const main = page.querySelector("[role=main]");
  const part = (anchor && main?.querySelector(anchor)) || main;
  return (part?.textContent ?? "").replace(/\s+/g, " ").trim();
}

/**
 * Where a word stands in a text. Sphinx looks for stems, and that of "entropy" is "entropi": without
 * its last letters it begins the word.
 * @param {string} text  @param {string} stem  @returns {number} -1 where it is not
 */
function find(text, stem) {
  const places = [0, 1, 2].map((less) => text.indexOf(stem.slice(0, Math.max(3, stem.length - less))));
  return places.find((place) => place >= 0) ?? -1;
}

/** @param {string} html  @param {Iterable<string>} stems  @param {string} anchor */
Search.makeSearchSummary = (html, stems, anchor) => {
  const text = textOf(html, anchor);
  if (!text) return null;
  const lower = text.toLowerCase();
  const places = [...stems].map((stem) => find(lower, stem.toLowerCase())).filter((at) => at >= 0);
  const start = places.length ? Math.max(0, Math.min(...places) - BEFORE) : 0;
  const shown = text.slice(start, start + SHOWN).trim();
  const summary = document.createElement("p");
  summary.className = "context";
  summary.textContent = `${start ? "…" : ""}${shown}${start + SHOWN < text.length ? "…" : ""}`;
  return summary;
};

if (location.protocol === "file:") {
  const sentence = document.createElement("p");
  sentence.textContent = "Opened from the disk, the search names pages and cannot show their words.";
  document.getElementById("search-results").before(sentence);
}
