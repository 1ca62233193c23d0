// The page as it would be, beside the text while it is typed.  The wiki renders it; one request is under way at a time,
// and the next waits behind it as long as three answers took, so that a long page costs the wiki no more than a short one.
"use strict";
(() => {
  const { _ } = wikkaTexts;
  const PAUSE_MS = 120;
  const REST = 3;
  const PAUSE_TIMES = 10; // of the time in which the last answer was shown: a long page waits for a longer pause
  const TIMEOUT_MS = 20_000;
  const REMEMBERED = "wikka-preview";

  function remembered() {
    try { return localStorage.getItem(REMEMBERED) !== "off"; } catch { return true; }
  }

  wikkaEditor.Preview = class {
    constructor(form, area, panes, signal) {
      Object.assign(this, { form, area, panes, shown: "", running: null, pause: 0, restedAt: 0, shownMs: 0, stale: true, inSight: false, expected: new Map() });
      this.pane = document.createElement("section");
      this.pane.className = "preview live";
      this.pane.setAttribute("aria-label", _("Preview"));
      this.label = document.createElement("p");
      this.label.className = "preview-label";
      this.scroller = document.createElement("div");
      this.scroller.className = "preview-scroll";
      this.scroller.tabIndex = 0;
      this.scroller.setAttribute("role", "region");
      this.scroller.setAttribute("aria-label", _("Preview of the page"));
      this.article = document.createElement("article");
      this.article.className = "content";
      this.scroller.append(this.article);
      this.pane.append(this.label, this.scroller);
      panes.append(this.pane);
      this.say("");
      this.sight = new IntersectionObserver((entries) => {
        this.inSight = entries.at(-1).isIntersecting;
        if (this.inSight && this.stale) this.schedule(0);
      }, { rootMargin: "300px" });
      signal.addEventListener("abort", () => { this.sight.disconnect(); clearTimeout(this.pause); });
      area.addEventListener("scroll", () => this.follow(area, this.scroller), { signal });
      this.scroller.addEventListener("scroll", () => this.follow(this.scroller, area), { signal });
      this.turn(remembered());
    }

    /** On or off, for the next pages, too. */
    turn(isOn) {
      this.isOn = isOn;
      this.pane.hidden = !isOn;
      this.panes.classList.toggle("with-preview", isOn);
      try { localStorage.setItem(REMEMBERED, isOn ? "on" : "off"); } catch { /* it holds for this page, then */ }
      if (isOn) this.sight.observe(this.pane);
      else { this.sight.unobserve(this.pane); this.inSight = false; }
    }

    say(problem) {
      this.label.textContent = problem ? _("Preview · not up to date: {problem}", { problem })
        : _("Preview · not saved yet");
      this.label.classList.toggle("problem", Boolean(problem));
    }

    typed() {
      this.stale = true;
      if (this.isOn && this.inSight) this.schedule(Math.max(PAUSE_MS, PAUSE_TIMES * this.shownMs, this.restedAt - performance.now()));
    }

    now() {
      this.stale = true;
      this.turn(true);
      this.schedule(0);
    }

    schedule(ms) {
      clearTimeout(this.pause);
      if (!this.running) this.pause = setTimeout(() => this.update(), ms);
    }

    async update() {
      if (this.running) return;
      const text = this.area.value;
      const began = performance.now();
      const fields = new URLSearchParams({ csrf: this.form.elements.namedItem("csrf").value, name: this.form.dataset.page, body: text });
      for (const name of ["format", "written"]) {
        const field = this.form.elements.namedItem(name);
        if (field) fields.set(name, field.value);
      }
      let again = 0;
      this.stale = false;
      this.running = fetch("/-/preview", { method: "POST", body: fields, signal: AbortSignal.timeout(TIMEOUT_MS) });
      try {
        const answer = await this.running;
        if (answer.ok) {
          const html = await answer.text();
          const here = performance.now();
          this.show(html);
          this.scroller.getBoundingClientRect(); // its layout belongs to it
          this.shownMs = performance.now() - here;
          performance.measure("wikka-preview", { start: began });
        } else {
          const said = await answer.json();
          if (said.token && answer.status === 403) wikkaEditor.tokenRenewed(this.form, said);
          this.say(said.error);
          again = said.retry ? said.retry * 1_000 : 0;
        }
      } catch (problem) {
        this.say(problem.name === "TimeoutError" ? _("the wiki did not answer") : _("no connection to the wiki"));
        again = 5_000;
      }
      this.restedAt = performance.now() + REST * (performance.now() - began);
      this.running = null;
      if (again) { this.stale = true; this.schedule(again); }
      else if (this.stale || this.area.value !== text) this.typed();
    }

    /** The answer's nodes; their ids get a prefix, for the page has some of its own. */
    show(html) {
      const inside = wikkaEditor.parsed(html).body;
      for (const one of inside.querySelectorAll("[id]")) one.id = `preview-${one.id}`;
      for (const label of inside.querySelectorAll("[for], [aria-labelledby], [aria-describedby], [aria-controls]")) {
        for (const name of ["for", "aria-labelledby", "aria-describedby", "aria-controls"]) {
          if (label.hasAttribute(name)) label.setAttribute(name, label.getAttribute(name).split(/\s+/).map((id) => `preview-${id}`).join(" "));
        }
      }
      for (const link of inside.querySelectorAll("a[href]")) {
        const href = link.getAttribute("href");
        if (href.startsWith("#")) link.setAttribute("href", `#preview-${href.slice(1)}`);
        else { link.target = "_blank"; link.rel = `${link.rel} noopener`.trim(); }
      }
      this.article.replaceChildren(...document.adoptNode(inside).childNodes);
      if (typeof wikkaTimes === "function") wikkaTimes(this.article);
      this.say("");
      this.anchors = null;
      this.follow(this.area, this.scroller);
    }

    /** Pairs of heights, in the text and in the preview, that belong together: the headings of both. */
    pairs() {
      const { area, scroller } = this;
      const height = area.scrollHeight - area.clientHeight;
      const ends = [[0, 0], [Math.max(height, 1), Math.max(scroller.scrollHeight - scroller.clientHeight, 1)]];
      const heads = [...this.article.querySelectorAll("h1, h2, h3, h4, h5, h6")];
      const sort = wikkaEditor.marks[wikkaEditor.formatOf(this.form)].sort;
      const columns = Math.max(20, Math.floor((area.clientWidth - 34) / (parseFloat(getComputedStyle(area).fontSize) * 0.602)));
      const found = [];
      let rows = 0;
      for (const line of area.value.split("\n")) {
        if ((line.startsWith("=") || line.startsWith("#")) && sort.heading.test(line)) found.push(rows);
        rows += Math.max(1, Math.ceil(line.length / columns));
      }
      if (found.length !== heads.length || !rows) return ends;
      const top = this.article.getBoundingClientRect().top;
      const inner = found.map((row, n) => [(row / rows) * area.scrollHeight, heads[n].getBoundingClientRect().top - top]);
      return [ends[0], ...inner.filter(([y, there], n) => y < ends[1][0] && there < ends[1][1] && y > 0 && (n === 0 || y > inner[n - 1][0])), ends[1]];
    }

    follow(leader, follower) {
      if (!this.isOn || !this.article.childElementCount) return;
      if (Math.abs((this.expected.get(leader) ?? -9) - leader.scrollTop) < 2) { this.expected.delete(leader); return; }
      cancelAnimationFrame(this.frame);
      this.frame = requestAnimationFrame(() => {
        this.anchors ??= this.pairs();
        const [from, to] = leader === this.area ? [0, 1] : [1, 0];
        const at = leader.scrollTop;
        let n = this.anchors.findIndex((pair) => pair[from] > at);
        n = n < 1 ? (n === 0 ? 1 : this.anchors.length - 1) : n;
        const [before, after] = [this.anchors[n - 1], this.anchors[n]];
        const part = (at - before[from]) / Math.max(1, after[from] - before[from]);
        const goal = Math.round(before[to] + Math.min(1, part) * (after[to] - before[to]));
        if (Math.abs(follower.scrollTop - goal) < 2) return;
        follower.scrollTop = goal;
        this.expected.set(follower, follower.scrollTop);
      });
    }
  };
})();
