"use strict";
/* The page of a running replay: events of the server in, figures, tables and plots out. */
page.then(({ data, show, ms }) => {
  const report = data.report;
  const byStart = new Map();
  let title = ""; // of the try of a search
  const set = (id, text) => { document.getElementById(id).textContent = text; };
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  const stop = document.getElementById("stop");
  stop.hidden = !token;

  function fill(table, rows) {
    table.replaceChildren(...rows.map((cells) => {
      const row = document.createElement("tr");
      row.append(...cells.map((text) => Object.assign(document.createElement("td"), { textContent: text })));
      return row;
    }));
  }

  function tables(curves) {
    const rows = report.intervals;
    const bodies = {
      latency: () => rows.map((row) => [row.start_s, row.asked, ...["p50", "p95", "p99", "max"].map((name) => ms(row[name + "_ms"]))]),
      rate: () => rows.map((row) => [row.start_s, row.asked, row.answered]),
      failures: () => rows.filter((row) => row.conflicts || Object.keys(row.failed).length).map((row) => [row.start_s, Object.entries(row.failed).map(([name, count]) => `${count} × ${name}`).join(", "), row.conflicts]),
      distribution: () => Object.values(curves)[0].map(([inverse, value]) => [Number((100 * (1 - 1 / inverse)).toPrecision(7)) + "%", ms(value)]),
    };
    for (const [name, body] of Object.entries(bodies)) {
      const details = document.querySelector(`[data-plot=${name}] details`);
      if (details.open) fill(details.querySelector("tbody"), body());
    }
  }

  const events = new EventSource("events");
  events.onmessage = ({ data: text }) => {
    const now = JSON.parse(text);
    if (now.whole) byStart.clear();
    if (now.search) {
      title = now.search.title;
      set("answer", now.search.answer.join(" "));
      fill(document.getElementById("tries"), now.search.tries);
    }
    for (const row of now.intervals) byStart.set(row.start_s, row);
    report.intervals = [...byStart.values()].sort((a, b) => a.start_s - b.start_s);
    if (now.headline) {
      report.interval_s = now.interval_s;
      report.duration_s = now.now_s;
      set("headline", now.headline);
      fill(document.getElementById("kinds"), now.kinds);
      document.querySelector(".tiles").replaceChildren(...now.tiles.map(([value, label]) => {
        const tile = Object.assign(document.createElement("div"), { className: "tile" });
        tile.append(Object.assign(document.createElement("b"), { textContent: value }), Object.assign(document.createElement("span"), { textContent: label }));
        return tile;
      }));
      // the last interval is still filling, and would seem a fall of the rate
      const isDone = (row) => now.state !== "running" || row.start_s + report.interval_s <= now.now_s;
      show({ ...report, intervals: report.intervals.filter(isDone) }, now.curves);
      tables(now.curves);
    }
    if (now.state === "running") set("state", `${title ? title + ", " : ""}${now.is_warming_up ? "warming up" : "running"}, ${Math.round(now.now_s || 0)} of ${Math.round(now.planned_s || 0)} s`);
    else {
      events.close();
      stop.hidden = true;
      set("state", `ended: ${now.state}`);
    }
  };
  events.onerror = () => set("state", "no connection to wikibench");
  stop.addEventListener("click", async () => {
    stop.disabled = true;
    const answer = await fetch("stop", { method: "POST", headers: { "X-Token": token } });
    if (!answer.ok) {
      stop.disabled = false;
      set("state", await answer.text());
    }
  });
});
