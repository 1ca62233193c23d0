// Everything works without this file.  On a page with several forms, only the sent form's fields are sent: a person who
// has also changed a different form is warned once, and may send again to discard that change.
"use strict";
(() => {
  const { _ } = wikkaTexts;
  const isChanged = (field) => (field.type === "checkbox" || field.type === "radio" ? field.checked !== field.defaultChecked
    : field.tagName === "SELECT" ? [...field.options].some((one) => one.selected !== one.defaultSelected) && field.value !== ""
      : field.type !== "hidden" && field.type !== "submit" && field.value !== (field.defaultValue ?? ""));
  const forms = [...document.querySelectorAll("main form[method=post]")];
  const wordsOf = (label) => [...label.childNodes].filter((node) => !node.matches?.("input, select, textarea")).map((node) => node.textContent).join(" ");
  const labelOf = (field) => {
    const label = field.closest("fieldset")?.querySelector("legend") ?? field.labels[0];
    return label ? wordsOf(label).replace(/\s+/g, " ").trim() : "";
  };
  for (const form of forms) {
    form.addEventListener("submit", (event) => {
      const left = forms.filter((other) => other !== form).flatMap((other) => [...other.elements]).find((field) => isChanged(field) && !field.matches(":autofill"));
      let note = form.querySelector(".doubt.left");
      if (!left || note) return;
      event.preventDefault();
      note = document.createElement("p");
      note.className = "doubt left";
      note.setAttribute("role", "alert");
      note.textContent = _("Nothing is sent yet. You changed “{field}” too, which has a button of its own: send this again to leave it.", { field: labelOf(left) });
      form.querySelector(".actions").before(note);
    });
  }
})();
