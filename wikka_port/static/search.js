// Everything works without this file.  It completes names of pages and headings in the search field of the page's head,
// and moves the focus to that field on "/" or Ctrl+K.
"use strict";
const box = document.querySelector("header form.search");
if (box) {
  const { _ } = wikkaTexts;
  const field = box.elements.namedItem("q");
  const list = document.createElement("ul");
  const withoutBlanks = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}]/u; // one such character is searched for
  let asked = 0;
  let chosen = -1;

  list.id = "suggestions";
  list.className = "suggestions";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", _("Pages and headings"));
  list.hidden = true;
  box.append(list);
  for (const [name, value] of [["role", "combobox"], ["aria-controls", list.id], ["aria-autocomplete", "list"],
    ["aria-expanded", "false"]]) field.setAttribute(name, value);

  const links = () => [...list.children].map((item) => item.firstChild);
  const close = () => {
    list.hidden = true;
    chosen = -1;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  };
  const choose = (at) => {
    const options = links();
    if (!options.length) return;
    chosen = at < 0 ? options.length - 1 : at % options.length;
    options.forEach((option, n) => option.setAttribute("aria-selected", String(n === chosen)));
    field.setAttribute("aria-activedescendant", options[chosen].id);
  };
  const show = (names) => {
    const kept = chosen < 0 ? "" : links()[chosen].href; // an answer may come behind the choice
    list.replaceChildren(...names.map((one, n) => {
      const item = document.createElement("li");
      const link = document.createElement("a");
      item.setAttribute("role", "none");
      link.id = `suggestion-${n}`;
      link.setAttribute("role", "option");
      link.setAttribute("aria-selected", "false");
      link.href = one.path;
      link.tabIndex = -1;
      link.textContent = one.name;
      if (one.page) {
        const page = document.createElement("span");
        page.textContent = _("in {page}", { page: one.page });
        link.append(" ", page);
      }
      item.append(link);
      return item;
    }));
    if (!names.length) { close(); return; }
    chosen = -1;
    list.hidden = false;
    field.setAttribute("aria-expanded", "true");
    const at = links().findIndex((option) => option.href === kept);
    if (at >= 0) choose(at);
    else field.removeAttribute("aria-activedescendant");
  };
  const ask = async () => {
    const typed = field.value.trim();
    const turn = ++asked;
    if (typed.length < 2 && !withoutBlanks.test(typed)) { close(); return; }
    try {
      const path = `/-/suggest?headings=1&q=${encodeURIComponent(typed)}`;
      const answer = await fetch(path, { headers: { Accept: "application/json" } });
      const names = answer.ok ? await answer.json() : [];
      if (turn === asked && document.activeElement === field) show(names);
    } catch {
      if (turn === asked) close(); // the network is away: the field works as it is
    }
  };
  let pause = 0;
  field.addEventListener("input", () => { clearTimeout(pause); pause = setTimeout(ask, 80); });
  field.addEventListener("blur", () => { asked++; setTimeout(close, 150); }); // a click on a name comes behind it
  field.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen - 1);
    else if (event.key === "Escape") {
      asked++; // nor does an answer that comes later open it again
      clearTimeout(pause);
      close();
    }
    else if (event.key === "Enter" && chosen >= 0) {
      location.href = links()[chosen].href;
      close(); // a heading of this very page
    }
    else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);
    const isSlash = event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey;
    const isKey = event.key === "k" && (event.ctrlKey || event.metaKey) && document.activeElement.id !== "body";
    if (!isSlash && !isKey) return;
    event.preventDefault();
    field.focus();
    field.select();
  });
}
