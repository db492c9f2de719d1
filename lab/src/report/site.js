// Shows the machines that are picked, and figures relative to one of them.
(() => {
  const picker = document.querySelector("#picker");
  const cells = [...document.querySelectorAll("[data-machine]")];
  const figures = cells.filter((cell) => cell.dataset.median);
  const told = new Map(figures.map((cell) => [cell, cell.innerHTML]));
  // Why figures are not divided by those of another machine.
  const differsBy = (own, theirs) => {
    const [a, b] = [Number(own.amount), Number(theirs.amount)];
    const near = "counted" in own && Math.max(a, b) < picker.dataset.length * Math.min(a, b);
    if (own.unit !== theirs.unit) return "has another unit";
    if (own.version !== theirs.version) return "did another version of this";
    if (own.amount !== theirs.amount && !near) return "did another amount of work";
    return null;
  };
  const draw = () => {
    const base = picker.elements.base.value;
    const shown = new Set([...picker.querySelectorAll("[name=shown]:checked")].map((one) => one.value));
    for (const cell of cells) cell.hidden = !shown.has(cell.dataset.machine);
    for (const cell of figures) {
      cell.innerHTML = told.get(cell);
      cell.classList.remove("better", "worse");
      const other = figures.find((one) => one.parentElement === cell.parentElement
        && one.dataset.machine === base);
      if (!other || other === cell) continue;
      const mark = document.createElement("b");
      const own = cell.dataset, theirs = other.dataset;
      // What both intervals allow; that is wider than an interval of the ratio itself.
      const [least, most] = [own.low / theirs.high, own.high / theirs.low];
      const within = 1 + Number(picker.dataset.within);
      const rounded = Number(picker.dataset.rounded);
      const differs = differsBy(own, theirs);
      if (differs) mark.textContent = `– ${picker.elements.base.selectedOptions[0].text} ${differs}`;
      else if ("few" in own || "few" in theirs) mark.textContent = "can’t tell";
      else if (least >= 1 / within && most <= within) mark.textContent = "no difference";
      else if (least < 1 + rounded && most >= 1 - rounded) mark.textContent = "can’t tell";
      else {
        const ratio = own.median / theirs.median;
        mark.textContent = `${ratio < 10 ? ratio.toFixed(2) : ratio.toFixed(0)} ×`;
        cell.classList.add((ratio > 1) === !("less" in own) ? "better" : "worse");
      }
      cell.append(" ", mark);
    }
  };
  picker.addEventListener("change", draw);
  draw();
})();
