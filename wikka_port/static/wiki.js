// Everything works without this file.  It puts a button on each block of code that copies it.
"use strict";
for (const block of navigator.clipboard ? document.querySelectorAll("pre.code") : []) {
  const { _ } = wikkaTexts;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = _("Copy");
  button.addEventListener("click", async () => {
    const lines = [...block.querySelectorAll(".line")].map((line) => line.textContent);
    try {
      await navigator.clipboard.writeText(lines.length ? lines.join("\n") : block.textContent);
      button.textContent = _("Copied");
    } catch {
      button.textContent = _("Not copied");
    }
  });
  block.before(button);
}
