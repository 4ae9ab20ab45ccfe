"use strict";
// Figures are drawn when they come near the window: a page of a hundred runs has hundreds.
const plots = [...document.querySelectorAll(".plot")];
const hidden = new Set(); // labels whose legend button is off
const shown = (trace) => !hidden.has(trace.legendgroup);

function draw(place) {
  const data = place.querySelector("script");
  if (!data) return;
  watcher.unobserve(place);
  const figure = JSON.parse(data.textContent);
  for (const trace of figure.data) trace.visible = shown(trace);
  for (const note of figure.layout.annotations ?? []) note.visible = !hidden.has(note.name);
  place.replaceChildren();
  Plotly.newPlot(place, figure.data, figure.layout, {responsive: true, displayModeBar: false, scrollZoom: false});
}

const watcher = new IntersectionObserver(
  (seen) => seen.filter((each) => each.isIntersecting).forEach((each) => draw(each.target)),
  {rootMargin: "500px"},
);
plots.forEach((place) => watcher.observe(place));

// Legend buttons hide a method in every figure.
const buttons = [...document.querySelectorAll(".legend button")];

function refresh() {
  for (const each of document.querySelectorAll("[data-of]")) {
    const off = hidden.has(each.dataset.of);
    if (each.tagName === "BUTTON") each.setAttribute("aria-pressed", String(!off));
    else each.hidden = off;
  }
  for (const place of plots.filter((place) => place.data?.some((trace) => trace.legendgroup))) {
    const notes = (place.layout.annotations ?? []).map((note, i) => [`annotations[${i}].visible`, !hidden.has(note.name)]);
    Plotly.update(place, {visible: place.data.map(shown)}, Object.fromEntries(notes));
  }
}

for (const button of buttons) {
  button.addEventListener("click", () => {
    const mine = [...button.closest(".legend").querySelectorAll("[data-of]")].map((each) => each.dataset.of);
    if (button.dataset.all) mine.forEach((of) => (button.dataset.all === "yes" ? hidden.delete(of) : hidden.add(of)));
    else if (!hidden.delete(button.dataset.of)) hidden.add(button.dataset.of);
    refresh();
  });
}

// A click on a column's heading sorts; what has no value stays last.
const words = new Intl.Collator("en", {numeric: true});

function sort(body, column, down) {
  const value = (row) => {
    const cell = row.cells[column];
    const text = cell.dataset.sort ?? cell.textContent.trim();
    return text === "" || text === "–" ? null : text;
  };
  const compare = (a, b) => (isNaN(a) || isNaN(b) ? words.compare(a, b) : a - b);
  const rows = [...body.rows].map((row) => [value(row), row]);
  rows.sort(([a], [b]) => (a === null || b === null ? (a === null) - (b === null) : (down ? -1 : 1) * compare(a, b)));
  body.append(...rows.map(([, row]) => row));
}

for (const table of document.querySelectorAll(".wide table:not(.shades)")) {
  const body = table.tBodies[0];
  if (body.rows.length < 2) continue;
  [...table.tHead.rows[0].cells].forEach((head, column, heads) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const down = before ? before === "ascending" : head.classList.contains("number");
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      sort(body, column, down);
    });
  });
}

// Light and dark; paper is always light, and has all figures as wide as itself.
const root = document.documentElement, theme = document.querySelector("#theme");

function wear(name) {
  root.dataset.theme = name;
  theme.textContent = name === "dark" ? "Light" : "Dark";
  theme.setAttribute("aria-label", `${theme.textContent} theme`);
}

theme.hidden = false;
wear(root.dataset.theme);
theme.addEventListener("click", () => wear(root.dataset.theme === "dark" ? "light" : "dark"));

let worn = null;
addEventListener("beforeprint", () => {
  worn ??= root.dataset.theme;
  wear("light");
  plots.filter((place) => place.offsetParent).forEach(draw);
  for (const svg of document.querySelectorAll(".plot .main-svg")) {
    const [width, height] = ["width", "height"].map((side) => svg.getAttribute(side));
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.closest(".plot").style.setProperty("--shape", `${width} / ${height}`);
  }
});
addEventListener("afterprint", () => {
  wear(worn);
  worn = null;
  document.querySelectorAll(".plot .main-svg").forEach((svg) => svg.removeAttribute("viewBox"));
});

// Pictures of paths: who made what and who uses it.
for (const graph of document.querySelectorAll(".paths")) {
  const chosen = graph.querySelector("select"), told = graph.querySelector("output"), hint = told.textContent;
  const parts = [...graph.querySelectorAll("[data-tasks]")];
  const show = (part) => {
    const tasks = part ? part.dataset.tasks.split(" ") : [];
    graph.classList.toggle("asked", tasks.length > 0);
    for (const each of parts) {
      each.classList.toggle("lit", each.dataset.tasks.split(" ").some((task) => tasks.includes(task)));
    }
    told.textContent = part ? part.querySelector("title").textContent : hint;
  };
  const rest = () => show(parts.find((part) => part.dataset.tasks === chosen.value));
  for (const part of parts) {
    for (const event of ["pointerenter", "focus"]) part.addEventListener(event, () => show(part));
    for (const event of ["pointerleave", "blur"]) part.addEventListener(event, rest);
  }
  chosen.addEventListener("change", rest);
}
