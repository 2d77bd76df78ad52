// What the search page shows of a page that it has found: the words of its text. What stands around
// the text, the folded set-up, and what a formula holds twice are left out. Comes after Sphinx's
// searchtools.js, whose `Search` it changes.

const NOT_TEXT =
  ".bd-header-article, #jb-print-docs-body, .to-explorers, details.hide, button, form, " +
  ".explorer-note, .prev-next-footer, .bd-footer-article, .bd-footer-content, .bd-sidebar-secondary, " +
  ".bd-footer, .katex-html, annotation";
const whole = Search.htmlToText;

/** @param {string} html  @param {string} anchor  @returns {string} */
Search.htmlToText = (html, anchor) => {
  const page = new DOMParser().parseFromString(html, "text/html");
  page.querySelectorAll(NOT_TEXT).forEach((element) => element.remove());
  return whole(page.documentElement.outerHTML, anchor).replace(/\s+/g, " ").trim();
};

if (location.protocol === "file:") {
  const sentence = document.createElement("p");
  sentence.textContent = "Opened from the disk, the search names pages and cannot show their words.";
  document.getElementById("search-results").before(sentence);
}
