"use strict";
/* Follow a job: whenever the service tells of something new, the parts of the page that changed are fetched and put in. */
(() => {
  const head = document.getElementById("job-head"), base = `/jobs/${head.dataset.job}`;
  const data = JSON.parse(document.getElementById("live-data").textContent);
  const details = document.getElementById("details"), graph = document.getElementById("job-graph");
  let fit = null, drawn = null, chosen = Number(new URLSearchParams(location.search).get("step")) || null;
  let picked = chosen !== null; /* by the reader; otherwise the panel follows the step that stands for the result */

  async function get(path, kind) {
    const answer = await fetch(base + path, { headers: { Accept: kind } });
    if (answer.status === 401) { location.reload(); throw new Error("logged out"); }
    if (!answer.ok) throw Object.assign(new Error("refused"), { answer });
    return kind === "application/json" ? answer.json() : answer.text();
  }

  /* the fit */
  function toggles(phases) {
    const place = document.getElementById("phase-toggles");
    if (place.querySelectorAll("label").length === phases.length) return;
    place.querySelectorAll("label").forEach((label) => label.remove());
    phases.forEach((phase, i) => {
      const label = document.createElement("label"), box = document.createElement("input"), swatch = document.createElement("span");
      label.className = "chip"; box.type = "checkbox"; box.value = i; box.checked = true; swatch.className = `swatch phase-${i % 8}`;
      label.append(box, swatch, phase.name);
      place.append(label);
    });
  }
  async function showFit(state) {
    if (!state || state === drawn) return;
    drawn = state;
    document.getElementById("fit").hidden = false;
    const missing = document.getElementById("fit-missing");
    try {
      const next = await get(`/fit.json?state=${state}`, "application/json");
      missing.hidden = true;
      toggles(next.phases);
      if (fit) await fit.update(next); else fit = AutoxrdPlots.fitPlot(next);
    } catch (error) {
      if (!error.answer) { drawn = null; return; }
      missing.textContent = (await error.answer.json()).detail;
      missing.hidden = false;
    }
  }

  /* the decision graph */
  const rows = () => [...graph.querySelectorAll("[data-step]")];
  function mark() {
    for (const row of rows()) row.classList.toggle("selected", Number(row.dataset.step) === chosen);
  }
  async function choose(step, { scroll = false } = {}) {
    picked = true;
    history.replaceState(null, "", `${base}?step=${step}`);
    await present(step);
    if (scroll || innerWidth < 1020) details.scrollIntoView({ block: "nearest" });
  }
  async function present(step) {
    chosen = step;
    mark();
    try { details.innerHTML = await get(`/steps/${step}`, "text/html"); /* rendered and escaped by the service */ } catch { return; }
    details.scrollTop = 0;
  }
  graph.addEventListener("click", (event) => {
    const row = event.target.closest("[data-step]");
    if (!row || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    choose(Number(row.dataset.step));
  });
  graph.addEventListener("keydown", (event) => {
    const way = { ArrowDown: 1, ArrowUp: -1 }[event.key], all = rows();
    const next = way && all[all.indexOf(event.target.closest("[data-step]")) + way];
    if (!next) return;
    event.preventDefault();
    next.focus();
    choose(Number(next.dataset.step));
  });
  document.addEventListener("step", (event) => choose(event.detail, { scroll: true }));

  /* what changes */
  function put(place, html) {
    const focused = place.contains(document.activeElement) && document.activeElement.closest("[data-step], form");
    const again = focused && (focused.dataset.step ? `[data-step="${focused.dataset.step}"]` : `form[action="${focused.getAttribute("action")}"] button`);
    place.innerHTML = html; /* rendered and escaped by the service */
    Autoxrd.local(place);
    if (again) place.querySelector(again)?.focus();
  }
  function show(now) {
    put(head, now.html.head);
    const place = document.getElementById("job-now");
    if (place.innerHTML !== now.html.now) place.innerHTML = now.html.now;
    /* Somebody may be filling in a form there: it is left alone until they are done. */
    const review = document.getElementById("job-review");
    const unfolded = review.querySelector("details")?.open;
    if (!review.contains(document.activeElement) && asked !== now.html.review) {
      asked = now.html.review;
      review.innerHTML = asked;
      if (unfolded && review.querySelector("details")) review.querySelector("details").open = true;
    }
    put(graph, now.html.graph);
    mark();
    document.getElementById("course").hidden = false;
    document.getElementById("curve-card").hidden = now.steps.start === null && !now.steps.steps.length;
    AutoxrdPlots.stepPlot(now.steps);
    showFit(now.state);
    document.getElementById("h-fit").textContent = now.over ? "Fit of the final state" : "Fit of the current state";
    if (!picked && now.best && now.best !== chosen) present(now.best);
  }
  let waiting = false, busy = false, asked = null;
  function refresh() {
    if (waiting) return;
    waiting = true;
    setTimeout(async () => {
      waiting = false;
      if (busy) { refresh(); return; }
      busy = true;
      let now = null;
      try { now = await get("/live", "application/json"); } catch { /* the stream says when the service is back */ }
      busy = false;
      if (now) show(now);
      if (now && now.over) stop();
    }, 250);
  }
  let stream = null;
  const stale = document.getElementById("stale");
  function stop() { if (stream) stream.close(); stale.hidden = true; }
  function follow() {
    stream = new EventSource(`/api/v1${base}/events?after=${data.last}`);
    for (const kind of ["job.accepted", "job.state", "step.started", "step.recorded", "step.lost", "review.asked", "review.answered", "review.refused", "job.concluded"]) stream.addEventListener(kind, refresh);
    stream.addEventListener("open", () => { stale.hidden = true; });
    stream.addEventListener("error", () => { stale.hidden = stream.readyState === EventSource.CLOSED; });
  }

  if (data.steps.start !== null || data.steps.steps.length) AutoxrdPlots.stepPlot(data.steps);
  if (chosen === null) chosen = Number(details.querySelector("[data-step]")?.dataset.step) || null;
  mark();
  showFit(data.state);
  if (!data.over) follow();
})();
