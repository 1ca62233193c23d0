// Everything works without this file.  It asks before a typed text is left behind, and saves with Ctrl+Enter.
"use strict";
const form = document.getElementById("edit");
if (form) {
  const area = form.elements.namedItem("body");
  const before = area.defaultValue;
  // after a preview or a refused save the text in the form is already different from the page
  let unsaved = document.querySelector(".preview, .banner.problem") !== null;
  let leaving = false;
  form.addEventListener("submit", () => { leaving = true; });
  window.addEventListener("pageshow", () => { leaving = false; });
  window.addEventListener("beforeunload", (event) => {
    unsaved = unsaved || area.value !== before;
    if (unsaved && !leaving) event.preventDefault();
  });
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      form.requestSubmit(form.elements.namedItem("save"));
    }
  });
}
