"use strict";
/* The form of a new refinement: dropped files find their field, each is looked at, the pattern is drawn. */
(() => {
  const form = document.getElementById("submit");
  const csrf = form.elements.csrf.value;
  const field = (part) => form.querySelector(`.file-field[data-part=${part}]`);
  const input = (part) => field(part).querySelector("input[type=file]");
  const KIND = { pattern: "pattern", structures: "structure", candidates: "structure", instrument: "instrument" };
  const many = (part) => KIND[part] === "structure"; /* a file for each phase: new ones come to those that were kept */
  const stated = { pattern: null, instrument: null };
  const counts = { pattern: 0, instrument: 0 };

  function put(part, files) {
    const transfer = new DataTransfer();
    for (const file of files) transfer.items.add(file);
    input(part).files = transfer.files;
    show(part);
  }
  async function look(part, file) {
    const body = new FormData();
    body.set("csrf", csrf); body.set("kind", part === "structures" && form.elements.profile_match.checked ? "lattice" : KIND[part]); body.set("file", file);
    const answer = await fetch("/jobs/new/check", { method: "POST", body, headers: { Accept: "application/json" } });
    if (answer.status === 401) { location.assign("/login?next=/jobs/new"); return null; }
    return { status: answer.status, ...(await answer.json()) };
  }
  function line(text, tone) {
    const p = document.createElement("p");
    p.className = `verdict-line ${tone}`; p.textContent = text;
    return p;
  }
  async function show(part) {
    const place = field(part).querySelector(".findings"), files = [...input(part).files];
    const round = (counts[part] = (counts[part] || 0) + 1);
    place.replaceChildren();
    if (!many(part)) stated[part] = null;
    if (part === "pattern") document.getElementById("preview").hidden = true;
    if (part === "pattern") document.getElementById("series").open ||= files.length > 1;
    if (files.length && !many(part)) for (const kept of field(part).querySelectorAll(".kept input")) kept.checked = false;
    question();
    for (const file of files) {
      const box = document.createElement("div");
      box.className = "finding";
      box.append(line(`Reading ${file.name} …`, "wait"));
      place.append(box);
      let said;
      try { said = await look(part, file); } catch { said = { status: 0, detail: "The service cannot be reached: the file will be checked when you submit." }; }
      if (round !== counts[part] || !said) return;
      box.replaceChildren();
      if (said.html) box.insertAdjacentHTML("afterbegin", said.html); /* rendered and escaped by the service */
      else box.append(line(said.detail || "The file cannot be checked now.", "bad"));
      box.append(remover(part, file));
      if (!many(part)) stated[part] = said.ok ? said.lines : null;
      if (part === "pattern" && said.curve) draw(said);
      question();
    }
  }
  function remover(part, file) {
    const button = document.createElement("button");
    button.type = "button"; button.className = "link remove"; button.textContent = "Remove";
    button.setAttribute("aria-label", `Remove ${file.name}`);
    button.addEventListener("click", () => { put(part, [...input(part).files].filter((f) => f !== file)); input(part).focus(); });
    return button;
  }
  /* The wavelength is asked for as soon as it is known that no file states it. */
  function question() {
    const told = form.elements.anode.value || form.elements.wavelength.value.trim();
    const known = (stated.instrument && stated.instrument.length) || (stated.pattern && stated.pattern.length);
    document.getElementById("wavelength-question").hidden = !(stated.pattern && !known && !told);
  }
  form.elements.anode.addEventListener("change", question);
  form.elements.profile_match.addEventListener("change", () => { if (input("structures").files.length) show("structures"); });
  form.elements.wavelength.addEventListener("input", question);

  function draw({ curve, axis }) {
    const place = document.getElementById("preview-plot");
    document.getElementById("preview").hidden = false;
    const f32 = (text) => new Float32Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
    const font = { family: getComputedStyle(document.body).fontFamily, size: 12.5, color: "#17202c" };
    const line = { gridcolor: "#e9edf1", zeroline: false, linecolor: "#b9c1cb", ticks: "outside", ticklen: 4, tickcolor: "#b9c1cb" };
    Plotly.react(place, [{ type: "scatter", mode: "lines", x: Array.from(f32(curve.x)), y: Array.from(f32(curve.y)), line: { width: 1, color: "#1d4f91" }, hovertemplate: `%{x:.3f} ${axis.unit}<br>%{y:,.5~r}<extra></extra>` }], {
      height: 270, margin: { l: 66, r: 12, t: 8, b: 44 }, font, showlegend: false, paper_bgcolor: "#fff", plot_bgcolor: "#fff", separators: ".\u2009",
      xaxis: { ...line, title: { text: `${axis.title}${axis.unit ? ` / ${axis.unit}` : ""}`, standoff: 6 } },
      yaxis: { ...line, title: { text: "Intensity", standoff: 6 }, rangemode: "tozero", tickformat: ",~r", nticks: 6 },
    }, { responsive: true, displayModeBar: false }).then(() => { place.dataset.ready = "true"; });
  }

  for (const part of Object.keys(KIND)) input(part).addEventListener("change", () => show(part));

  const drop = document.getElementById("drop"), said = document.getElementById("drop-said");
  drop.hidden = false;
  const kindOf = (name) => (/\.m?cif$/i.test(name) ? "structures" : /\.(instprm|prm|inst|iparm)$/i.test(name) ? "instrument" : "pattern");
  function sort(files) {
    const lots = { pattern: [], structures: [], instrument: [] };
    for (const file of files) lots[kindOf(file.name)].push(file);
    if (lots.structures.length) put("structures", [...input("structures").files, ...lots.structures]);
    if (lots.pattern.length) put("pattern", lots.pattern);
    if (lots.instrument.length) put("instrument", lots.instrument.slice(0, 1));
    const left = lots.instrument.slice(1).map((file) => file.name);
    said.textContent = left.length ? `One instrument file is used: ${left.join(", ")} was left out.` : `${files.length} ${files.length === 1 ? "file" : "files"} taken.`;
  }
  let depth = 0;
  const carriesFiles = (event) => event.dataTransfer && [...event.dataTransfer.types].includes("Files");
  addEventListener("dragenter", (event) => { if (carriesFiles(event)) { depth++; drop.classList.add("over"); } });
  addEventListener("dragleave", (event) => { if (carriesFiles(event) && --depth <= 0) { depth = 0; drop.classList.remove("over"); } });
  addEventListener("dragover", (event) => { if (carriesFiles(event)) event.preventDefault(); });
  addEventListener("drop", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    depth = 0; drop.classList.remove("over");
    sort([...event.dataTransfer.files]);
  });

  form.addEventListener("submit", () => {
    document.getElementById("send").disabled = true;
    document.getElementById("send-said").textContent = "Sending the files …";
  });
  /* A page that comes back from the browser's cache must be usable again. */
  addEventListener("pageshow", () => { document.getElementById("send").disabled = false; document.getElementById("send-said").textContent = ""; });
  const problems = document.getElementById("problems");
  if (problems) problems.focus();
  for (const part of Object.keys(KIND)) if (input(part).files.length) show(part);
})();
