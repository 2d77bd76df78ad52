// The one script of the explorers that a page loads with itself. When the page has nothing else to
// do it brings in the rest; without it, or if that fails, the controls stay as the page has them.
{
  const { src } = document.currentScript;
  const begin = () => import(new URL("page.js", src).href).catch(() => {});
  if ("requestIdleCallback" in self) requestIdleCallback(begin, { timeout: 2000 });
  else setTimeout(begin, 200);
}
