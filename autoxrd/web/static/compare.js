"use strict";
/* Two fits in one plot. */
(() => {
  /* A job that is chosen brings its own states; beside another job it is the result that counts, unless somebody chose. */
  const states = [...document.querySelectorAll("select[data-of]")];
  for (const own of states) {
    own.addEventListener("change", () => { delete own.dataset.default; });
    document.getElementById(`f-${own.dataset.of}`).addEventListener("change", () => {
      own.disabled = true;
      for (const other of states) if ("default" in other.dataset) other.value = "";
    });
  }
  const place = document.getElementById("compare-plot"), missing = document.getElementById("compare-missing");
  const COLOURS = { a: "#0072b2", b: "#d55e00" };
  const f32 = (text) => new Float32Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  async function get(side) {
    const answer = await fetch(place.dataset[side], { headers: { Accept: "application/json" } });
    const told = await answer.json();
    if (!answer.ok) throw new Error(told.detail);
    const curves = { axis: told.axis };
    for (const name of ["x", "obs", "calc"]) curves[name] = Array.from(f32(told[name]));
    return curves;
  }
  function draw(fits) {
    const axis = { gridcolor: "#e9edf1", zeroline: false, linecolor: "#b9c1cb", ticks: "outside", ticklen: 4, tickcolor: "#b9c1cb" };
    const font = { family: getComputedStyle(document.body).fontFamily, size: 13, color: "#17202c" };
    const line = (side, y, extra) => ({ type: "scatter", mode: "lines", name: side.toUpperCase(), x: fits[side].x, y, line: { width: 1.2, color: COLOURS[side] }, hovertemplate: `${side.toUpperCase()} %{x:.3f}: %{y:,.5~r}<extra></extra>`, ...extra });
    const first = fits.a || fits.b, out = [{ type: "scatter", mode: "markers", x: first.x, y: first.obs, marker: { size: 3, color: "#2b3440" }, hoverinfo: "skip" }];
    for (const side of ["a", "b"]) if (fits[side]) {
      out.push(line(side, fits[side].calc));
      out.push(line(side, fits[side].obs.map((v, i) => v - fits[side].calc[i]), { yaxis: "y2", line: { width: 1, color: COLOURS[side] } }));
    }
    Plotly.newPlot(place, out, {
      height: 520, margin: { l: 78, r: 14, t: 10, b: 48 }, font, showlegend: false, hovermode: "closest", paper_bgcolor: "#fff", plot_bgcolor: "#fff", separators: ".\u2009",
      xaxis: { ...axis, range: [Math.min(...[fits.a, fits.b].filter(Boolean).map((f) => f.x[0])), Math.max(...[fits.a, fits.b].filter(Boolean).map((f) => f.x[f.x.length - 1]))], anchor: "y2", title: { text: `${first.axis.title} / ${first.axis.unit}`, standoff: 8 } },
      yaxis: { ...axis, domain: [0.32, 1], title: { text: "Intensity", standoff: 8 }, tickformat: ",~r" },
      yaxis2: { ...axis, domain: [0, 0.28], title: { text: "obs − calc", standoff: 8 }, tickformat: ",~r", nticks: 5, zeroline: true, zerolinecolor: "#b9c1cb" },
    }, { responsive: true, displayModeBar: false }).then(() => { place.dataset.ready = "true"; });
  }
  (async () => {
    const fits = {}, troubles = [];
    for (const side of ["a", "b"]) try { fits[side] = await get(side); } catch (error) { troubles.push(error.message); }
    missing.textContent = troubles.join(" ");
    missing.hidden = !troubles.length;
    if (fits.a || fits.b) draw(fits);
  })();
})();
