// What is offered on return: texts that this browser has and the wiki has not confirmed.
"use strict";
(() => {
  const { _, _n } = wikkaTexts;
  const COMPARED_MAX = 1_500; // lines on each side; beyond, a changed part is shown as a whole

  /** Lines as ["equal" | "delete" | "insert", line]. */
  wikkaEditor.compared = (old, now) => {
    const a = old.split("\n");
    const b = now.split("\n");
    let head = 0;
    while (head < a.length && head < b.length && a[head] === b[head]) head++;
    let tail = 0;
    while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
    const from = a.slice(head, a.length - tail);
    const to = b.slice(head, b.length - tail);
    const made = a.slice(0, head).map((line) => ["equal", line]);
    if (from.length > COMPARED_MAX || to.length > COMPARED_MAX) {
      made.push(...from.map((line) => ["delete", line]), ...to.map((line) => ["insert", line]));
    } else {
      const width = to.length + 1;
      const longest = new Uint16Array((from.length + 1) * width);
      for (let i = from.length - 1; i >= 0; i--) {
        for (let j = to.length - 1; j >= 0; j--) {
          longest[i * width + j] = from[i] === to[j] ? longest[(i + 1) * width + j + 1] + 1
            : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
        }
      }
      let i = 0;
      let j = 0;
      while (i < from.length || j < to.length) {
        if (i < from.length && j < to.length && from[i] === to[j]) { made.push(["equal", from[i]]); i++; j++; }
        else if (j >= to.length || (i < from.length && longest[(i + 1) * width + j] >= longest[i * width + j + 1])) made.push(["delete", from[i++]]);
        else made.push(["insert", to[j++]]);
      }
    }
    return [...made, ...a.slice(a.length - tail, a.length).map((line) => ["equal", line])];
  };

  function difference(old, now) {
    const box = document.createElement("div");
    box.className = "table diff-box";
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", _("Difference: the text below, and the copy in this browser"));
    const table = document.createElement("table");
    table.className = "diff inline";
    const lines = wikkaEditor.compared(old, now);
    const near = lines.map((line, n) => lines.slice(Math.max(0, n - 2), n + 3).some(([kind]) => kind !== "equal"));
    let folded = 0;
    lines.forEach(([kind, line], n) => {
      if (!near[n]) { folded++; return; }
      if (folded) {
        const row = table.insertRow();
        row.className = "fold";
        row.insertCell().textContent = _n("{n} line is the same", "{n} lines are the same", folded);
        folded = 0;
      }
      const row = table.insertRow();
      row.className = kind;
      const cell = row.insertCell();
      cell.className = kind === "delete" ? "old" : "new";
      const words = document.createElement(kind === "delete" ? "del" : kind === "insert" ? "ins" : "span");
      words.textContent = line;
      cell.append(words);
    });
    box.append(table);
    return box;
  }

  function button(words, className, act) {
    const made = document.createElement("button");
    Object.assign(made, { type: "button", className, textContent: words });
    made.addEventListener("click", act);
    return made;
  }

  /** A banner for each copy that differs from ``area``; ``goOn(copy)`` takes one over. */
  wikkaEditor.offerCopies = async (form, area, goOn) => {
    const note = form.elements.namedItem("note");
    const isInTheWiki = (id) => id === form.elements.namedItem("draft")?.value
      || [...document.querySelectorAll(".banner a[href*='draft=']")].some((link) => link.href.endsWith(`draft=${id}`));
    const copies = await wikkaEditor.copies.of(form.elements.namedItem("as").value, form.dataset.page);
    form.dataset.offered = String(copies.length); // all that there is has been looked at
    for (const copy of copies) {
      if (copy.confirmed && isInTheWiki(copy.id)) continue;
      if (copy.section && !form.elements.namedItem("section")) continue; // a suggestion is of the whole page
      const isHere = copy.section === (form.elements.namedItem("section")?.value ?? "");
      if (isHere && copy.body === area.value) { wikkaEditor.copies.remove(copy); continue; }
      const banner = document.createElement("div");
      banner.className = "banner kept copy";
      banner.setAttribute("role", "status");
      const said = document.createElement("p");
      const clock = wikkaEditor.timeOf(copy.time);
      const where = copy.section ? _("A text of a section from {clock} is in this browser.", { clock })
        : _("A text from {clock} is in this browser.", { clock });
      said.textContent = `${where} ${copy.confirmed ? _("The wiki does not offer it.") : _("The wiki has not confirmed it.")}`;
      const actions = document.createElement("div");
      actions.className = "actions";
      let shown = null;
      const compare = button(_("Compare"), "quiet", () => {
        if (shown) { shown.remove(); shown = null; } else banner.append(shown = difference(area.value, copy.body));
        compare.setAttribute("aria-expanded", String(Boolean(shown)));
      });
      compare.setAttribute("aria-expanded", "false");
      actions.append(
        button(_("Go on with it"), "", () => {
          if (!isHere) { location.assign(`${form.getAttribute("action")}?section=${encodeURIComponent(copy.section)}`); return; }
          banner.remove();
          if (note && copy.note) note.value = copy.note;
          goOn(copy);
        }),
        ...(isHere ? [compare] : []),
        button(_("Throw away"), "quiet", async () => { await wikkaEditor.copies.remove(copy); banner.remove(); area.focus(); }),
      );
      banner.append(said, actions);
      form.before(banner);
    }
  };
})();
