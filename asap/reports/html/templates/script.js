"use strict";
// Hover and keyboard of the charts, sorting and search of the operations, copy, theme. All text is set as text.
(() => {
  const tip = document.getElementById("tip");
  let pointer = null;

  function showTip(mark, x, y) {
    const [head, ...rest] = mark.getAttribute("aria-label").split("; ");
    const name = document.createElement("b");
    name.textContent = head;
    tip.replaceChildren(name, ...rest.flatMap((line) => [document.createTextNode(line), document.createElement("br")]));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${y + box.height + 24 > innerHeight ? Math.max(8, y - box.height - 12) : y + 14}px`;
  }

  function hideTip() {
    tip.hidden = true;
    document.querySelectorAll(".focused").forEach((mark) => mark.classList.remove("focused"));
  }

  for (const drawing of document.querySelectorAll(".drawing")) {
    const marks = [...drawing.querySelectorAll("[aria-roledescription][aria-label]:not(g)")];
    if (!marks.length) continue;
    let current = -1;
    drawing.tabIndex = 0;
    drawing.setAttribute("role", "group");
    drawing.setAttribute("aria-label", "Chart; arrow keys step through its marks");
    drawing.addEventListener("pointermove", (event) => {
      const place = `${event.clientX} ${event.clientY}`;
      const still = place === pointer || (pointer === null && document.querySelector(".focused"));
      pointer = place;
      if (still) return; // the page moved, not the pointer
      const mark = event.target.closest("[aria-roledescription][aria-label]:not(g)");
      if (mark) showTip(mark, event.clientX, event.clientY);
      else hideTip();
    });
    drawing.addEventListener("pointerleave", () => { if (!document.querySelector(".focused")) hideTip(); });
    drawing.addEventListener("blur", hideTip);
    drawing.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") hideTip();
      if (!step) return;
      event.preventDefault();
      hideTip();
      current = (current + step + marks.length) % marks.length;
      const mark = marks[current];
      mark.classList.add("focused");
      const box = mark.getBoundingClientRect();
      showTip(mark, box.left + box.width / 2, box.top + box.height / 2);
    });
  }

  function significant(value, digits) {
    if (value === 0) return "0";
    const decimals = digits - 1 - Math.floor(Math.log10(Math.abs(value)));
    return decimals >= 0 ? value.toFixed(decimals) : String(Math.round(value / 10 ** -decimals) * 10 ** -decimals);
  }

  const write = {
    text: (value) => value,
    percent: (value) => (value > 0 && value < 0.00005 ? "<0.01 %" : `${(value * 100).toFixed(2)} %`),
    number: (value) => String(Number(value.toPrecision(4))),
    seconds: (value) => {
      for (const [limit, scale, unit] of [[1e-6, 1e9, "ns"], [1e-3, 1e6, "µs"], [1, 1e3, "ms"]])
        if (Math.abs(value) < limit) return `${significant(value * scale, 3)} ${unit}`;
      return `${significant(value, 3)} s`;
    },
  };

  function operations(table) {
    const page = 100;
    const all = JSON.parse(document.getElementById("operation-rows").textContent);
    const heads = [...table.tHead.rows[0].cells];
    const kinds = heads.map((head) => head.className);
    const words = all.map((row) => row.filter((value) => typeof value === "string").join("\n").toLowerCase());
    const search = document.getElementById("search"), more = document.getElementById("more");
    const shareColumn = heads.findIndex((head) => head.hasAttribute("aria-sort"));
    const state = { column: shareColumn, down: true, most: page };

    function draw() {
      const wanted = search.value.trim().toLowerCase();
      const found = all.map((_, index) => index).filter((index) => words[index].includes(wanted));
      const { column, down } = state;
      const sign = down ? -1 : 1;
      found.sort((one, other) => {
        const a = all[one][column], b = all[other][column];
        if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
        return sign * (typeof a === "string" ? a.localeCompare(b) : a - b);
      });
      const body = document.createDocumentFragment();
      for (const index of found.slice(0, state.most)) {
        const line = body.appendChild(document.createElement("tr"));
        all[index].forEach((value, at) => {
          const cell = line.appendChild(document.createElement("td"));
          cell.className = kinds[at];
          cell.textContent = value === null ? "" : write[kinds[at]](value);
          if (kinds[at] === "text" && value) cell.title = value;
        });
      }
      table.tBodies[0].replaceChildren(body);
      heads.forEach((head, at) => {
        if (at === column) head.setAttribute("aria-sort", down ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
      const shown = Math.min(state.most, found.length);
      const share = found.reduce((sum, index) => sum + all[index][shareColumn], 0);
      document.getElementById("count").textContent = `${found.length.toLocaleString("en")} operations, ${write.percent(share)} of the time`;
      document.getElementById("shown").textContent = `${shown.toLocaleString("en")} of ${found.length.toLocaleString("en")} operations.`;
      more.hidden = shown === found.length;
    }

    heads.forEach((head, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      button.addEventListener("click", () => {
        state.down = state.column === at ? !state.down : kinds[at] !== "text";
        state.column = at;
        draw();
      });
      head.replaceChildren(button);
    });
    search.addEventListener("input", () => { state.most = page; draw(); });
    more.addEventListener("click", () => { state.most += page; draw(); });
    document.querySelector(".tools").hidden = false;
    draw();
  }

  const table = document.getElementById("operation-table");
  if (table) operations(table);

  for (const button of document.querySelectorAll(".copy")) {
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent.trim());
      button.textContent = "Copied";
    });
  }

  const theme = document.getElementById("theme"), root = document.documentElement;
  const dark = () => (root.style.colorScheme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const name = () => { theme.textContent = dark() ? "Light" : "Dark"; };
  theme.hidden = false;
  theme.addEventListener("click", () => { root.style.colorScheme = dark() ? "light" : "dark"; name(); });
  name();
})();
