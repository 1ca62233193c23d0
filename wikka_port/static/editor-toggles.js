// Bold, italic and code put on and taken off.  Knows nothing of the page: a text and a selection in, one change out
// (editor-marks).  Invariants, for each mark:
//   I1. The same key twice gives back the text, if the first neither took marks off nor joined two spans.
//   I2. Without a selection none is made: the next key deletes nothing.
//   I3. Key, word, key leaves the caret behind the closing mark; the key once more, before it again.
//   I4. Signs that make a line an item or a heading stay before the marks.
"use strict";
globalThis.wikkaEditor = {};
(() => {
  const PARAGRAPH_MAX = 20_000; // characters around the selection that are looked at
  const isWord = (sign) => /[\p{L}\p{N}]/u.test(sign ?? "");
  const change = (from, to, insert, start, end = start) => ({ from, to, insert, start, end });

  /** The paragraph around the selection: [from, to]. */
  function paragraph(text, start, end) {
    const from = text.lastIndexOf("\n\n", start - 1);
    const to = text.indexOf("\n\n", end);
    return [Math.max(from < 0 ? 0 : from + 2, start - PARAGRAPH_MAX), Math.min(to < 0 ? text.length : to, end + PARAGRAPH_MAX)];
  }

  /** The marks of the kind from ``from`` to ``to``: [{ at, mark }]. */
  function marksOf(sort, what, text, from, to) {
    const found = [];
    const part = text.slice(from, to);
    for (const { 0: sign, index } of part.matchAll(sort.toggles.signs)) {
      for (const { at, mark } of sort.toggles.read(what, sign, part[index - 1], part[index + sign.length])) {
        found.push({ at: from + index + at, mark });
      }
    }
    return found;
  }

  /** The spans of the kind around and in the selection: [{ open, from, to, close, mark }], text from ``from`` to ``to``. */
  function spansOf(sort, what, text, start, end) {
    const [first, last] = paragraph(text, start, end);
    const spans = [];
    let open = null;
    for (const one of marksOf(sort, what, text, first, last)) {
      if (!open || open.mark !== one.mark) { open = one; continue; }
      const { mark, at } = open;
      spans.push({ open: at, from: at + mark.length, to: one.at, close: one.at + mark.length, mark });
      open = null;
    }
    return spans;
  }

  /** The text from ``from`` to ``to`` without the marks of the spans in it. */
  function stripped(spans, text, from, to) {
    const cuts = spans.flatMap((span) => [[span.open, span.from], [span.to, span.close]]).filter(([a, b]) => a >= from && b <= to);
    let made = "";
    let at = from;
    for (const [a, b] of cuts) { made += text.slice(at, a); at = b; }
    return made + text.slice(at, to);
  }

  /** The caret; where it is between two signs of one mark, the place before that mark. */
  function beforeMark(sort, text, at) {
    for (const what of Object.keys(sort.toggles.marks)) {
      for (const { open, from, to, close } of spansOf(sort, what, text, at, at)) {
        if (open < at && at < from) return open;
        if (to < at && at < close) return to;
      }
    }
    return at;
  }

  /** The mark that stands on both sides of the caret with nothing between; undefined: none does. */
  function emptyAt(sort, what, text, at, spans) {
    if (spans.some(({ open, close }) => at === open || at === close)) return undefined;
    return sort.toggles.marks[what].find((mark) => text.slice(at - mark.length, at + mark.length) === mark + mark
      && text[at - mark.length - 1] !== mark[0] && text[at + mark.length] !== mark[0]);
  }

  /** The pair of the kind around the caret with nothing but other such pairs in it; undefined: there is none. */
  function emptyAround(sort, what, text, caret) {
    let [from, to] = [caret, caret];
    for (;;) {
      const bare = text.slice(0, from) + text.slice(to);
      const pairs = Object.keys(sort.toggles.marks).map((kind) => [kind, emptyAt(sort, kind, bare, from, spansOf(sort, kind, bare, from, from))]);
      const [kind, mark] = pairs.find(([, found]) => found) ?? [];
      if (!mark) return undefined;
      if (kind === what) return change(from - mark.length, to + mark.length, text.slice(from, to), caret - mark.length);
      from -= mark.length;
      to += mark.length;
    }
  }

  /** The mark on both sides of the words that is no span there, as in code: a key has put it, and takes it off. */
  function literalAround(sort, what, text, from, to, spans) {
    if (spans.some(({ open, close }) => close === from || open === to)) return undefined;
    return sort.toggles.marks[what].find((mark) => {
      const [before, behind] = [text[from - mark.length - 1], text[to + mark.length]];
      return text.slice(from - mark.length, from) === mark && text.slice(to, to + mark.length) === mark
        && before !== mark[0] && behind !== mark[0] && !(mark[0] === "_" && (isWord(before) || isWord(behind)));
    });
  }

  function atCaret(sort, what, text, caret) {
    const empty = emptyAround(sort, what, text, caret);
    if (empty) return empty;
    const at = beforeMark(sort, text, caret);
    const spans = spansOf(sort, what, text, at, at);
    for (const { open, from, to, close } of spans) {
      if (at === to) return change(at, at, "", close);
      if (at === close) return change(at, at, "", to);
      if (at === from || at === open) return change(at, at, "", at === from ? open : from);
    }
    const span = spans.find(({ from, to }) => from < at && at < to);
    const others = span ? text.slice(at, span.to).match(sort.toggles.closing) ?? [] : [];
    if (others.length && others.join("") === text.slice(at, span.to) && text.slice(span.from, at) !== others.toReversed().join("")) {
      // Only the others close before it: they go on behind it.
      const opened = others.toReversed().join("");
      return change(span.close, span.close, opened + others.join(""), span.close + opened.length);
    }
    if (span) return change(span.open, span.close, text.slice(span.from, span.to), at - span.mark.length);
    let [from, to] = [at, at];
    const isIn = (n) => isWord(text[n]) || (text[n] === "_" && isWord(text[n - 1]) && isWord(text[n + 1]));
    if (isIn(at - 1) && isIn(at)) {
      while (isIn(from - 1)) from--;
      while (isIn(to)) to++;
    }
    if (from === to) {
      const mark = sort.toggles.mark(what, text[at - 1], text[at]);
      return change(at, at, mark + mark, at + mark.length);
    }
    const around = spansOf(sort, what, text, from, to);
    const literal = literalAround(sort, what, text, from, to, around);
    if (literal) return change(from - literal.length, to + literal.length, text.slice(from, to), at - literal.length);
    const { first, last, mark, words } = joined(sort, what, around, text, from, to);
    return change(first, last, mark + words + mark, first + mark.length + stripped(spans, text, first, at).length);
  }

  /** The words with those of all spans that they touch, to be marked as one. */
  function joined(sort, what, spans, text, from, to) {
    let [first, last] = [from, to];
    for (const span of spans) {
      if (span.open < first && first <= span.close) first = span.open;
      if (span.open <= last && last < span.close) last = span.close;
    }
    return { first, last, words: stripped(spans, text, first, last), mark: sort.toggles.mark(what, text[first - 1], text[last]) };
  }

  function overWords(sort, what, text, start, end) {
    const spans = spansOf(sort, what, text, start, end);
    const whole = spans.find(({ open, from, to, close }) => (start === open || start === from) && (end === close || end === to));
    if (whole) {
      const { open, from, to, close } = whole;
      return change(open, close, text.slice(from, to), open, open + to - from);
    }
    const around = spans.find(({ from, to }) => from <= start && end <= to);
    if (around) return without(around, text, start, end);
    const literal = literalAround(sort, what, text, start, end, spans);
    if (literal) {
      return change(start - literal.length, end + literal.length, text.slice(start, end), start - literal.length, end - literal.length);
    }
    const { first, last, mark, words } = joined(sort, what, spans, text, start, end);
    return change(first, last, mark + words + mark, first + mark.length, first + mark.length + words.length);
  }

  /** A part of a span is taken out of it: the marks end before it and begin again behind it. */
  function without({ open, from, to, close, mark }, text, start, end) {
    const side = (part) => {
      const words = part.trim();
      const at = part.indexOf(words);
      return words ? part.slice(0, at) + mark + words + mark + part.slice(at + words.length) : part;
    };
    const before = side(text.slice(from, start));
    const chosen = text.slice(start, end);
    const at = open + before.length;
    return change(open, close, before + chosen + side(text.slice(end, to)), at, at + chosen.length);
  }

  /** A line: what makes it an item or a heading, and its words. */
  function partsOf(sort, line) {
    const heading = sort.heading.exec(line);
    if (heading?.[2].trim()) {
      const words = heading[2].trim();
      return { head: line.slice(0, line.indexOf(words, line.indexOf(heading[1]) + heading[1].length)), words };
    }
    const head = sort.item.exec(line)?.[0] ?? /^\s*/.exec(line)[0];
    return { head, words: line.slice(head.length).trimEnd() };
  }

  /** The part of the selection that is words of its line, where it begins before them. */
  function wordsOf(sort, text, start, end) {
    const from = text.lastIndexOf("\n", start - 1) + 1;
    const to = text.indexOf("\n", start);
    const { head, words } = partsOf(sort, text.slice(from, to < 0 ? text.length : to));
    const first = from + head.length;
    return start < first && first < end ? [first, Math.min(end, first + words.length)] : [start, end];
  }

  /** Each line by itself, behind the mark of its item; off where all of them are on. */
  function overLines(sort, what, text, start, end) {
    const lines = text.slice(start, end).split("\n").map((line) => {
      const { head, words } = partsOf(sort, line);
      const spans = spansOf(sort, what, words, 0, words.length);
      const isOn = spans.length === 1 && spans[0].open === 0 && spans[0].close === words.length;
      return { head, words, isOn, plain: stripped(spans, words, 0, words.length), tail: line.slice(head.length + words.length) };
    });
    const isOff = lines.every(({ words, isOn }) => !words || isOn);
    const made = lines.map(({ head, words, plain, tail }) => {
      const mark = words && !isOff ? sort.toggles.mark(what) : "";
      return head + mark + plain + mark + tail;
    }).join("\n");
    return change(start, end, made, start, start + made.length);
  }

  wikkaEditor.toggled = (sort, what, text, start, end) => {
    if (start === end) return atCaret(sort, what, text, start);
    const chosen = text.slice(start, end);
    if (!chosen.trim()) return null;
    const from = start + chosen.length - chosen.trimStart().length;
    const to = end - (chosen.length - chosen.trimEnd().length);
    if (text.slice(from, to).includes("\n")) return overLines(sort, what, text, from, to);
    return overWords(sort, what, text, ...wordsOf(sort, text, from, to));
  };

  // Signs that may be marks, how a run of them is read, and which are put.
  wikkaEditor.togglesOf = {
    wikka: {
      signs: /""(?:[^"]|"(?!"))*""|%%[^]*?%%|\*\*|\/\/|##/g,
      closing: /\*\*|\/\/|##/g,
      marks: { bold: ["**"], italic: ["//"], code: ["##"] },
      read: (what, sign, before) => {
        const mark = { bold: "**", italic: "//", code: "##" }[what];
        return sign === mark && !(sign === "//" && before === ":") ? [{ at: 0, mark }] : [];
      },
      mark: (what) => ({ bold: "**", italic: "//", code: "##" }[what]),
    },
    markdown: {
      signs: /\\[^]|(`+)(?!`)[^]*?(?<!`)\1(?!`)|\*+|_+|`+/g,
      closing: /\*\*|__|[*_`]/g,
      marks: { bold: ["**", "__"], italic: ["_", "*"], code: ["`"] },
      read: (what, sign, before, behind) => {
        if (sign[0] === "`") {
          const isSpan = what === "code" && /^`[^`]+`$/.test(sign);
          return isSpan ? [{ at: 0, mark: "`" }, { at: sign.length - 1, mark: "`" }] : [];
        }
        if (sign[0] === "\\" || sign.length > 3 || (sign[0] === "_" && isWord(before) && isWord(behind))) return [];
        if (sign.length < 3) return what === (sign.length === 2 ? "bold" : "italic") ? [{ at: 0, mark: sign }] : [];
        const isOpening = !before || /\s/.test(before); // "***both***": bold is outside
        if (what === "bold") return [{ at: isOpening ? 0 : 1, mark: sign.slice(1) }];
        return what === "italic" ? [{ at: isOpening ? 2 : 0, mark: sign[0] }] : [];
      },
      mark: (what, before, behind) => (what === "italic" ? (/[\p{L}\p{N}_]/u.test((before ?? "") + (behind ?? "")) ? "*" : "_")
        : what === "bold" ? "**" : "`"),
    },
  };
})();
