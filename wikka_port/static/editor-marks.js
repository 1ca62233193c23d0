// Markup as changes of a text, in Wikka's way and in Markdown's.  Knows nothing of the page: a text and a selection
// in, one change out: { from, to, insert, start, end }, where start and end are the selection after it; or null.
"use strict";
(() => {
  const { _ } = wikkaTexts;
  const WIKKA = {
    bold: "**", italic: "//", code: "##", strike: "++", // of what is pasted; editor-toggles has those of the keys
    fence: ["%%\n", "\n%%"],
    bullet: "~- ",
    number: () => "~1) ",
    rule: "----",
    link: /\[\[([^[\]|\n]*?)(?:\s*\|\s*([^[\]\n]*))?\]\]/g,
    toggles: wikkaEditor.togglesOf.wikka,
    // indent, then a bullet, a thread or a number; an indent alone is no item
    item: /^((?:~|\t| {4})+)(-(?!--)|&(?![#\w]+;)|(?:\d{1,9}|[A-Za-z]|[ivx]{2,8}|[IVX]{2,8})\))( ?)/,
    isNumber: /\)$/,
    unit: /^(?:~|\t| {4})/,
    deeper: () => "~",
    heading: /^ *(={2,6})(?!=)(.*?)=* *$/,
    headingLevel: (signs) => 7 - signs.length,
    headed: (level, words) => `${"=".repeat(7 - level)}${words}${"=".repeat(7 - level)}`,
    picture: (url, words) => `{{image url="${url.replaceAll('"', "%22")}" alt="${words.replaceAll('"', "”")}"}}`,
    away: (url, words) => `[[${url} | ${words}]]`,
    row: (cells, isHead) => cells.map((cell) => `${isHead ? "|=|" : "||"}${cell || " "}`).join("") + "||",
    underHead: () => [],
    cell: (text) => text.replaceAll("|", "&#124;").replace(/\s+/g, " ").trim(),
    name: (name) => name.replace(/[|\]]/g, (sign) => `&#${sign.charCodeAt(0)};`),
    // signs that would be marks, as they are
    plain: (text) => text.replace(/\*\*|__|##|''|\+\+|%%|\{\{|\[\[|\|\||<<|>>|==+|----*|@@|(?<!:)\/\/|""/g,
      (sign) => (sign === '""' ? "&quot;&quot;" : `""${sign}""`)),
    lineBreak: "\n",
    quoted: (text) => text.split("\n").map((line) => `~${line}`).join("\n"),
  };
  const MARKDOWN = {
    bold: "**", italic: "_", code: "`", strike: "~~",
    fence: ["```\n", "\n```"],
    bullet: "- ",
    number: (n) => `${n}. `,
    rule: "---",
    link: /\[\[([^[\]|\n]*?)(?:\s*\|\s*([^[\]\n]*))?\]\]|(?<!!)\[([^[\]\n]*)\]\((?:<[^<>\n]*>|[^()\s]*)\)/g,
    toggles: wikkaEditor.togglesOf.markdown,
    item: /^((?: {1,12}|\t)*(?:> ?)*)([-*+]|\d{1,9}[.)])( (?:\[[ xX]\] )?)/,
    isNumber: /[.)]$/,
    unit: /^(?:\t| {1,3})/,
    deeper: (mark) => " ".repeat(mark.length + 1),
    heading: /^ {0,3}(#{1,6}) +(.*?)(?: +#+)? *$/,
    headingLevel: (signs) => signs.length,
    headed: (level, words) => `${"#".repeat(level)} ${words}`,
    picture: (url, words) => `![${words.replace(/[[\]]/g, "\\$&")}](${bracketed(url)})`,
    away: (url, words) => `[${words.replace(/[[\]]/g, "\\$&")}](${bracketed(url)})`,
    row: (cells) => `| ${cells.map((cell) => cell || " ").join(" | ")} |`,
    underHead: (cells) => [`|${cells.map(() => " --- ").join("|")}|`],
    cell: (text) => text.replace(/\\?\|/g, "\\|").replace(/\s+/g, " ").trim(),
    name: (name) => name.replace(/[|\]]/g, (sign) => `&#${sign.charCodeAt(0)};`),
    plain: (text) => text.replace(/[\\`*[\]<]|(?<!\w)_|_(?!\w)|~~|\{\{/g, "\\$&"),
    lineBreak: "\\\n",
    quoted: (text) => text.split("\n").map((line) => `> ${line}`).join("\n"),
  };
  const URL_ONLY = /^(?:https?|ftp):\/\/\S+$/;

  function bracketed(url) {
    return /[()\s<>]/.test(url) ? `<${url.replace(/[\s<>]/g, encodeURIComponent)}>` : url;
  }
  const lineStart = (text, at) => text.lastIndexOf("\n", at - 1) + 1;
  const lineEnd = (text, at) => {
    const end = text.indexOf("\n", at);
    return end < 0 ? text.length : end;
  };
  const change = (from, to, insert, start, end = start) => ({ from, to, insert, start, end });

  /** Returns the whole lines of the selection; a selection that ends at a line's start does not include that line. */
  function linesOf(text, start, end) {
    const from = lineStart(text, start);
    const to = lineEnd(text, end > start && text[end - 1] === "\n" ? end - 1 : end);
    return { from, to, lines: text.slice(from, to).split("\n") };
  }

  function replacedLines(from, to, lines, text, start, end) {
    const insert = lines.join("\n");
    const grown = insert.length - (to - from);
    if (start !== end) return change(from, to, insert, from, to + grown);
    return change(from, to, insert, Math.max(from, Math.min(start + grown, from + insert.length)));
  }

  function heading(sort, text, start) {
    const { from, to, lines: [line] } = linesOf(text, start, start);
    const found = sort.heading.exec(line);
    const words = found ? found[2].trim() : line.trim();
    const level = found ? sort.headingLevel(found[1]) + 1 : 2;
    const made = level > 4 ? words : sort.headed(level, words);
    const before = level > 4 ? 0 : sort.headed(level, "\0").indexOf("\0");
    return change(from, to, made, from + before + words.length);
  }

  function list(sort, isNumbered, text, start, end) {
    const { from, to, lines } = linesOf(text, start, end);
    const items = lines.map((line) => sort.item.exec(line));
    const isSame = (item) => item && sort.isNumber.test(item[2]) === isNumbered;
    const filled = lines.length === 1 ? [0] : lines.map((line, n) => (line.trim() ? n : -1)).filter((n) => n >= 0);
    const takesAway = filled.length > 0 && filled.every((n) => isSame(items[n]));
    let number = 0;
    const made = lines.map((line, n) => {
      if (!filled.includes(n)) return line;
      const item = items[n];
      const words = item ? line.slice(item[0].length) : line.trimStart();
      if (takesAway) return words;
      number++;
      const mark = isNumbered ? sort.number(number) : sort.bullet;
      const depth = item ? item[1] : "";
      return sort === WIKKA && depth ? depth + mark.slice(1) + words : depth + mark + words;
    });
    return replacedLines(from, to, made, text, start, end);
  }

  /** Indents the lines one step, or back; null if a line is no item, or none can go back. */
  function indent(sort, isBack, text, start, end) {
    const { from, to, lines } = linesOf(text, start, end);
    const items = lines.map((line) => sort.item.exec(line));
    if (!items.every(Boolean)) return null;
    const made = lines.map((line, n) => {
      if (!isBack) return sort.deeper(items[n][2]) + line;
      const rest = line.replace(sort === MARKDOWN ? new RegExp(`^(?:\\t| {1,${items[n][2].length + 1}})`) : sort.unit, "");
      return sort.item.test(rest) ? rest : line;
    });
    return made.join("\n") === lines.join("\n") ? null : replacedLines(from, to, made, text, start, end);
  }

  /** Returns the effect of Enter in a list: the next item, or at an empty item the list's end; null elsewhere. */
  function enter(sort, text, start, end) {
    const from = lineStart(text, start);
    const line = text.slice(from, lineEnd(text, start));
    const item = sort.item.exec(line) ?? (sort === MARKDOWN ? /^((?:> ?)+)()()/.exec(line) : null);
    if (!item || start - from < item[0].length) return null;
    if (start === end && !line.slice(item[0].length).trim()) return change(from, from + line.length, "", from);
    const number = /^(\d+)(.)$/.exec(item[2]);
    const mark = sort === MARKDOWN && number ? `${Number(number[1]) + 1}${number[2]}` : item[2];
    const next = `\n${item[1]}${mark}${item[3].replace(/\[[xX]\]/, "[ ]")}`;
    return change(start, end, next, start + next.length);
  }

  /** ``block`` on lines of its own, with an empty line around it where Markdown needs one. */
  function own(sort, text, start, end, block, selectFrom, selectTo) {
    const gap = sort === MARKDOWN ? "\n\n" : "\n";
    const before = text.slice(Math.max(0, start - 2), start);
    const after = text.slice(end, end + 2);
    const head = start === 0 || before.endsWith(gap) || (gap.length === 1 && before.endsWith("\n")) ? ""
      : before.endsWith("\n") ? "\n" : gap;
    const tail = after === "" || after.startsWith("\n") ? "" : "\n";
    const at = start + head.length;
    return change(start, end, head + block + tail, at + selectFrom, at + selectTo);
  }

  function rows(sort, cells) {
    const width = Math.max(...cells.map((row) => row.length));
    const padded = cells.map((row) => [...row, ...Array(width - row.length).fill("")].map(sort.cell));
    return padded.flatMap((row, n) => (n ? [sort.row(row, false)] : [sort.row(row, true), ...sort.underHead(row)])).join("\n");
  }

  /** Lines with tabs, all with as many of them, as they come from a sheet; null for any other text. */
  function sheet(text) {
    const lines = text.replace(/\r\n?/g, "\n").replace(/\n+$/, "").split("\n");
    const width = lines[0].split("\t").length;
    if (width < 2 || lines.length < 2 || lines.length > 5_000) return null;
    if (lines.some((line) => line.startsWith("\t") || line.split("\t").length !== width)) return null;
    return lines.map((line) => line.split("\t"));
  }

  function table(sort, text, start, end) {
    const chosen = sheet(text.slice(start, end));
    if (chosen) {
      const made = rows(sort, chosen);
      return own(sort, text, start, end, made, 0, made.length);
    }
    const [head, cell] = [_("Head"), _("cell")];
    const made = rows(sort, [[head, head, head], [cell, cell, cell], [cell, cell, cell]]);
    const at = made.indexOf(head);
    return own(sort, text, end, end, made, at, at + head.length);
  }

  function code(sort, text, start, end) {
    const chosen = text.slice(start, end);
    const [open, close] = sort.fence;
    const isFenced = chosen.length >= open.length + close.length && chosen.startsWith(open) && chosen.endsWith(close);
    const from = isFenced ? start : start - open.length;
    const to = isFenced ? end : end + close.length;
    if (start !== end && text.startsWith(open, from) && text.slice(from, to).endsWith(close)) {
      const words = text.slice(from + open.length, to - close.length);
      return change(from, to, words, from, from + words.length);
    }
    if (!chosen.includes("\n")) return wikkaEditor.toggled(sort, "code", text, start, end);
    const body = chosen.replace(/\n$/, "");
    return own(sort, text, start, end, open + body + close, open.length, open.length + body.length);
  }

  /** A link around the selection becomes its words. */
  function unlinked(sort, text, start, end) {
    const from = lineStart(text, start);
    for (const found of text.slice(from, lineEnd(text, end)).matchAll(sort.link)) {
      const at = from + found.index;
      if (at > start || end > at + found[0].length || (start === end && (start === at || end === at + found[0].length))) continue;
      const words = found.slice(1).filter((part) => part !== undefined).at(-1);
      const isCaret = start === end;
      return change(at, at + found[0].length, words, isCaret ? at + words.length : at, at + words.length);
    }
    return null;
  }

  function link(sort, text, start, end) {
    const off = unlinked(sort, text, start, end);
    if (off) return off;
    const chosen = text.slice(start, end).trim();
    if (chosen.includes("\n")) return null;
    if (URL_ONLY.test(chosen)) {
      const words = _("words");
      const made = sort.away(chosen, words);
      const at = start + (sort === WIKKA ? made.length - words.length - 2 : 1);
      return change(start, end, made, at, at + words.length);
    }
    return change(start, end, `[[${chosen}]]`, start + 2 + chosen.length);
  }

  /** An address pasted upon words makes them a link; null where there are no words, or it is no address. */
  function linked(sort, text, start, end, pasted) {
    const words = text.slice(start, end).trim();
    if (!words || !URL_ONLY.test(pasted) || /[\n[\]|]/.test(words) || URL_ONLY.test(words)) return null;
    const made = sort.away(pasted, words);
    return change(start, end, made, start + made.length);
  }

  const bound = (sort) => ({
    sort,
    bold: (...given) => wikkaEditor.toggled(sort, "bold", ...given),
    italic: (...given) => wikkaEditor.toggled(sort, "italic", ...given),
    code: (...given) => code(sort, ...given),
    heading: (text, start) => heading(sort, text, start),
    bullets: (...given) => list(sort, false, ...given),
    numbers: (...given) => list(sort, true, ...given),
    indent: (isBack, ...given) => indent(sort, isBack, ...given),
    enter: (...given) => enter(sort, ...given),
    table: (...given) => table(sort, ...given),
    link: (...given) => link(sort, ...given),
    linked: (...given) => linked(sort, ...given),
    rows: (cells) => rows(sort, cells),
    picture: (url, words) => sort.picture(url, words),
  });
  wikkaEditor.marks = { wikka: bound(WIKKA), markdown: bound(MARKDOWN), sheet };
})();
