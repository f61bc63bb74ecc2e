"use strict";
/* Trend plots of a series: one panel a quantity, error bars, and marks that say what became of each pattern. */
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const INK = "#17202c", GRID = "#e9edf1";
  const FONT = { family: getComputedStyle(document.body).fontFamily, size: 13, color: INK };
  const safe = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const WORDS = { accepted: "accepted", warnings: "accepted, with warnings", abstained: "abstained", failed: "failed" };
  const symbol = (i) => (data.restarted[i] ? "star" : "circle") + (data.status[i] === "abstained" ? "-open" : "");

  function trace(curve, unit) {
    return {
      type: "scatter", mode: "lines+markers", name: safe(curve.name), x: data.x, y: curve.y, connectgaps: false,
      error_y: { type: "data", array: curve.esd.map((e) => e || 0), thickness: 1.2, width: 3, color: curve.colour },
      line: { color: curve.colour, width: 1.2 },
      marker: { symbol: data.x.map((_, i) => symbol(i)), size: data.x.map((_, i) => (data.restarted[i] ? 12 : 8)), color: curve.colour },
      text: data.x.map((_, i) => `${safe(data.names[i])}<br>${WORDS[data.status[i]]}${data.restarted[i] ? ", refined from the structures too" : ""}`),
      hovertemplate: `%{text}<br>%{x:.6~g}: %{y:.7~g} ${safe(unit)}<extra>${safe(curve.name)}</extra>`,
    };
  }
  data.panels.forEach((panel, number) => {
    const axis = { gridcolor: GRID, zeroline: false, linecolor: "#c9d0d8", ticks: "outside", tickcolor: "#c9d0d8" };
    Plotly.newPlot(`trend-${number}`, panel.curves.map((curve) => trace(curve, panel.unit)), {
      font: FONT, height: 260, margin: { l: 76, r: 16, t: 8, b: 48 }, paper_bgcolor: "#fff", plot_bgcolor: "#fff",
      showlegend: panel.curves.length > 1, legend: { orientation: "h", y: 1.16 },
      xaxis: { ...axis, title: { text: safe(data.axis) } }, yaxis: { ...axis, exponentformat: "none", separatethousands: false },
    }, { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d"] });
  });
})();
