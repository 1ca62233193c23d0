// Everything works without this file.  It sorts tables, shows the first words of a page whose link is pointed at, and
// opens the tree of pages in place; for readers who have set it, a double click on a page opens its editor.
"use strict";
const shown = document.querySelector("article.content");
const { _ } = wikkaTexts;

if (shown?.dataset.edit) {
  shown.addEventListener("dblclick", (event) => {
    if (!event.target.closest("a, button, input, summary")) location.assign(shown.dataset.edit);
  });
}

// --- tables: a click on a head sorts by its column, a second one the other way round, a third one as it was -------

const LEAST_ROWS = 3;
const NUMBER = /^[^\d+\-−.,]{0,3}([+\-−]?[\d][\d\s.,'’]*)(?:\s?[^\d\s]{1,3})?$/;

// Digits of a number as people write it: of two different marks the last one is the decimal mark, and a mark that
// stands once before anything but three digits is one too.
const numberOf = (text) => {
  const found = NUMBER.exec(text);
  if (!found || /^\d{4}-\d\d/.test(text)) return null;
  const digits = found[1].replace(/[\s'’]/g, "").replace("−", "-");
  const marks = [...digits.matchAll(/[.,]/g)];
  const last = marks.at(-1);
  const isDecimal = last && (marks.filter((mark) => mark[0] === last[0]).length === 1)
    && (marks.length > 1 || !/[.,]\d{3}$/.test(digits));
  const whole = isDecimal ? digits.slice(0, last.index) : digits;
  const value = Number(whole.replace(/[.,]/g, "") + (isDecimal ? `.${digits.slice(last.index + 1)}` : ""));
  return Number.isNaN(value) ? null : value;
};

const sorter = (rows, column) => {
  const texts = new Map(rows.map((row) => [row, row.cells[column].textContent.trim()]));
  const filled = [...texts.values()].filter((text) => text);
  const isNumeric = filled.length > 0 && filled.every((text) => numberOf(text) !== null);
  const words = new Intl.Collator(shown.lang || document.documentElement.lang, { numeric: true, sensitivity: "base" });
  return (way) => (a, b) => {
    const [first, second] = [texts.get(a), texts.get(b)];
    if (!first || !second) return Number(!first) - Number(!second); // empty cells stand at the end, both ways
    return way * (isNumeric ? numberOf(first) - numberOf(second) : words.compare(first, second));
  };
};

const sortable = (table) => {
  const body = table.tBodies[0];
  const head = table.tHead?.rows.length === 1 ? table.tHead.rows[0] : null;
  const rows = head && table.tBodies.length === 1 ? [...body.rows] : [];
  const isEven = [...rows, ...(head ? [head] : [])].every((row) => row.cells.length === head.cells.length
    && [...row.cells].every((cell) => cell.colSpan === 1 && cell.rowSpan === 1));
  if (rows.length < LEAST_ROWS || !isEven) return;
  [...head.cells].forEach((cell, column) => {
    if (!cell.textContent.trim() || cell.querySelector("a, button, input, img")) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...cell.childNodes);
    button.title = _("Sort by this column");
    cell.append(button);
    button.addEventListener("click", () => {
      const next = { ascending: "descending", descending: "" }[cell.getAttribute("aria-sort")] ?? "ascending";
      for (const other of head.cells) other.removeAttribute("aria-sort");
      if (next) cell.setAttribute("aria-sort", next);
      const compare = sorter(rows, column)(next === "descending" ? -1 : 1);
      body.append(...(next ? [...rows].sort(compare) : rows));
    });
  });
};
for (const table of shown?.querySelectorAll("table") ?? []) if (!table.querySelector("table")) sortable(table);

// --- links: pointed at, or reached by keyboard, a link to a page shows its first words ----------------------------

const WAIT_MS = 350;
const KEPT = 100; // summaries

const summaries = new Map();
const summaryOf = async (path) => {
  if (!summaries.has(path)) {
    if (summaries.size >= KEPT) summaries.delete(summaries.keys().next().value);
    summaries.set(path, fetch(`${path}/summary`, { headers: { Accept: "application/json" } })
      .then((answer) => (answer.ok ? answer.json() : {})).catch(() => { summaries.delete(path); return {}; }));
  }
  return summaries.get(path);
};

const card = document.createElement("div");
card.className = "card";
card.id = "card";
card.setAttribute("role", "tooltip");
card.hidden = true;
let pointed = null;
let isFocused = false; // it is the keyboard that points: the mouse, which rests somewhere, hides nothing then
let timer = 0;

const hideCard = () => {
  clearTimeout(timer);
  pointed?.removeAttribute("aria-describedby");
  pointed = null;
  card.hidden = true;
};
const showCard = async (link) => {
  const { name, text } = await summaryOf(link.pathname);
  if (pointed !== link || !text) return;
  const title = document.createElement("strong");
  const words = document.createElement("p");
  title.textContent = name;
  words.textContent = text;
  card.replaceChildren(title, words);
  card.hidden = false;
  const [at, box] = [link.getBoundingClientRect(), card.getBoundingClientRect()];
  const isBelow = at.bottom + box.height + 8 < innerHeight || at.top < box.height + 8;
  card.style.left = `${Math.max(8, Math.min(at.left, innerWidth - box.width - 8)) + scrollX}px`;
  card.style.top = `${(isBelow ? at.bottom + 4 : at.top - box.height - 4) + scrollY}px`;
  link.setAttribute("aria-describedby", card.id);
};
const isPage = (link) => link.origin === location.origin && /^\/[^/]+$/.test(link.pathname)
  && link.pathname !== location.pathname && !link.matches(".missing, .edit-section, .anchor, [rel~=nofollow]");
const point = (event) => {
  if (event.pointerType === "touch") return;
  if (card.contains(event.target)) { clearTimeout(timer); return; }
  const link = event.target.closest("a[href]");
  if (link === pointed && link) { clearTimeout(timer); return; }
  if (!link || !isPage(link)) return;
  hideCard();
  pointed = link;
  isFocused = event.type === "focusin";
  timer = setTimeout(showCard, WAIT_MS, link);
};
const leave = (event) => {
  if ((event.type === "focusout") !== isFocused) return;
  if (!pointed || pointed.contains(event.relatedTarget) || card.contains(event.relatedTarget)) return;
  clearTimeout(timer);
  timer = setTimeout(hideCard, WAIT_MS); // so that the pointer can go over to the card
};
if (shown) {
  document.body.append(card);
  for (const kind of ["pointerover", "focusin"]) shown.addEventListener(kind, point);
  for (const kind of ["pointerout", "focusout"]) shown.addEventListener(kind, leave);
  card.addEventListener("pointerover", point);
  card.addEventListener("pointerout", leave);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideCard(); });
}

// --- the tree of pages: open on one page, it is open on the next one ----------------------------------------------

const tree = document.querySelector("details.tree");
const itemOf = (page) => {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = page.path;
  link.textContent = page.label;
  if (page.current) link.setAttribute("aria-current", "page");
  if (!page.there) { link.className = "missing"; link.rel = "nofollow"; }
  item.className = `level-${Math.min(page.depth + 1, 10)}`;
  item.append(link);
  return item;
};
const fill = async () => {
  const answer = await fetch(tree.dataset.tree, { headers: { Accept: "application/json" } });
  if (!answer.ok) return;
  const { pages, onward } = await answer.json();
  const list = document.createElement("ul");
  list.className = "tree-list";
  list.append(...pages.map(itemOf));
  const plain = tree.querySelector("p"); // the link to all of it
  if (onward) plain.before(list);
  else plain.replaceWith(list);
};
const remember = (isOpen) => {
  try {
    if (isOpen) localStorage.setItem("wikka-tree", "open");
    else localStorage.removeItem("wikka-tree");
  } catch { /* a browser that keeps nothing: the tree begins closed */ }
};
const wasOpen = () => {
  try {
    return localStorage.getItem("wikka-tree") === "open";
  } catch {
    return false;
  }
};
if (tree) {
  let asked = false;
  tree.addEventListener("toggle", () => {
    remember(tree.open);
    if (!tree.open || asked) return;
    asked = true;
    fill().catch(() => { asked = false; }); // the network is away: the link in its place works later
  });
  if (wasOpen()) tree.open = true;
}
