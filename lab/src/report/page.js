// Values under the pointer, and by keyboard: a plot is one stop of Tab, arrows go from figure to figure.
(() => {
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const hide = () => { tip.hidden = true; };
  const show = (mark) => {
    tip.textContent = mark.getAttribute("aria-label");
    tip.hidden = false;
    const at = mark.getBoundingClientRect(), own = tip.getBoundingClientRect();
    const most = document.documentElement.clientWidth - own.width - 8;
    const left = Math.max(8, Math.min(at.left + at.width / 2 - own.width / 2, most));
    const above = at.top - own.height - 8;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > 0 ? above : at.bottom + 8}px`;
  };
  for (const kind of ["pointerover", "focusin"]) {
    document.addEventListener(kind, (event) => {
      const mark = event.target.closest(".v");
      if (mark) show(mark); else hide();
    });
  }
  document.addEventListener("scroll", () => {
    const own = document.activeElement;
    if (own?.matches(".v")) show(own); else hide();
  }, { passive: true, capture: true });
  document.addEventListener("keydown", (event) => {
    const plot = event.target.closest(".chart");
    if (event.key === "Escape") hide();
    if (!plot || event.ctrlKey || event.altKey || event.metaKey) return;
    const all = [...plot.querySelectorAll(".v")], own = all.indexOf(event.target);
    const row = (mark) => Number(mark.dataset.row);
    const rows = [...new Set(all.map(row))];
    const to = (next) => {
      event.preventDefault();
      next?.focus({ preventScroll: false });
    };
    if (event.key === "ArrowRight") to(all[own + 1]);
    else if (event.key === "ArrowLeft") to(all[own - 1]);
    else if (event.key === "Home") to(all[0]);
    else if (event.key === "End") to(all.at(-1));
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (own < 0) return to(all[0]);
      const there = rows[rows.indexOf(row(all[own])) + (event.key === "ArrowDown" ? 1 : -1)];
      const place = all.filter((mark) => row(mark) === row(all[own])).indexOf(all[own]);
      const next = all.filter((mark) => row(mark) === there);
      to(next[Math.min(place, next.length - 1)]);
    }
  });
})();
