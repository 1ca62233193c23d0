// Drafts: what is typed reaches the wiki while it is typed.
//
// A draft is sent PAUSE_MS after the last key, at most every APART_MS, and when the page is left.  Until the wiki has
// confirmed a text, this browser has a copy.  "Kept 12:04" is shown only for a text that the wiki has confirmed.
// The form of a suggestion has no address for drafts: its text is kept in this browser only.
"use strict";
(() => {
  const { _ } = wikkaTexts;
  const PAUSE_MS = 2_000;
  const APART_MS = 9_000; // with the time of a request that is 10 s: no more than that may be missing at any moment
  const COPY_PAUSE_MS = 400;
  const COPY_APART_MS = 3_000;
  const ANSWER_MS = 20_000;
  const RETRY_MS = [3_000, 5_000, 10_000, 20_000, 30_000];
  const KEEPALIVE_BYTES = 60_000; // browsers take 64 KiB of requests that outlive their page
  const BEFORE_SAVE_MS = 3_000; // a save waits for a draft under way: behind the save it would come back as a draft

  wikkaEditor.timeOf = (ms) => {
    const time = new Date(ms);
    const clock = time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
    return time.toDateString() === new Date().toDateString() ? clock : `${time.toLocaleDateString()} ${clock}`;
  };

  wikkaEditor.Drafts = class {
    /** ``say(text, sort)`` shows a sentence, of sort "", "warn" or "problem"; ``others(list)`` who else is editing. */
    constructor(form, area, say, others, signal) {
      Object.assign(this, { form, area, say, others });
      this.path = form.dataset.draft;
      this.as = form.elements.namedItem("as").value; // of the form: a save must not be signed by anybody else
      this.sentAs = this.as;
      this.token = "";
      this.confirmed = this.text(); // nothing to keep until something is typed
      this.keptMs = 0;
      this.sentAt = -Infinity;
      this.retryAt = 0;
      this.failures = 0;
      this.unsentSince = 0;
      this.typedAt = 0;
      this.running = null;
      this.stopped = "";
      this.isSaving = false;
      this.isOver = false;
      this.isLeft = false;
      signal.addEventListener("abort", () => { clearTimeout(this.timer); clearTimeout(this.copyTimer); });
      addEventListener("pagehide", () => this.leave(true), { signal });
      document.addEventListener("visibilitychange", () => { if (document.hidden) this.leave(false); }, { signal });
      addEventListener("online", () => { if (this.failures) this.now(); }, { signal });
    }

    field(name) { return this.form.elements.namedItem(name)?.value ?? ""; }

    text() { return [this.area.value, this.field("note"), this.field("format")].join("\n"); }

    copy() {
      return { as: this.as, page: this.form.dataset.page, id: this.field("draft"), section: this.field("section"),
        base: this.field("base"), base_token: this.field("base_token"), body: this.area.value, note: this.field("note"), format: this.field("format"), written: this.field("written") };
    }

    isKept() { return this.text() === this.confirmed; }

    /** Notes that the text has changed. */
    typed() {
      const now = performance.now();
      this.typedAt = now;
      this.unsentSince ||= now;
      this.schedule();
      if (this.copyTimer) {
        if (now - this.copyDue < COPY_APART_MS - COPY_PAUSE_MS) {
          clearTimeout(this.copyTimer);
          this.copyTimer = setTimeout(() => this.writeDown(), COPY_PAUSE_MS);
        }
      } else {
        this.copyDue = now;
        this.copyTimer = setTimeout(() => this.writeDown(), COPY_PAUSE_MS);
      }
    }

    schedule() {
      clearTimeout(this.timer);
      if (!this.path || this.isSaving || this.stopped || this.running) return;
      const due = Math.max(this.sentAt + APART_MS, this.retryAt, Math.min(this.typedAt + PAUSE_MS, this.unsentSince + APART_MS));
      this.timer = setTimeout(() => this.send(), Math.max(0, due - performance.now()));
    }

    /** Keeps a copy on the disk while somebody types, or in localStorage if the browser has no such disk. */
    async writeDown() {
      clearTimeout(this.copyTimer);
      this.copyTimer = 0;
      const copy = this.copy();
      if (this.isKept() || this.isSaving) return;
      let isHere = true;
      try { await wikkaEditor.copies.write(copy, false); } catch { isHere = wikkaEditor.copies.keep(copy); }
      if (!this.path && !this.isSaving) this.sayHere(isHere);
      if (this.isOver) wikkaEditor.copies.remove(copy);
    }

    /** Keeps a copy at once, unless the text was saved or discarded: a draft's answer that breaks off with the page comes
        later.  Returns true if there is a copy, or none is needed. */
    writeCopy() { return this.isOver || this.isKept() || wikkaEditor.copies.keep(this.copy()); }

    /** At once; for a button. */
    now() {
      this.retryAt = 0;
      clearTimeout(this.timer);
      return this.send({ asked: true });
    }

    /** ``isGone``: the page ends here.  Else a request under way ends first, so that the wiki gets texts in their order. */
    leave(isGone) {
      if (this.isSaving || this.isKept()) return;
      this.writeCopy();
      if (this.stopped || !this.path) return;
      if (this.running && !isGone) this.isLeft = true;
      else this.send({ leaving: true });
    }

    fields() {
      const fields = new FormData(this.form);
      fields.delete("user");
      fields.delete("password");
      if (this.token) fields.set("csrf", this.token);
      fields.set("as", this.sentAs);
      return fields;
    }

    async send({ leaving = false, asked = false, again = false } = {}) {
      if (this.isSaving || (this.running && !leaving)) return;
      if (this.isKept() && !asked) { this.unsentSince = 0; return; }
      if (this.stopped) { this.failed(this.stopped, 0); return; }
      const text = this.text();
      const fields = this.fields();
      const isSmall = new Blob([text]).size < KEEPALIVE_BYTES;
      this.sentAt = performance.now();
      this.unsentSince = 0;
      const running = fetch(this.path, { method: "POST", body: fields, headers: { Accept: "application/json" },
        keepalive: leaving && isSmall, signal: AbortSignal.timeout(ANSWER_MS) });
      this.running = running;
      try {
        const answer = await running;
        const said = await answer.json();
        if (answer.ok && said.kept) await this.kept(text, said);
        else await this.refused(answer.status, said, again);
      } catch (problem) {
        const why = problem.name === "TimeoutError" ? _("the wiki did not answer") : problem instanceof SyntaxError
          ? _("the wiki answered something else") : _("there is no connection to the wiki");
        this.failed(why, 0);
      } finally {
        if (this.running === running) this.running = null;
      }
      const isLeft = this.isLeft && !this.failures;
      this.isLeft = false;
      if (this.isKept()) return;
      this.unsentSince ||= performance.now();
      if (isLeft) this.send({ leaving: true });
      else this.schedule();
    }

    async kept(text, said) {
      this.confirmed = text;
      this.keptMs = said.kept * 1_000;
      this.failures = 0;
      this.retryAt = 0;
      await this.putAway();
      const clock = wikkaEditor.timeOf(this.keptMs);
      if (this.sentAs === this.as) this.say(_("Kept {clock}", { clock }), "");
      else {
        this.say(_("You are not signed in any more. Kept {clock} as a draft of this browser; Save lets you sign in.",
          { clock }), "warn");
      }
      this.others(said.others ?? []);
    }

    /** The wiki has the text.  A browser without an account may lose the cookie that its drafts are known by, so its copy
        stays, and is on the disk before anything is said. */
    async putAway() {
      const copy = this.copy();
      if (!this.sentAs && !this.isSaving) await wikkaEditor.copies.write(copy, this.isKept()).catch(() => null);
      else if (this.isKept()) await wikkaEditor.copies.remove(copy);
      if (this.isOver) await wikkaEditor.copies.remove(copy);
    }

    async refused(status, said, again) {
      const why = said.error || _("the wiki answered {status}", { status });
      const isSame = said.as === undefined || said.as === this.sentAs;
      const mayTry = said.token && (isSame || (status === 401 && said.as === "")) && !again;
      if (mayTry) {
        this.token = said.token;
        if (said.as === undefined || said.as === this.as) wikkaEditor.tokenRenewed(this.form, said);
        this.sentAs = said.as ?? this.sentAs;
        this.running = null;
        await this.send({ asked: true, again: true });
        return;
      }
      if (status === 401 || status === 403 || status === 400) this.stopped = why;
      if (status === 413) this.retryAt = performance.now() + 30_000;
      this.failed(why, said.retry ?? 0);
    }

    failed(why, retrySeconds) {
      const wait = RETRY_MS[Math.min(this.failures++, RETRY_MS.length - 1)];
      this.retryAt = Math.max(this.retryAt, performance.now() + Math.max(wait, retrySeconds * 1_000));
      const given = { why: why.replace(/[.]$/, ""), clock: wikkaEditor.timeOf(this.keptMs) };
      const said = this.keptMs ? _("Not kept (last kept {clock}): {why}.", given) : _("Not kept: {why}.", given);
      this.say(`${said} ${this.here(this.writeCopy())}`, "problem");
    }

    here(isHere) {
      return isHere ? _("A copy is in this browser.") : _("This browser keeps no copy: take the text elsewhere before you leave.");
    }

    sayHere(isHere) { this.say(this.here(isHere), isHere ? "" : "problem"); }

    /** Stops before a save: no draft is sent any more, and none is under way. */
    async hold() {
      clearTimeout(this.timer);
      this.writeCopy();
      this.isSaving = true;
      if (this.running) await Promise.race([this.running.catch(() => null), new Promise((done) => setTimeout(done, BEFORE_SAVE_MS))]);
    }

    /** Continues after a save that failed. */
    goOn() {
      this.isSaving = false;
      if (!this.isKept()) { this.unsentSince ||= performance.now(); this.schedule(); }
    }

    /** Removes all copies after the text was saved or discarded. */
    over() {
      this.isSaving = true;
      this.isOver = true;
      clearTimeout(this.timer);
      clearTimeout(this.copyTimer);
      return wikkaEditor.copies.remove(this.copy());
    }
  };
})();
