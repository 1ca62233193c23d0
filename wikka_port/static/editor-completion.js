// Names of pages behind "[[", actions behind "{{": a list beside the text, which keeps the focus.
"use strict";
(() => {
  const { _, _n } = wikkaTexts;
  const PAUSE_MS = 80;
  const LOOKED_AT_MAX = 50_000; // characters of a text that is checked at each key; in a longer one only at "[" and "{"
  const LOOK_BACK = 300; // characters of the line before the caret
  const MIRRORED_MAX = 60_000; // characters laid out again to find the caret; in a longer text the list is at the edge
  const COPIED = ["boxSizing", "fontFamily", "fontSize", "fontWeight", "letterSpacing", "lineHeight", "paddingTop",
    "paddingRight", "paddingBottom", "paddingLeft", "borderTopWidth", "borderRightWidth", "borderLeftWidth", "tabSize"];

  /** Returns the caret's place in the visible field, { left, top, height }; null in a very long text. */
  function caretPlace(area, at) {
    if (at > MIRRORED_MAX) return null;
    const mirror = document.createElement("div");
    const mark = document.createElement("span");
    const style = getComputedStyle(area);
    for (const name of COPIED) mirror.style[name] = style[name];
    mirror.className = "caret-mirror";
    mirror.style.width = `${area.clientWidth}px`;
    mirror.textContent = area.value.slice(0, at);
    mark.textContent = "\u200b";
    mirror.append(mark);
    area.parentNode.append(mirror);
    const place = { left: mark.offsetLeft, top: mark.offsetTop - area.scrollTop, height: mark.offsetHeight };
    mirror.remove();
    return place;
  }

  wikkaEditor.Completion = class {
    /** ``apply(change)`` changes the text; ``marks()`` is the page's markup. */
    constructor(area, apply, marks, signal) {
      Object.assign(this, { area, apply, marks, asked: 0, chosen: -1, options: [], actions: null, pause: 0, dismissed: -1,
        size: area.value.length, isWithin: false });
      this.list = document.createElement("ul");
      this.list.id = "completions";
      this.list.className = "completions";
      this.list.setAttribute("role", "listbox");
      this.list.hidden = true;
      this.said = document.createElement("p");
      this.said.className = "hidden";
      this.said.setAttribute("role", "status");
      area.parentNode.append(this.list, this.said);
      area.setAttribute("aria-autocomplete", "list");
      area.setAttribute("aria-haspopup", "listbox");
      area.addEventListener("blur", () => this.close(), { signal });
      area.addEventListener("scroll", () => { if (this.isOpen()) this.close(); }, { signal });
      this.list.addEventListener("pointerdown", (event) => event.preventDefault(), { signal }); // the field keeps the focus
      this.list.addEventListener("click", (event) => {
        const option = event.target.closest("[role=option]");
        if (option) this.accept([...this.list.children].indexOf(option));
      }, { signal });
    }

    isOpen() { return !this.list.hidden; }

    /** Returns the unfinished link or action at the caret, { sort, typed, from, to }, or null. */
    context() {
      const { value, selectionStart: at, selectionEnd } = this.area;
      if (at !== selectionEnd) return null;
      const line = value.slice(Math.max(value.lastIndexOf("\n", at - 1) + 1, at - LOOK_BACK), at);
      const found = /(\[\[)([^[\]|{}]{0,255})$/.exec(line) ?? /(\{\{)([A-Za-z0-9]{0,40})$/.exec(line);
      if (!found) return null;
      const closing = found[1] === "[[" ? "]]" : "}}";
      return { sort: found[1], typed: found[2], from: at - found[2].length, to: at,
        isClosed: value.startsWith(closing, at), closing };
    }

    /** ``data`` is the typed text.  Reading the field's value costs time, since the browser joins the whole text. */
    typed(data) {
      clearTimeout(this.pause);
      const turn = ++this.asked;
      if (this.size > LOOKED_AT_MAX && !this.isWithin && !/[[{]/.test(data ?? "")) return;
      const context = this.context();
      this.isWithin = context !== null;
      this.size = this.area.value.length;
      if (!context || context.from === this.dismissed) {
        if (!context) this.dismissed = -1;
        this.close();
        return;
      }
      this.pause = setTimeout(() => this.ask(context, turn), context.sort === "{{" ? 0 : PAUSE_MS);
    }

    async ask(context, turn) {
      let options = [];
      try {
        options = context.sort === "{{" ? await this.actionsFor(context.typed) : await this.namesFor(context.typed);
      } catch {
        options = []; // the network is unavailable: the field works without the list
      }
      if (turn === this.asked && document.activeElement === this.area) this.show(context, options);
    }

    async namesFor(typed) {
      if (!typed.trim()) return [];
      const answer = await fetch(`/-/suggest?q=${encodeURIComponent(typed.trim())}`, { headers: { Accept: "application/json" } });
      const names = answer.ok ? await answer.json() : [];
      return names.map((one) => ({ shown: one.name, put: this.marks().sort.name(one.name), more: "" }));
    }

    async actionsFor(typed) {
      if (!this.actions) {
        const answer = await fetch("/-/actions", { headers: { Accept: "application/json" } });
        if (!answer.ok) return [];
        this.actions = await answer.json();
      }
      return this.actions.filter((one) => one.name.toLowerCase().startsWith(typed.toLowerCase())).map((one) => (
        { shown: one.name, put: one.name, more: one.attributes.join(", "), takes: one.attributes.length > 0 }));
    }

    show(context, options) {
      if (!options.length) { this.close(); return; }
      const kept = this.isOpen() && this.chosen > 0 ? this.options[this.chosen].put : ""; // an answer may come behind the choice
      Object.assign(this, { at: context, options });
      this.list.setAttribute("aria-label", context.sort === "[[" ? _("Pages") : _("Actions"));
      this.list.replaceChildren(...options.map((one, n) => {
        const option = document.createElement("li");
        option.id = `completion-${n}`;
        option.setAttribute("role", "option");
        option.textContent = one.shown;
        if (one.more) {
          const more = document.createElement("small");
          more.textContent = ` ${one.more}`;
          option.append(more);
        }
        return option;
      }));
      if (!this.isOpen()) this.place(context.from);
      this.list.hidden = false;
      this.area.setAttribute("aria-controls", this.list.id);
      this.said.textContent = _n("{n} suggestion", "{n} suggestions", options.length);
      this.choose(Math.max(0, options.findIndex((one) => one.put === kept)));
    }

    place(from) {
      const { area, list } = this;
      const caret = area.clientWidth < 480 ? null : caretPlace(area, from);
      list.classList.toggle("docked", !caret);
      if (!caret) return;
      const above = caret.top > area.clientHeight * 0.6;
      list.style.left = `${Math.max(4, Math.min(caret.left, area.clientWidth - 300))}px`;
      list.style.top = above ? "auto" : `${area.offsetTop + caret.top + caret.height + 4}px`;
      list.style.bottom = above ? `${area.parentNode.clientHeight - area.offsetTop - caret.top + 4}px` : "auto";
    }

    close() {
      this.list.hidden = true;
      this.list.replaceChildren();
      this.chosen = -1;
      this.said.textContent = "";
      this.area.removeAttribute("aria-activedescendant");
      this.area.removeAttribute("aria-controls");
    }

    choose(at) {
      this.chosen = (at + this.options.length) % this.options.length;
      [...this.list.children].forEach((option, n) => option.setAttribute("aria-selected", String(n === this.chosen)));
      const option = this.list.children[this.chosen];
      option.scrollIntoView({ block: "nearest" });
      this.area.setAttribute("aria-activedescendant", option.id);
    }

    /** Puts option n in the place of what is typed by now, which may be more than when the list was made. */
    accept(n) {
      const { at: { from, closing }, options } = this;
      const now = this.context();
      const fits = (one) => one.shown.toLowerCase().includes(now.typed.trim().toLowerCase());
      const one = now?.from !== from ? null
        : now.typed === this.at.typed || fits(options[n]) ? options[n] : options.find(fits);
      if (!one) { this.close(); return; }
      const { to, isClosed } = now;
      const behind = from + one.put.length + (one.takes ? 0 : closing.length);
      this.asked++;
      this.close();
      this.apply({ from, to: isClosed ? to + closing.length : to, insert: one.put + closing, start: behind, end: behind });
      this.close(); // the change was an input, too
      this.asked++;
      clearTimeout(this.pause);
    }

    /** Returns true if the list has handled the key. */
    key(event) {
      if (!this.isOpen() || event.ctrlKey || event.metaKey || event.altKey) return false;
      if (event.key === "ArrowDown") this.choose(this.chosen + 1);
      else if (event.key === "ArrowUp") this.choose(this.chosen - 1);
      else if (event.key === "Escape") { this.dismissed = this.at.from; this.asked++; this.close(); }
      else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey) this.accept(this.chosen);
      else {
        if (["ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown"].includes(event.key)) this.close();
        return false;
      }
      event.preventDefault();
      return true;
    }
  };
})();
