"use strict";
/* Behaviour of the page beside the plots: the decision graph, the parameter search, the section marks. */
(() => {
  const rows = [...document.querySelectorAll("#graph .row")];
  const details = [...document.querySelectorAll(".step-detail")];
  const panel = document.getElementById("details");

  function select(step, { scroll = false } = {}) {
    const wanted = String(step);
    for (const row of rows) {
      const chosen = row.dataset.step === wanted;
      row.classList.toggle("selected", chosen);
      row.setAttribute("aria-pressed", String(chosen));
    }
    for (const detail of details) detail.hidden = detail.dataset.step !== wanted;
    panel.scrollTop = 0;
    if (scroll) document.querySelector(".graph-layout").scrollIntoView();
  }
  rows.forEach((row, i) => {
    row.addEventListener("click", () => select(row.dataset.step));
    row.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") select(row.dataset.step);
      else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        const next = rows[i + (event.key === "ArrowDown" ? 1 : -1)];
        if (next) { next.focus(); select(next.dataset.step); }
      } else return;
      event.preventDefault();
    });
  });
  for (const button of document.querySelectorAll("button[data-step]")) button.addEventListener("click", () => select(button.dataset.step, { scroll: true }));
  document.addEventListener("step", (event) => select(event.detail, { scroll: true }));
  const first = rows.find((row) => "final" in row.dataset) || rows[rows.length - 1];
  if (first) select(first.dataset.step);

  const search = document.getElementById("parameter-search");
  const lines = [...document.querySelectorAll("#parameter-table tbody tr")];
  const text = lines.map((line) => line.textContent.toLowerCase());
  const count = document.getElementById("parameter-count");
  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const which = document.querySelector("input[name=which]:checked").value;
    let shown = 0;
    lines.forEach((line, i) => {
      const keep = (which === "all" || line.dataset.status === which) && words.every((word) => text[i].includes(word));
      line.hidden = !keep;
      shown += keep;
    });
    count.textContent = `${shown} of ${lines.length}`;
  }
  search.addEventListener("input", filter);
  for (const input of document.querySelectorAll("input[name=which]")) input.addEventListener("change", filter);
  filter();

  const copy = document.getElementById("copy-methods");
  copy.addEventListener("click", async () => {
    const source = document.getElementById("methods-text");
    try {
      await navigator.clipboard.writeText([...source.querySelectorAll("p, h3, li")].map((part) => part.innerText).join("\n\n"));
      copy.textContent = "Copied";
    } catch {
      /* Without clipboard permission the text is selected, ready to be copied by hand. */
      getSelection().selectAllChildren(source);
      copy.textContent = "Selected: copy with the keyboard";
    }
  });

  const links = [...document.querySelectorAll(".sections a")];
  const sections = links.map((a) => document.getElementById(a.hash.slice(1)));
  let waiting = false;
  function mark() {
    waiting = false;
    /* The section whose heading has passed under the bar; at the very end of the page, the last one. */
    let here = sections.findLastIndex((section) => section.getBoundingClientRect().top < 90);
    if (innerHeight + scrollY >= document.documentElement.scrollHeight - 2) here = sections.length - 1;
    links.forEach((a, i) => a.classList.toggle("here", i === Math.max(0, here)));
  }
  addEventListener("scroll", () => { if (!waiting) { waiting = true; requestAnimationFrame(mark); } }, { passive: true });
  mark();
})();
