// Takes one chapter's copy out of what JupyterLite keeps in this browser, so that the published
// chapter opens again. The page's address names the chapter: reset.html?path=book/x.ipynb

const STORES = ["files", "checkpoints"]; // JupyterLite's own names in its database
const path = new URLSearchParams(location.search).get("path") ?? "";
const base = new URL(".", location.href).pathname;
const said = document.getElementById("said");
const forget = document.getElementById("forget");
const open = document.getElementById("open");

/** Open the database of this JupyterLite; null if the browser has none. It is never created. */
function database() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(`JupyterLite Storage - ${base}`);
    request.onupgradeneeded = () => request.transaction.abort();
    request.onsuccess = () => resolve(request.result);
    request.onerror = () =>
      request.error.name === "AbortError" ? resolve(null) : reject(request.error);
  });
}

/** Let `act` ask each store of the database that there is; return the answers. */
async function inStores(mode, act) {
  const opened = await database();
  if (opened === null) return [];
  try {
    const names = STORES.filter((name) => opened.objectStoreNames.contains(name));
    if (names.length === 0) return [];
    return await new Promise((resolve, reject) => {
      const transaction = opened.transaction(names, mode);
      const requests = names.map((name) => act(transaction.objectStore(name)));
      transaction.oncomplete = () => resolve(requests.map((request) => request.result));
      transaction.onerror = () => reject(transaction.error);
    });
  } finally {
    opened.close();
  }
}

async function show() {
  if (!/^book\/[\w-]+\.ipynb$/.test(path)) {
    said.textContent = "The address of this page names no chapter: come here from a chapter's page.";
    return;
  }
  open.href = `notebooks/index.html?path=${path}`;
  open.hidden = false;
  const [copy] = await inStores("readonly", (store) => store.getKey(path));
  forget.hidden = copy === undefined;
  said.textContent = copy
    ? `This browser keeps your copy of ${path}.`
    : `This browser keeps no copy of ${path}: the published chapter opens.`;
}

forget.addEventListener("click", async () => {
  if (!confirm(`Forget what you changed in ${path}? This cannot be undone.`)) return;
  await inStores("readwrite", (store) => store.delete(path));
  await show();
});

show().catch((error) => {
  said.textContent = `This browser does not say what it keeps (${error}).`;
});
