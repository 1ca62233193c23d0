// The editor's page comes to life here; everything but completion and the live preview works without it.
//
//   editor-toggles    bold, italic and code, on and off
//   editor-marks      markup as changes of a text          editor-completion   names behind "[[" and "{{"
//   editor-paste      rich text as markup                  editor-preview      the page beside the text
//   editor-files      files pasted, dropped and chosen
//   editor-copies     texts kept in this browser           editor-drafts       texts kept in the wiki
//   editor-toolbar    buttons and keys                     editor-returning    copies offered on return
"use strict";
(() => {
  const { _ } = wikkaTexts;
  /** The format that the text is written in: the form says it, or it is the chosen one. */
  wikkaEditor.formatOf = (form) => {
    const said = form.elements.namedItem("written")?.value || form.elements.namedItem("format")?.value;
    return said === "markdown" ? "markdown" : "wikka";
  };
  wikkaEditor.tokenRenewed = (form, said) => { form.elements.namedItem("csrf").value = said.token; };

  /** A change of the text that Ctrl+Z takes back; browsers have no other way to make one. */
  function applyTo(area, change) {
    area.focus();
    area.setSelectionRange(change.from, change.to);
    const isDone = change.insert ? document.execCommand("insertText", false, change.insert)
      : change.from === change.to || document.execCommand("delete");
    if (!isDone) {
      area.setRangeText(change.insert, change.from, change.to, "end");
      area.dispatchEvent(new InputEvent("input", { bubbles: true }));
    }
    area.setSelectionRange(change.start, change.end);
  }

  class Editor {
    constructor(form) {
      const area = form.elements.namedItem("body");
      const stop = new AbortController();
      Object.assign(this, { form, area, stop, signal: stop.signal, isLeaving: false, mayLeaveField: false, isPlainPaste: false });
      // Behind a refused save, or a preview without this script, the text in the form is nowhere else.
      this.isUnsaved = document.querySelector(".preview, .banner.problem") !== null || area.value !== area.defaultValue;
      this.build();
      this.drafts = new wikkaEditor.Drafts(form, area, (text, sort) => this.say(text, sort), (list) => this.showOthers(list), this.signal);
      this.completion = new wikkaEditor.Completion(area, (change) => this.apply(change), () => this.marks(), this.signal);
      this.preview = new wikkaEditor.Preview(form, area, this.panes, this.signal);
      this.pressed("preview", this.preview.isOn);
      this.speak();
      this.listen();
      wikkaEditor.offerCopies(form, area, (copy) => this.goOnWith(copy));
      if (this.isUnsaved) this.drafts.confirmed = null;
      if (!this.drafts.isKept()) this.drafts.typed();
    }

    /** The language and the direction of the text, in the field and in the preview. */
    speak() {
      const chosen = this.form.elements.namedItem("language")?.selectedOptions[0];
      const { lang, dir } = chosen ? { lang: chosen.value, dir: chosen.dir } : this.area; // none is chosen for a suggestion
      for (const one of chosen ? [this.area, this.preview.article] : [this.preview.article]) {
        if (lang) Object.assign(one, { lang });
        Object.assign(one, { dir });
      }
    }

    marks() { return wikkaEditor.marks[wikkaEditor.formatOf(this.form)]; }

    build() {
      const { form, area } = this;
      this.bar = wikkaEditor.toolbar(area, (what) => this.use(what), this.signal);
      const box = document.createElement("div");
      box.className = "writing";
      this.panes = document.createElement("div");
      this.panes.className = "panes";
      const pane = document.createElement("div");
      pane.className = "pane";
      const focused = document.activeElement === area;
      area.before(box);
      box.append(this.bar, this.panes);
      this.panes.append(pane);
      pane.append(area);
      if (focused) area.focus();
      const hint = document.createElement("p");
      hint.id = "keys-hint";
      hint.className = "hidden";
      hint.textContent = _("In a list, Tab indents; Escape, then Tab, leaves the text.");
      area.setAttribute("aria-describedby", hint.id);
      this.status = document.createElement("p");
      this.status.className = "kept-status";
      this.status.setAttribute("role", "status");
      this.tip = document.createElement("p");
      this.tip.className = "tip";
      this.tip.setAttribute("role", "status");
      const said = document.createElement("div");
      said.className = "said";
      said.append(this.status, this.tip);
      (form.querySelector(".save-bar") ?? form).append(said, hint);
    }

    say(text, sort) {
      if (this.status.textContent !== text) this.status.textContent = text;
      this.status.classList.toggle("problem", sort === "problem");
      this.status.classList.toggle("warn", sort === "warn");
    }

    /** Shows who else is editing; several windows of one person count as one, since the first was opened. */
    showOthers(windows) {
      const since = new Map();
      for (const one of windows) since.set(one.name, Math.min(one.since, since.get(one.name) ?? Infinity));
      const others = [...since].map(([name, seconds]) => ({ name, since: seconds }));
      let banner = document.querySelector(".banner.others");
      if (!others.length) { banner?.remove(); return; }
      const each = others.map(({ name, since: seconds }) => (
        _("{name} is editing since {clock}", { name, clock: wikkaEditor.timeOf(seconds * 1_000) })));
      const text = _("{others}. Saving merges changes of different places.", { others: each.join(", ") });
      if (!banner) {
        banner = document.createElement("p");
        banner.className = "banner others";
        banner.setAttribute("role", "status");
        this.form.before(banner);
      }
      if (banner.textContent !== text) banner.textContent = text;
    }

    apply(change) { if (change) applyTo(this.area, change); }

    pressed(what, isPressed) {
      this.bar.querySelector(`[data-tool=${what}]`).setAttribute("aria-pressed", String(isPressed));
    }

    use(what) {
      const { area } = this;
      if (what === "preview") {
        this.preview.turn(!this.preview.isOn);
        this.pressed("preview", this.preview.isOn);
      } else if (what === "picture") {
        const { selectionStart: from, selectionEnd: to } = area;
        wikkaEditor.askPicture((url, words) => {
          const made = this.marks().picture(url, words);
          this.apply({ from, to, insert: made, start: from + made.length, end: from + made.length });
        }, () => { area.focus(); area.setSelectionRange(from, to); }, this.form.dataset.files
          ? (files, words) => this.addFiles(files, words) : null);
      } else if (what === "undo" || what === "redo") {
        area.focus();
        document.execCommand(what);
      } else {
        this.apply(this.marks()[what](area.value, area.selectionStart, area.selectionEnd));
      }
    }

    addFiles(files, words = []) {
      const { selectionStart: from, selectionEnd: to } = this.area;
      const put = (made) => this.apply({ from, to, insert: made, start: from + made.length, end: from + made.length });
      const say = (text, isProblem) => {
        this.tip.textContent = text;
        this.tip.classList.toggle("problem", isProblem);
      };
      wikkaEditor.addFiles(this.form, this.area, files, words, put, say, this.signal)
        .then(() => this.preview.typed()); // which shows them by now
    }

    listen() {
      const { form, area, signal } = this;
      area.addEventListener("input", (event) => {
        if (!this.tip.classList.contains("problem")) this.tip.textContent = "";
        this.drafts.typed();
        this.preview.typed();
        this.completion.typed(event.data);
      }, { signal });
      form.elements.namedItem("note")?.addEventListener("input", () => this.drafts.typed(), { signal });
      form.elements.namedItem("language")?.addEventListener("change", () => { this.speak(); this.drafts.typed(); }, { signal });
      form.elements.namedItem("format")?.addEventListener("change", () => { this.drafts.typed(); this.preview.typed(); }, { signal });
      area.addEventListener("keydown", (event) => this.key(event), { signal });
      area.addEventListener("blur", () => { this.mayLeaveField = false; }, { signal });
      area.addEventListener("paste", (event) => this.paste(event), { signal });
      area.addEventListener("dragover", (event) => {
        if (event.dataTransfer.types.includes("Files")) event.preventDefault();
      }, { signal });
      area.addEventListener("drop", (event) => {
        const files = [...event.dataTransfer.files];
        if (!files.length) return;
        event.preventDefault(); // the browser would leave the page and show the file
        area.focus();
        this.addFiles(files);
      }, { signal });
      document.addEventListener("keydown", (event) => {
        const isSave = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "s";
        if (!isSave || document.querySelector("dialog[open]")) return;
        event.preventDefault();
        this.saveByKey();
      }, { signal });
      document.addEventListener("submit", (event) => this.submitted(event), { signal });
      addEventListener("pageshow", () => { if (!this.drafts.isKept()) this.drafts.typed(); }, { signal }); // filled in by the browser
      addEventListener("beforeunload", (event) => {
        if ((this.isUnsaved || area.value !== area.defaultValue) && !this.isLeaving) event.preventDefault();
      }, { signal });
    }

    key(event) {
      if (event.isComposing) return;
      if (this.completion.key(event)) return;
      const mayLeave = this.mayLeaveField;
      if (event.key === "Escape") { this.mayLeaveField = true; return; }
      if (!["Shift", "Tab"].includes(event.key)) this.mayLeaveField = false;
      const { area } = this;
      const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
      this.isPlainPaste = event.code === "KeyV" && event.shiftKey;
      const tool = wikkaEditor.toolOf(event);
      let change = null;
      if (tool && tool !== "undo" && tool !== "redo") {
        event.preventDefault();
        this.use(tool);
        return;
      }
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); this.saveByKey(); return; }
      if (event.key === "Tab" && isPlain && !mayLeave) {
        change = this.marks().indent(event.shiftKey, area.value, area.selectionStart, area.selectionEnd);
      } else if (event.key === "Enter" && isPlain && !event.shiftKey) {
        change = this.marks().enter(area.value, area.selectionStart, area.selectionEnd);
      }
      if (!change) return;
      event.preventDefault();
      this.apply(change);
    }

    paste(event) {
      const { area } = this;
      const plain = event.clipboardData.getData("text/plain");
      const html = event.clipboardData.getData("text/html");
      if (this.isPlainPaste) { this.isPlainPaste = false; return; }
      const files = wikkaEditor.pastedFiles(event.clipboardData);
      if (files.length) {
        event.preventDefault();
        this.addFiles(files);
        return;
      }
      const { selectionStart: from, selectionEnd: to } = area;
      const marks = this.marks();
      let change = marks.linked(area.value, from, to, plain.trim());
      if (!change) {
        const cells = html ? null : wikkaEditor.marks.sheet(plain);
        const made = html ? wikkaEditor.fromHtml(html, marks) : cells ? marks.rows(cells) : "";
        if (!made) return;
        change = { from, to, insert: made, start: from + made.length, end: from + made.length };
      }
      event.preventDefault();
      this.apply(change);
      this.tip.classList.remove("problem");
      this.tip.textContent = _("Pasted as markup. Ctrl+Z takes it back; Ctrl+Shift+V pastes the words alone.");
    }

    goOnWith(copy) {
      for (const [name, value] of Object.entries({ base: copy.base, draft: copy.id, format: copy.format, written: copy.written })) {
        const field = this.form.elements.namedItem(name);
        if (field && value) field.value = value;
      }
      this.form.elements.namedItem("base_token").value = copy.base_token ?? ""; // of that base, or not known
      this.isUnsaved = true;
      this.drafts.confirmed = null;
      this.apply({ from: 0, to: this.area.value.length, insert: copy.body, start: 0, end: 0 });
      this.drafts.typed();
    }

    saveByKey() {
      const password = this.form.elements.namedItem("password");
      if (password && !password.value) { password.focus(); return; }
      this.form.requestSubmit(this.form.elements.namedItem(password ? "signin" : "save") ?? this.form.elements.namedItem("send"));
    }

    submitted(event) {
      const { target, submitter } = event;
      const what = submitter?.name ?? "";
      if (target === this.form && what === "preview") {
        this.preview.now();
        this.pressed("preview", true);
        this.preview.pane.scrollIntoView({ block: "nearest" });
      } else if (target === this.form && what === "keep") {
        this.drafts.now();
      } else if (target === this.form || target.id === "choose") {
        this.save(target, submitter);
      } else {
        if (what === "discard") this.thrownAway(event);
        return;
      }
      event.preventDefault();
    }

    /** Removes a discarded draft from this browser, too, and before the page ends, which could cut the removal off.  If it
        is the form's draft, it must not come back: a text that is on its way is answered first, as the wiki could otherwise
        keep it after it has removed the draft. */
    async thrownAway(event) {
      const { target, submitter } = event;
      if (this.discarded === target) return; // for the second time, when nothing is left of it here
      event.preventDefault();
      if (this.isDiscarding) return;
      this.isDiscarding = true;
      const id = target.elements.namedItem("draft").value;
      if (id === this.drafts.field("draft")) {
        this.isLeaving = true;
        await this.drafts.hold();
        await this.drafts.over();
      } else await wikkaEditor.copies.remove({ page: this.form.dataset.page, id });
      this.discarded = target;
      target.requestSubmit(submitter);
    }

    /** Keeps the text in this browser until the wiki has answered that it is saved. */
    async save(form, button) {
      if (this.isBusy) return;
      this.isBusy = true;
      this.say(_("Saving …"), "");
      const fields = new FormData(form, button);
      const address = button?.getAttribute("formaction") ?? form.getAttribute("action");
      await this.drafts.hold();
      let why = "";
      try {
        const answer = await fetch(address, { method: "POST", body: fields });
        if (answer.redirected) {
          this.isLeaving = true;
          await this.drafts.over();
          location.assign(answer.url);
          return;
        }
        const page = wikkaEditor.parsed(await answer.text());
        if (page.getElementById("edit")) { this.replaceWith(page); return; }
        const reason = page.querySelector("main p")?.textContent.trim();
        const given = { status: answer.status, reason };
        why = reason === undefined ? _("the wiki answered {status}", given)
          : _("the wiki answered {status}: {reason}", given);
      } catch {
        why = _("there is no connection to the wiki");
      }
      this.isBusy = false;
      this.isUnsaved = true;
      this.drafts.goOn();
      const here = this.drafts.writeCopy() ? ` ${_("A copy is in this browser.")}` : "";
      const said = _("Not saved: {why}. Your text stands above: save again.", { why: why.replace(/[.]$/, "") });
      this.say(said + here, "problem");
    }

    /** Shows the wiki's page in the place of this one, if it did not save and says why beside the text. */
    replaceWith(page) {
      const fresh = document.adoptNode(page.querySelector("main"));
      this.stop.abort();
      document.querySelector("main").replaceWith(fresh);
      document.title = page.title;
      if (typeof wikkaTimes === "function") wikkaTimes(fresh);
      new Editor(document.getElementById("edit"));
      const password = document.querySelector("#edit [name=password]");
      const problem = document.querySelector(".banner.problem");
      if (password) password.focus();
      else if (problem) { problem.tabIndex = -1; problem.focus(); }
    }
  }

  const form = document.getElementById("edit");
  if (form) new Editor(form);
})();
