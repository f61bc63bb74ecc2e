"use strict";
/* The fit plot and the plot of Rwp per step. The report brings its data along in #data; a page of the service, which
   follows a job, hands them over and again whenever they change. */
const AutoxrdPlots = (() => {
  const INK = "#17202c", FAINT = "#5d6a7b", GRID = "#e9edf1";
  const FONT = { family: getComputedStyle(document.body).fontFamily, size: 13, color: INK };
  const TICK_ROW = 17, MAIN_HEIGHT = 400, Z_HEIGHT = 96, GAP = 16, TOP = 14, BOTTOM = 48;

  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
  const f32 = (text) => new Float32Array(bytes(text));
  const safe = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  /* Draw a fit in #fit-plot; the result takes the next one, and keeps the view. */
  function fitPlot(first) {
    const el = document.getElementById("fit-plot");
    let fit, x, obs, sigma, calc, back, phases;
    const view = { sqrt: false, shown: { obs: true, calc: true, background: true, contributions: false, unexplained: true },
      phase: [], x: null, y: null };
    function load(next) {
      fit = next;
      x = f32(fit.x); obs = f32(fit.obs); sigma = f32(fit.sigma); calc = f32(fit.calc); back = f32(fit.background);
      phases = fit.phases.map((p) => {
        const levels = new Uint16Array(bytes(p.pattern.levels));
        return { ...p, curve: Float32Array.from(levels, (v) => (v * p.pattern.top) / 65535) };
      });
      if (view.phase.length !== phases.length) view.phase = phases.map(() => true);
    }
    load(first);
    const root = (v) => (v < 0 ? -Math.sqrt(-v) : Math.sqrt(v));
    const scaled = (v) => (view.sqrt ? root(v) : v);
    const difference = (i) => scaled(obs[i]) - scaled(calc[i]);
    const residual = (i) => (obs[i] - calc[i]) / sigma[i];

    function lower(value) {
      let lo = 0, hi = x.length;
      while (lo < hi) { const mid = (lo + hi) >> 1; if (x[mid] < value) lo = mid + 1; else hi = mid; }
      return lo;
    }
    function range() {
      if (!view.x) return [0, x.length];
      return [Math.max(0, lower(view.x[0]) - 1), Math.min(x.length, lower(view.x[1]) + 1)];
    }
    /* The points to draw: all in view, or each bin's lowest and highest of obs, calc and their difference. */
    function chosen() {
      const [from, to] = range(), count = to - from;
      if (count <= fit.drawn) return Array.from({ length: count }, (_, k) => from + k);
      const bins = Math.floor(fit.drawn / 6), keep = new Set();
      const curves = [(i) => obs[i], (i) => calc[i], (i) => obs[i] - calc[i]];
      for (let b = 0; b < bins; b++) {
        const lo = from + Math.floor((b * count) / bins), hi = from + Math.floor(((b + 1) * count) / bins);
        for (const f of curves) {
          let least = lo, most = lo;
          for (let i = lo + 1; i < hi; i++) { if (f(i) < f(least)) least = i; if (f(i) > f(most)) most = i; }
          keep.add(least).add(most);
        }
      }
      return [...keep].sort((a, b) => a - b);
    }
    function extent(f, [from, to]) {
      let lo = Infinity, hi = -Infinity;
      for (let i = from; i < to; i++) { const v = f(i); if (v < lo) lo = v; if (v > hi) hi = v; }
      return lo <= hi ? [lo, hi] : [0, 1];
    }
    function mainRange() {
      if (view.y) return view.y;
      const span = range();
      const [, top] = extent((i) => Math.max(scaled(obs[i]), scaled(calc[i])), span);
      const [base] = extent((i) => Math.min(scaled(obs[i]), scaled(calc[i]), scaled(back[i])), span);
      const low = view.x ? Math.max(0, base) : Math.min(0, base);
      const room = (top - low) || 1;
      return [low - 0.02 * room, top + 0.05 * room];
    }
    /* In the square-root scale the axis still says intensities: round ones, from the top down, none closer than 34 pixels. */
    function rootTicks([lo, hi]) {
      const steps = [];
      for (let k = -3; k <= 9; k++) for (const m of [1, 2, 3, 5]) steps.push(m * Math.pow(10, k));
      const gap = (34 / MAIN_HEIGHT) * (hi - lo), floor = lo <= 0 ? gap : lo, kept = [];
      const inside = steps.filter((v) => scaled(v) >= floor && scaled(v) <= hi).reverse();
      for (const v of inside) if (!kept.length || scaled(kept[kept.length - 1]) - scaled(v) >= gap) kept.push(v);
      return (lo <= 0 ? [0] : []).concat(kept.reverse());
    }

    /* Where a marker floats clear of the points at that abscissa. */
    function above(at) {
      const i = Math.min(x.length - 1, lower(at)), [lo, hi] = mainRange();
      const top = extent((k) => obs[k], [Math.max(0, i - 6), Math.min(x.length, i + 7)])[1];
      return Math.min(scaled(top) + (14 / MAIN_HEIGHT) * (hi - lo), hi);
    }
    function ticks() {
      const [lo, hi] = view.x || [x[0], x[x.length - 1]];
      return phases.map((p, row) => {
        let inside = [];
        for (let i = 0; i < p.ticks.x.length; i++) if (p.ticks.x[i] >= lo && p.ticks.x[i] <= hi) inside.push(i);
        if (inside.length > 1200) inside = inside.sort((a, b) => p.ticks.share[b] - p.ticks.share[a]).slice(0, 1200);
        return {
          type: "scatter", mode: "markers", name: safe(p.name), yaxis: "y2", visible: view.phase[row],
          x: inside.map((i) => p.ticks.x[i]), y: inside.map(() => -row),
          marker: { symbol: "line-ns", size: 11, line: { width: 1.2, color: p.colour } },
          customdata: inside.map((i) => [p.ticks.hkl[i], p.ticks.d[i], 100 * p.ticks.share[i], p.ticks.line[i] + 1]),
          hovertemplate: `<b>%{customdata[0]}</b> ${safe(p.name)}<br>${fit.axis.title} %{x:.3f} ${fit.axis.unit}, d %{customdata[1]:.4f} Å<br>` +
            "%{customdata[2]:.1f} % of its strongest, line %{customdata[3]}<extra></extra>",
        };
      });
    }
    function traces() {
      const keep = chosen(), xs = keep.map((i) => x[i]);
      const line = (f, extra) => ({ type: "scatter", mode: "lines", x: xs, y: keep.map(f), hoverinfo: "skip", ...extra });
      const out = [];
      phases.forEach((p, row) => out.push(line((i) => scaled(p.curve[i] + back[i]), {
        visible: view.shown.contributions && view.phase[row], line: { width: 1.1, color: p.colour } })));
      out.push(line((i) => scaled(back[i]), { visible: view.shown.background, line: { width: 1.4, color: "#3f8a5a" } }));
      const dense = keep.length / el.clientWidth;
      out.push({
        type: "scatter", mode: "markers", x: xs, y: keep.map((i) => scaled(obs[i])), visible: view.shown.obs,
        marker: { size: dense > 1.5 ? 2.6 : dense > 0.4 ? 3.6 : 5, color: "#2b3440", symbol: "circle" },
        customdata: keep.map((i) => [obs[i], calc[i], back[i], obs[i] - calc[i], residual(i)]),
        hovertemplate: `${fit.axis.title} %{x:.4f} ${fit.axis.unit}<br>obs %{customdata[0]:,.6~r}<br>calc %{customdata[1]:,.6~r}<br>background %{customdata[2]:,.4~r}` +
          "<br>obs − calc %{customdata[3]:,.4~r} (%{customdata[4]:.1f} σ)<extra></extra>",
      });
      out.push(line((i) => scaled(calc[i]), { visible: view.shown.calc, line: { width: 1.3, color: "#cf2f2f" } }));
      out.push({
        type: "scatter", mode: "markers", visible: view.shown.unexplained,
        x: fit.unexplained.map((p) => p.x),
        y: fit.unexplained.map((p) => above(p.x)),
        marker: { symbol: "triangle-down", size: 11, color: "#e08a00", line: { width: 1, color: "#7a4a00" } },
        customdata: fit.unexplained.map((p) => [p.d, 100 * p.share]),
        hovertemplate: `<b>Unexplained</b><br>${fit.axis.title} %{x:.3f} ${fit.axis.unit}, d %{customdata[0]:.4f} Å<br>%{customdata[1]:.2f} % of the peak area<extra></extra>`,
      });
      out.push(...ticks());
      out.push(line(difference, { yaxis: "y3", line: { width: 1, color: "#34558b" } }));
      out.push(line(residual, { yaxis: "y4", line: { width: 0.9, color: "#5a6675" }, hoverinfo: "x+y", hovertemplate: "%{y:.1f} σ<extra></extra>" }));
      note(keep.length);
      return out;
    }
    function note(drawn) {
      const [from, to] = range(), place = document.getElementById("thinning");
      place.textContent = drawn < to - from
        ? `Drawn now: ${drawn} of the ${to - from} points in view (the highest and lowest of each interval); zoom in to see every point.`
        : "";
    }
    function layout() {
      const main = mainRange(), all = [0, x.length];
      const [dLow, dHigh] = extent(difference, range());
      /* The difference keeps the main panel's scale: its height follows from its extent, within limits. */
      const share = Math.min(0.42, Math.max(0.2, (1.12 * (dHigh - dLow)) / (main[1] - main[0])));
      const middle = (dLow + dHigh) / 2, half = (share * (main[1] - main[0])) / 2;
      const heights = [MAIN_HEIGHT, TICK_ROW * Math.max(1, phases.length) + 4, Math.round(MAIN_HEIGHT * share), Z_HEIGHT];
      const inner = heights.reduce((a, b) => a + b) + GAP * 2 + 2;
      const domains = []; let top = 1;
      heights.forEach((h, k) => { domains.push([Math.max(0, top - h / inner), top]); top -= (h + (k === 0 ? 2 : GAP)) / inner; });
      const [zLow, zHigh] = extent(residual, all), z = Math.max(4, Math.min(40, Math.max(-zLow, zHigh)));
      const axis = { zeroline: false, gridcolor: GRID, linecolor: "#b9c1cb", ticks: "outside", ticklen: 4, tickcolor: "#b9c1cb", automargin: false, fixedrange: false };
      const numbers = Math.max(Math.abs(main[0]), Math.abs(main[1])) < 1e6 ? ",~r" : "~e";
      const rootValues = view.sqrt ? rootTicks(main) : null;
      const y = { ...axis, domain: domains[0], range: main, title: { text: view.sqrt ? "Intensity (square-root scale)" : "Intensity", standoff: 8 }, tickformat: numbers };
      if (rootValues) Object.assign(y, { tickmode: "array", tickvals: rootValues.map(scaled), ticktext: rootValues.map((v) => Intl.NumberFormat("en", { maximumSignificantDigits: 3, useGrouping: false }).format(v)) });
      const rule = (at, style) => ({ type: "line", xref: "paper", x0: 0, x1: 1, yref: "y4", y0: at, y1: at, line: style, layer: "below" });
      return {
        height: inner + TOP + BOTTOM, margin: { l: 78, r: 14, t: TOP, b: BOTTOM }, font: FONT, paper_bgcolor: "#fff", plot_bgcolor: "#fff",
        showlegend: false, dragmode: "zoom", separators: ".\u2009", hovermode: "closest", hoverdistance: 16, uirevision: "fit",
        hoverlabel: { bgcolor: "#fff", bordercolor: "#b9c1cb", font: { ...FONT, size: 12.5 }, align: "left" },
        xaxis: { ...axis, range: view.x || [x[0], x[x.length - 1]], anchor: "y4", title: { text: `${fit.axis.title} / ${fit.axis.unit}`, standoff: 8 }, showspikes: true, spikemode: "across", spikesnap: "cursor", spikethickness: 1, spikedash: "dot", spikecolor: "#9aa5b1" },
        yaxis: y,
        yaxis2: { ...axis, domain: domains[1], range: [-Math.max(1, phases.length) + 0.4, 0.6], showgrid: false, showticklabels: false, ticks: "", fixedrange: true },
        yaxis3: { ...axis, domain: domains[2], range: [middle - half, middle + half], title: { text: view.sqrt ? "Δ√<i>I</i>" : "obs − calc", standoff: 8 }, tickformat: numbers, nticks: 5, fixedrange: true, zeroline: true, zerolinecolor: "#b9c1cb" },
        yaxis4: { ...axis, domain: domains[3], range: [-1.08 * z, 1.08 * z], title: { text: "Δ / σ", standoff: 8 }, nticks: 5, fixedrange: true },
        shapes: [rule(3, { width: 1, color: "#d2d8df", dash: "dash" }), rule(-3, { width: 1, color: "#d2d8df", dash: "dash" }), rule(0, { width: 1, color: "#b9c1cb" }),
          ...fit.excluded.map(([a, b]) => ({ type: "rect", xref: "x", x0: a, x1: b, yref: "paper", y0: 0, y1: 1, fillcolor: "rgba(100,115,135,.12)", line: { width: 0 }, layer: "below" }))],
      };
    }
    const config = { responsive: true, displaylogo: false, doubleClick: false, showTips: false,
      /* Named one by one: no button that would leave the page. */
      modeBarButtons: [["toImage"], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d"]],
      toImageButtonOptions: { format: "svg", filename: "fit" } };
    let drawing = false;
    function draw() {
      drawing = true;
      const wanted = layout();
      /* A window that changes its size makes Plotly ask the element for its height. */
      el.style.height = `${wanted.height}px`;
      return Plotly.react(el, traces(), wanted, config).then(() => { drawing = false; });
    }
    function whole() { view.x = null; view.y = null; return draw(); }
    function show(center, half) { view.x = [center - half, center + half]; view.y = null; return draw(); }

    draw().then(() => {
      el.dataset.ready = "true";
      el.on("plotly_relayout", (change) => {
        if (drawing) return;
        const at = (key) => (change[key] ? change[key] : change[`${key}[0]`] !== undefined ? [change[`${key}[0]`], change[`${key}[1]`]] : undefined);
        const nx = at("xaxis.range"), ny = at("yaxis.range");
        if (!nx && !ny) return;
        if (nx) view.x = [Math.min(...nx), Math.max(...nx)];
        view.y = ny || null;
        draw();
      });
      el.on("plotly_doubleclick", () => { whole(); return false; });
    });
    for (const input of document.querySelectorAll("input[name=scale]")) input.addEventListener("change", () => { view.sqrt = input.value === "sqrt" && input.checked; view.y = null; draw(); });
    for (const input of document.querySelectorAll("#curves input")) input.addEventListener("change", () => { view.shown[input.value] = input.checked; draw(); });
    document.getElementById("phase-toggles").addEventListener("change", ({ target }) => { view.phase[Number(target.value)] = target.checked; draw(); });
    document.getElementById("reset-view").addEventListener("click", whole);
    for (const button of document.querySelectorAll("[data-show]")) button.addEventListener("click", () => {
      show(Number(button.dataset.show), (x[x.length - 1] - x[0]) / 40);
      document.getElementById("fit").scrollIntoView();
    });
    return { update(next) { load(next); return draw(); } };
  }
  /* Draw Rwp after each step in #step-plot, or draw it anew. */
  function stepPlot(s) {
    const place = document.getElementById("step-plot");
    const of = (state) => s.steps.filter((t) => t.state === state && t.rwp !== null);
    const path = of("path"), points = (list) => ({ x: list.map((t) => t.n), y: list.map((t) => t.rwp), customdata: list.map((t) => [t.kind, t.n]) });
    const hover = "Step %{x}, %{customdata[0]}<br>Rwp %{y:.2f} %<extra></extra>";
    const line = points(path);
    if (s.start !== null) { line.x.unshift(0); line.y.unshift(s.start); line.customdata.unshift(["start", 0]); }
    const out = [{ ...line, type: "scatter", mode: "lines+markers", line: { color: "#17693f", width: 2 }, marker: { size: 8, color: "#17693f" }, hovertemplate: hover }];
    for (const [state, colour, symbol] of [["rejected", "#a3261f", "x-thin"], ["branch", "#8aa0bb", "circle"]])
      out.push({ ...points(of(state)), type: "scatter", mode: "markers", marker: { size: 9, color: colour, symbol, line: { width: state === "rejected" ? 2.2 : 0, color: colour } }, hovertemplate: hover });
    const values = out.flatMap((t) => t.y).concat(s.rexp ?? []), wide = Math.max(...values) > 4 * Math.min(...values);
    const axis = { gridcolor: GRID, zeroline: false, linecolor: "#b9c1cb", fixedrange: true };
    const decades = [0.01, 0.1, 1, 10, 100, 1000].flatMap((d) => [d, 2 * d, 5 * d]);
    const last = s.steps.length ? Math.max(...s.steps.map((t) => t.n)) : 1;
    Plotly.react(place, out, {
      height: 236, margin: { l: 78, r: 70, t: 10, b: 42 }, font: FONT, showlegend: false, hovermode: "closest", paper_bgcolor: "#fff", plot_bgcolor: "#fff",
      xaxis: { ...axis, title: { text: "Step", standoff: 6 }, dtick: last > 24 ? 5 : 1, range: [-0.4, last + 0.4], showgrid: false },
      yaxis: { ...axis, title: { text: "<i>R</i><sub>wp</sub> / %", standoff: 8 }, type: wide ? "log" : "linear", ...(wide ? { tickmode: "array", tickvals: decades, ticktext: decades.map(String) } : { rangemode: "tozero", nticks: 6 }) },
      shapes: s.rexp === null ? [] : [{ type: "line", xref: "paper", x0: 0, x1: 1, y0: s.rexp, y1: s.rexp, line: { width: 1.2, dash: "dash", color: FAINT } }],
      annotations: s.rexp === null ? [] : [{ xref: "paper", x: 1.003, xanchor: "left", y: wide ? Math.log10(s.rexp) : s.rexp, text: "<i>R</i><sub>exp</sub>", showarrow: false, font: { size: 12.5, color: FAINT } }],
    }, { responsive: true, displayModeBar: false, doubleClick: false }).then(() => {
      if (place.dataset.ready) return;
      place.dataset.ready = "true";
      place.on("plotly_click", (event) => { const n = event.points[0].customdata[1]; if (n > 0) document.dispatchEvent(new CustomEvent("step", { detail: n })); });
    });
  }
  function printable() {
    const plots = [document.getElementById("fit-plot"), document.getElementById("step-plot")];
    addEventListener("beforeprint", () => plots.forEach((plot) => Plotly.relayout(plot, { width: 650 })));
    addEventListener("afterprint", () => plots.forEach((plot) => Plotly.relayout(plot, { width: null, autosize: true })));
  }
  return { fitPlot, printable, stepPlot };
})();
(() => {
  const source = document.getElementById("data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const plot = AutoxrdPlots.fitPlot(data.fit);
  for (const input of document.querySelectorAll("input[name=histogram]")) input.addEventListener("change", () => {
    plot.update(data.fits[Number(input.value)]).then(() => document.getElementById("reset-view").click());
  });
  AutoxrdPlots.stepPlot(data.steps);
  AutoxrdPlots.printable();
})();
