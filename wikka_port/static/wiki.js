// Everything works without this file.  It asks before a typed text is left behind, saves with Ctrl+Enter, and puts a
// button on each block of code that copies it.
"use strict";
const form = document.getElementById("edit");
if (form) {
  const area = form.elements.namedItem("body");
  const before = area.defaultValue;
  // after a preview or a refused save the text in the form is already different from the page
  let unsaved = document.querySelector(".preview, .banner.problem") !== null;
  let leaving = false;
  const choose = document.getElementById("choose");  // of a conflict: it sends the text, too
  for (const one of choose ? [form, choose] : [form]) one.addEventListener("submit", () => { leaving = true; });
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
for (const block of navigator.clipboard ? document.querySelectorAll("pre.code") : []) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const lines = [...block.querySelectorAll(".line")].map((line) => line.textContent);
    try {
      await navigator.clipboard.writeText(lines.length ? lines.join("\n") : block.textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not copied";
    }
  });
  block.before(button);
}
