// Rich text as markup.  The HTML is parsed into a document of its own, where nothing runs and nothing is fetched;
// words, and addresses that begin with http: or https:, are all that is taken from it.
"use strict";
(() => {
  const HTML_CHARS_MAX = 2_000_000;
  const DEPTH_MAX = 100;
  const CELLS_MAX = 10_000;
  const LEFT_OUT = new Set(["SCRIPT", "STYLE", "HEAD", "META", "LINK", "TITLE", "NOSCRIPT", "TEMPLATE", "IFRAME", "OBJECT",
    "EMBED", "SVG", "MATH", "BUTTON", "INPUT", "SELECT", "TEXTAREA", "AUDIO", "VIDEO", "CANVAS"]);
  const BLOCKS = new Set(["P", "DIV", "SECTION", "ARTICLE", "MAIN", "HEADER", "FOOTER", "ASIDE", "NAV", "FIGURE", "FIGCAPTION",
    "ADDRESS", "DL", "DT", "DD", "FORM", "FIELDSET", "DETAILS", "SUMMARY", "CENTER", "BODY", "BLOCKQUOTE", "PRE", "HR",
    "H1", "H2", "H3", "H4", "H5", "H6", "UL", "OL", "LI", "TABLE"]);
  const policy = globalThis.trustedTypes?.createPolicy("wikka-editor", { createHTML: (html) => html });

  /** A document of ``html``: no script of it runs, no picture of it is fetched. */
  wikkaEditor.parsed = (html) => new DOMParser().parseFromString(policy ? policy.createHTML(html) : html, "text/html");

  /** ``html`` without styles and handlers: the page's policy would refuse them aloud.  What styles say is kept aside. */
  const inert = (html) => html.replace(/<style\b[^]*?(?:<\/style\s*>|$)/gi, "")
    .replace(/<[a-z][^<>]*>/gi, (tag) => tag.replace(/([\s/"'])(style|on\w+)(?=\s*=)/gi, "$1data-$2"));

  const styleOf = (node, name) => new RegExp(`(?:^|;)\\s*${name}\\s*:\\s*([\\w-]+)`, "i").exec(node.dataset?.style ?? "")?.[1].toLowerCase() ?? "";

  function away(node, attribute) {
    const typed = (node.getAttribute(attribute) ?? "").trim();
    return /^https?:\/\//i.test(typed) ? typed.replace(/[\s"<>|[\]{}\\^`]/g, encodeURIComponent) : "";
  }

  class Writer {
    constructor(sort) {
      this.sort = sort;
      this.marks = 0; // that plain text would lose
    }

    isMarkdown() { return this.sort.lineBreak !== "\n"; }

    /** Words of a line; ``line`` is how a break in it is written. */
    words(node, line, depth, styles = {}) {
      let made = "";
      for (const child of node.childNodes) {
        if (child.nodeType === Node.TEXT_NODE) made += this.sort.plain(child.data.replace(/[\s\u00a0]+/g, " "));
        else if (child.nodeType === Node.ELEMENT_NODE) made += this.inline(child, line, depth + 1, styles);
      }
      return made;
    }

    inline(node, line, depth, styles) {
      const tag = node.tagName.toUpperCase();
      if (LEFT_OUT.has(tag) || depth > DEPTH_MAX || node.hidden) return "";
      if (tag === "BR") return line;
      if (tag === "IMG") {
        const url = away(node, "src");
        const words = (node.getAttribute("alt") ?? "").replace(/\s+/g, " ").trim();
        if (url) this.marks++;
        return url ? this.sort.picture(url, words) : this.sort.plain(words);
      }
      if (["CODE", "TT", "KBD", "SAMP"].includes(tag)) {
        const said = node.textContent.replace(/\s+/g, " ").trim();
        if (!said || said.includes(this.sort.code)) return this.sort.plain(said);
        this.marks++;
        return this.sort.code + said + this.sort.code;
      }
      const weight = styleOf(node, "font-weight");
      const slant = styleOf(node, "font-style");
      const isBold = weight ? weight === "bold" || Number(weight) >= 600 : ["B", "STRONG"].includes(tag);
      const isItalic = slant ? slant === "italic" : ["I", "EM", "CITE", "VAR"].includes(tag);
      const isStruck = ["S", "DEL", "STRIKE"].includes(tag);
      const own = { bold: isBold && !styles.bold, italic: isItalic && !styles.italic, strike: isStruck && !styles.strike };
      let said = this.words(node, line, depth, { bold: styles.bold || isBold, italic: styles.italic || isItalic,
        strike: styles.strike || isStruck });
      if (tag === "A" && away(node, "href") && said.trim()) {
        this.marks++;
        const url = away(node, "href");
        const shown = said.replace(/\s+/g, " ").trim();
        said = node.textContent.trim() === url ? ` ${url} ` : this.sort.away(url, shown.replace(/\|/g, "&#124;"));
      }
      for (const name of ["strike", "italic", "bold"]) {
        if (own[name] && said.trim()) said = this.around(said, this.sort[name]);
      }
      return said;
    }

    around(said, mark) {
      this.marks++;
      const [, before, words, after] = /^(\s*)([^]*?)(\s*)$/.exec(said);
      return before + mark + words + mark + after;
    }

    /** Blocks of ``node``, one text each. */
    blocks(node, depth) {
      const made = [];
      const own = node.ownerDocument; // in the page's own document a picture would be fetched
      let line = own.createElement("span");
      const end = () => {
        const words = this.tidy(this.words(line, this.sort.lineBreak, depth));
        if (words) made.push(words);
        line = own.createElement("span");
      };
      for (const child of [...node.childNodes]) {
        const tag = child.nodeType === Node.ELEMENT_NODE ? child.tagName.toUpperCase() : "";
        if (!tag || !(BLOCKS.has(tag) || child.querySelector?.([...BLOCKS].join(",")))) {
          line.append(child);
          continue;
        }
        end();
        if (!LEFT_OUT.has(tag) && !child.hidden && depth < DEPTH_MAX) made.push(...this.block(child, tag, depth + 1));
      }
      end();
      return made;
    }

    tidy(words) {
      const lines = words.split("\n").map((one) => one.replace(/ {2,}/g, " ").trim());
      const fit = this.isMarkdown() ? lines.map((one) => one.replace(/^([#>]|[-+*](?= )|\d+(?=[.)] ))/, "\\$1"))
        : lines.map((one) => one.replace(/^~/, '""~""'));
      return fit.join("\n").trim();
    }

    block(node, tag, depth) {
      if (/^H[1-6]$/.test(tag)) {
        const words = this.tidy(this.words(node, " ", depth)).replaceAll("\n", " ");
        this.marks++;
        return words ? [this.sort.headed(Math.min(Number(tag[1]), 5), words)] : [];
      }
      if (tag === "PRE") {
        const [open, close] = this.sort.fence;
        this.marks++;
        const said = node.textContent.replace(/\n$/, "");
        return said.includes(close.trim()) ? [this.sort.plain(said)] : [open + said + close];
      }
      if (tag === "HR") { this.marks++; return [this.sort.rule]; }
      if (tag === "UL" || tag === "OL") return [this.list(node, tag === "OL", [], depth).join("\n")].filter(Boolean);
      if (tag === "TABLE") return this.table(node, depth);
      if (tag === "BLOCKQUOTE") {
        this.marks++;
        return this.blocks(node, depth).map((one) => this.sort.quoted(one));
      }
      return this.blocks(node, depth);
    }

    list(node, isNumbered, above, depth) {
      const made = [];
      let number = 0;
      for (const item of node.children) {
        const tag = item.tagName.toUpperCase();
        if (depth > DEPTH_MAX || LEFT_OUT.has(tag)) continue;
        const inner = [...above, isNumbered ? "  " : " "];
        if (tag === "UL" || tag === "OL") { made.push(...this.list(item, tag === "OL", inner, depth + 1)); continue; }
        const within = [...item.querySelectorAll(":scope > ul, :scope > ol")];
        within.forEach((one) => one.remove());
        const words = this.blocks(item, depth + 1).join(" ").replace(/\\?\n/g, " ");
        this.marks++;
        number++;
        if (words) made.push(this.indented(isNumbered ? this.sort.number(number) : this.sort.bullet, above) + words);
        for (const one of within) made.push(...this.list(one, one.tagName === "OL", inner, depth + 1));
      }
      return made;
    }

    indented(mark, above) {
      return this.isMarkdown() ? above.map((one) => one + " ").join("") + mark : "~".repeat(above.length) + mark;
    }

    table(node, depth) {
      const rows = [...node.rows].filter((row) => row.cells.length);
      const width = Math.max(0, ...rows.map((row) => row.cells.length));
      if (width < 2 || rows.length * width > CELLS_MAX) return rows.flatMap((row) => [...row.cells].flatMap((one) => this.blocks(one, depth)));
      this.marks++;
      const cells = rows.map((row) => [...row.cells].flatMap((cell) => {
        const words = this.words(cell, " ", depth).replace(/\s+/g, " ").trim();
        return [words, ...Array(Math.min(cell.colSpan, width) - 1).fill("")];
      }));
      const isHeaded = this.isMarkdown() || [...rows[0].cells].every((one) => one.tagName === "TH") || rows[0].parentNode.tagName === "THEAD";
      const fit = cells.map((row) => row.map((cell) => (this.isMarkdown() ? this.sort.cell(cell) : cell)));
      const most = Math.max(...fit.map((row) => row.length));
      fit.forEach((row) => row.push(...Array(most - row.length).fill("")));
      return [fit.flatMap((row, n) => (n || !isHeaded ? [this.sort.row(row, false)]
        : [this.sort.row(row, true), ...this.sort.underHead(row)])).join("\n")];
    }
  }

  /** ``html`` as markup; "" where it has nothing that plain text would lose. */
  wikkaEditor.fromHtml = (html, marks) => {
    if (html.length > HTML_CHARS_MAX) return "";
    const writer = new Writer(marks.sort);
    const made = writer.blocks(wikkaEditor.parsed(inert(html)).body, 0).filter((one) => one.trim());
    return writer.marks ? made.join("\n\n") : "";
  };
})();
