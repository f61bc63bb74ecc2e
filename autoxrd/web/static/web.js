"use strict";
/* On every page: times in the reader's zone, and a list that keeps itself up to date. Nothing works only with it. */
(() => {
  const zone = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "short" });
  function local(root) {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (!Number.isNaN(at.getTime())) time.textContent = zone.format(at);
    }
  }
  local(document);
  window.Autoxrd = { local };

  const list = document.getElementById("job-list");
  if (!list) return;
  async function refresh() {
    if (!document.hidden && !list.contains(document.activeElement)) {
      try {
        const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
        const next = answer.ok && new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("job-list");
        if (next) { list.replaceChildren(...next.childNodes); list.dataset.refresh = next.dataset.refresh || ""; local(list); }
      } catch { /* the service is away for a moment: the next round asks again */ }
    }
    again();
  }
  function again() { if (Number(list.dataset.refresh)) setTimeout(refresh, 1000 * Number(list.dataset.refresh)); }
  again();
})();
