"use strict";
/* The plots of a report, drawn by uPlot from the JSON in the page. All plots over time have one cursor and one zoom. */
const page = (async () => {
  const root = document.documentElement;
  const packed = Uint8Array.from(atob(document.getElementById("data").textContent.trim()), (letter) => letter.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const data = JSON.parse(await new Response(unpacked).text());
  const LOG_FROM = 30; // latencies that differ by more than this factor get a logarithmic axis
  const HEIGHT = 260;
  const COLOURS = ["s3", "s2", "s4", "s1", "faint", "ink"];
  const charts = {};
  const overTime = [];
  let zoomed = null; // [from, to] in seconds

  const colour = (name) => getComputedStyle(root).getPropertyValue("--" + name).trim();
  const short = (value) => Number(value >= 100 ? value.toFixed(0) : value.toPrecision(3)).toLocaleString("en");
  const ms = (value) => (value === null || value === undefined ? "–" : value >= 1000 ? short(value / 1000) + " s" : short(value) + " ms");
  const count = (value) => (value === null || value === undefined ? "–" : short(value));
  const positive = (value) => (value > 0 ? value : null);
  const largest = (lists) => lists.reduce((most, list) => list.reduce((a, b) => (b > a ? b : a), most), 0);
  const least = (lists) => lists.reduce((most, list) => list.reduce((a, b) => (b !== null && b < a ? b : a), most), Infinity);

  function line(label, name, value, more) {
    return { label, name, value: (_, found) => value(found), width: 1.6, spanGaps: true, stroke: () => colour(name), points: { show: false }, ...more };
  }

  function axis(more) {
    return { stroke: () => colour("soft"), grid: { stroke: () => colour("line"), width: 1 }, ticks: { stroke: () => colour("faint"), width: 1, size: 4 }, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", labelSize: 18, ...more };
  }

  function times(lists, limits) {
    const isLog = data.live || largest(lists) / least(lists) > LOG_FROM;
    const top = Math.max(0, ...limits);
    return isLog
      ? { distr: 3, range: (_, low, high) => (low === null ? [1, 1000] : [10 ** Math.floor(Math.log10(low)), Math.max(high, top) * 1.25]) }
      : { range: (_, low, high) => [0, Math.max(high || 1, top) * 1.08] };
  }

  /* A dashed line at each required percentile. */
  function drawLimits(u, rows) {
    for (const row of rows) {
      const at = Math.round(u.valToPos(row.limit, "y", true)) + 0.5;
      u.ctx.save();
      u.ctx.strokeStyle = u.ctx.fillStyle = colour("ink");
      u.ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
      u.ctx.lineWidth = devicePixelRatio;
      u.ctx.beginPath();
      u.ctx.moveTo(u.bbox.left, at);
      u.ctx.lineTo(u.bbox.left + u.bbox.width, at);
      u.ctx.stroke();
      u.ctx.font = 12 * devicePixelRatio + "px system-ui, sans-serif";
      u.ctx.textAlign = "right";
      u.ctx.fillText(row.requirement, u.bbox.left + u.bbox.width - 4, at - 5 * devicePixelRatio);
      u.ctx.restore();
    }
  }

  function latency(report) {
    const rows = report.intervals;
    const limits = report.requirements.filter((row) => row.unit === "ms" && row.requirement.startsWith("p"));
    const lists = ["p50_ms", "p95_ms", "p99_ms", "max_ms"].map((name) => rows.map((row) => positive(row[name])));
    const points = { show: true, size: 3, stroke: () => colour("faint"), fill: () => colour("faint") };
    return {
      lists: [rows.map((row) => row.start_s), ...lists],
      y: times(lists, limits.map((row) => row.limit)),
      yAxis: { values: (_, splits) => splits.map((value) => (value === null ? "" : ms(value))), size: 62 },
      series: [line("p50", "s1", ms), line("p95", "s2", ms), line("p99", "s3", ms), line("max", "faint", ms, { paths: () => null, points })],
      bands: [{ series: [2, 1], fill: () => colour("s1") + "30" }, { series: [3, 2], fill: () => colour("s2") + "30" }],
      hooks: { draw: [(u) => drawLimits(u, limits)] },
    };
  }

  function rate(report) {
    const rows = report.intervals;
    const last = rows.length ? rows[rows.length - 1].start_s : 0;
    // the last interval ends with the replay; counted as a whole one it would seem a fall of the rate
    const end = last + Math.min(report.interval_s, Math.max(report.duration_s - last, report.interval_s / 4));
    const length = (row) => (row.start_s === last ? end - last : report.interval_s);
    const lists = ["asked", "answered"].map((name) => rows.map((row) => row[name] / length(row)));
    const stepped = { paths: uPlot.paths.stepped({ align: 1 }) };
    return {
      lists: [rows.map((row) => row.start_s), ...lists],
      y: { range: (_, low, high) => [0, (high || 1) * 1.08] },
      yAxis: { size: 62, label: "requests per second" },
      series: [line("asked", "s2", count, stepped), line("got", "s1", count, stepped)],
    };
  }

  function failures(report) {
    const rows = report.intervals;
    const names = [...new Set(rows.flatMap((row) => Object.keys(row.failed)))].sort();
    const lists = names.map((name) => rows.map((row) => row.failed[name] || 0));
    if (rows.some((row) => row.conflicts)) {
      names.push("conflict");
      lists.push(rows.map((row) => row.conflicts));
    }
    const stepped = { paths: uPlot.paths.stepped({ align: 1 }) };
    const filled = (name) => ({ ...stepped, fill: () => colour(name) + "40" });
    return {
      lists: [rows.map((row) => row.start_s), ...lists],
      y: { range: (_, low, high) => [0, Math.max(high || 0, 1) * 1.08] },
      yAxis: { size: 62, label: `requests per ${report.interval_s} s`, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000] },
      series: names.map((name, index) => line(name, COLOURS[index % COLOURS.length], count, filled(COLOURS[index % COLOURS.length]))),
    };
  }

  function distribution(_, curves) {
    const names = Object.keys(curves).filter((name) => curves[name].length);
    const tables = names.map((name) => [curves[name].map(([inverse]) => Math.log10(inverse)), curves[name].map(([, value]) => positive(value))]);
    const lists = tables.length ? uPlot.join(tables) : [[], []];
    const share = (value) => Number((100 * (1 - 10 ** -value)).toPrecision(7)) + "%";
    return {
      lists,
      y: times(lists.slice(1), []),
      yAxis: { values: (_u, splits) => splits.map((value) => (value === null ? "" : ms(value))), size: 62 },
      xAxis: { label: "share of requests that was no slower", splits: (u, _i, low, high) => (u.width < 450 ? [Math.log10(2), 1, 2, 3, 5, 7] : [Math.log10(2), 1, 2, 3, 4, 5, 6, 7]).filter((at) => at >= low && at <= high), values: (_u, splits) => splits.map(share) },
      xSeries: { label: "share", value: (_u, value) => (value === null ? "–" : share(value)) },
      series: (names.length ? names : [""]).map((name, index) => line(name, index ? "s1" : "s2", ms, index ? { dash: [6, 4] } : {})),
    };
  }

  const KINDS = { latency, distribution, rate, failures };

  /* The last second of a zoom is the last of all plots over time. */
  function zoomAll(min, max) {
    const list = overTime.length ? overTime[0].data[0] : [];
    const isWhole = !list.length || (min <= list[0] && max >= list[list.length - 1]);
    zoomed = isWhole ? null : [min, max];
    for (const one of overTime) {
      if (one.scales.x.min !== min || one.scales.x.max !== max) one.setScale("x", { min, max });
    }
    const whole = document.getElementById("zoom-whole");
    if (whole) whole.disabled = isWhole;
  }

  function zoomBy(factor) {
    const { min, max } = overTime[0].scales.x;
    const list = overTime[0].data[0];
    const middle = (min + max) / 2, half = ((max - min) / 2) * factor;
    zoomAll(Math.max(list[0], middle - half), Math.min(list[list.length - 1], middle + half));
  }

  /* A finger moves the cursor of all plots over time; up and down still scroll the page. */
  function followFingers(u, isTime) {
    u.over.addEventListener("touchmove", (event) => {
      const left = event.touches[0].clientX - u.over.getBoundingClientRect().left;
      const index = u.posToIdx(left);
      for (const one of isTime ? overTime : [u]) one.setCursor({ left: one.valToPos(one.data[0][index], "x"), top: 0 });
    }, { passive: true });
  }

  /* The names in a legend switch their lines off by keyboard too. */
  function followKeys(u) {
    u.root.querySelectorAll(".u-legend .u-series").forEach((row, index) => {
      if (index === 0) return;
      const name = row.querySelector("th");
      name.tabIndex = 0;
      name.setAttribute("role", "button");
      name.setAttribute("aria-pressed", "true");
      name.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          name.click();
        }
      });
    });
  }

  function make(place, spec, isTime) {
    const seconds = { label: "second", value: (_, value) => (value === null ? "–" : String(value)) };
    const options = {
      width: place.clientWidth || 320,
      height: HEIGHT,
      cursor: { y: false, drag: { x: true, y: false }, focus: { prox: 24 }, ...(isTime ? { sync: { key: "time", scales: ["x", null] } } : {}) },
      focus: { alpha: 0.5 },
      legend: { markers: { width: 2, stroke: (u, index) => `var(--${u.series[index].name})`, fill: (u, index) => `var(--${u.series[index].name})` } },
      scales: { x: { time: false }, y: spec.y },
      series: [spec.xSeries || seconds, ...spec.series],
      axes: [axis({ label: "seconds from the start of the replay", size: 30, grid: { show: false }, ...spec.xAxis }), axis(spec.yAxis)],
      bands: spec.bands || [],
      hooks: {
        ...spec.hooks,
        setScale: [(u, key) => key === "x" && isTime && zoomAll(u.scales.x.min, u.scales.x.max)],
        setSeries: [(u, index, change) => {
          const name = index !== null && change.show !== undefined && u.root.querySelectorAll(".u-legend .u-series th")[index];
          if (name) name.setAttribute("aria-pressed", String(change.show));
        }],
      },
    };
    const u = new uPlot(options, spec.lists, place);
    if (isTime) overTime.push(u);
    followFingers(u, isTime);
    followKeys(u);
    return u;
  }

  function remake(name, place, spec) {
    const old = charts[name];
    if (old) {
      overTime.splice(overTime.indexOf(old) >>> 0, overTime.includes(old) ? 1 : 0);
      old.destroy();
    }
    charts[name] = make(place, spec, name !== "distribution");
  }

  /* Draw all plots, or give those that are there new figures. */
  function show(report, curves) {
    for (const [name, kind] of Object.entries(KINDS)) {
      const place = document.querySelector(`[data-plot=${name}] .chart`);
      if (!place) continue;
      const spec = kind(report, curves);
      const old = charts[name];
      if (!old || old.series.length !== spec.lists.length) remake(name, place, spec);
      else if (zoomed && name !== "distribution") {
        old.setData(spec.lists, false);
        old.setScale("x", { min: zoomed[0], max: zoomed[1] });
      } else old.setData(spec.lists);
    }
  }

  root.classList.add("drawn");
  if (data.live) root.classList.add("live");
  show(data.report, data.curves);
  const tools = document.querySelector(".tools");
  if (tools) {
    tools.hidden = false;
    document.getElementById("zoom-in").addEventListener("click", () => zoomBy(0.5));
    document.getElementById("zoom-out").addEventListener("click", () => zoomBy(2));
    document.getElementById("zoom-whole").addEventListener("click", () => zoomBy(Infinity));
  }
  const redraw = () => Object.values(charts).forEach((u) => u.redraw(false));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  new ResizeObserver(() => {
    for (const u of Object.values(charts)) {
      const width = u.root.parentElement.clientWidth;
      if (width && width !== u.width) u.setSize({ width, height: HEIGHT });
    }
  }).observe(document.querySelector("main"));
  return { data, show, charts, ms };
})();
