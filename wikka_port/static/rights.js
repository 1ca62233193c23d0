// Everything works without this file.  It chooses a list of the page's own as soon as somebody types one.
"use strict";
for (const list of document.querySelectorAll("textarea[data-ticks]")) {
  list.addEventListener("input", () => { list.form.elements.namedItem(list.dataset.ticks).checked = true; });
}
