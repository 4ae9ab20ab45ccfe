"""The page around a report: its frame, its style, and the few lines that draw its figures."""

from __future__ import annotations

# Nothing is fetched, whatever a label contains: the page may run and style only what it carries.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<header>
<p class="eyebrow">Holdfast</p>
<h1>{title}</h1>
{header}
</header>
<main>
{body}
</main>
<noscript><p class="note">The figures need JavaScript; the tables do not.</p></noscript>
<script>{plotly}</script>
<script>
{script}
</script>
</body>
</html>
"""

STYLE = """\
:root {
  --paper: #fbfaf7; --card: #ffffff; --ink: #24272b; --quiet: #686c72; --line: #e3e1dc; --accent: #1d4e63;
  --good: #2c7a4b; --bad: #b3423f; --some: #96701a; --best-bg: #e2efe6; --tie-bg: #efece4;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #16181b; --card: #1d2024; --ink: #e6e4df; --quiet: #9a9da3; --line: #32363b; --accent: #8ec3d3;
    --good: #7fc79b; --bad: #e58e88; --some: #d9b45f; --best-bg: #21382b; --tie-bg: #2b2e33;
  }
  .plot, .glyph, .bar, .paths svg { filter: invert(1) hue-rotate(180deg); }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 3rem 1.5rem 5rem; max-width: 1180px; background: var(--paper); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
h1, h2 { font-family: ui-serif, "Iowan Old Style", Charter, Georgia, serif; font-weight: 600; line-height: 1.2; }
h1 { margin: 0 0 1.5rem; font-size: clamp(1.7rem, 5vw, 2.5rem); letter-spacing: -.01em; overflow-wrap: anywhere; }
h2 { margin: 0 0 .35rem; font-size: 1.5rem; }
h3 { margin: 1.6rem 0 .4rem; font-size: 1rem; font-weight: 600; overflow-wrap: anywhere; }
.eyebrow { margin: 0 0 .4rem; color: var(--accent); font-size: .78rem; font-weight: 600; letter-spacing: .14em;
  text-transform: uppercase; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(250px, 1fr)); gap: 1rem 2rem; margin: 0;
  padding: 1.2rem 0 0; border-top: 1px solid var(--line); }
.facts dt { color: var(--quiet); font-size: .78rem; }
.facts dd { margin: .1rem 0 0; overflow-wrap: anywhere; }
section { margin-top: 3.2rem; }
.lead, .finding { max-width: 46rem; margin: 0 0 .6rem; color: var(--quiet); overflow-wrap: anywhere; }
.finding b { color: var(--ink); }
.aside, .quiet { color: var(--quiet); font-weight: 400; }
.aside { font-size: .85rem; }
h3 .aside { display: block; }
.scenario { color: var(--accent); }
.wide { overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
.wide:focus-visible, summary:focus-visible, select:focus-visible, .paths g:focus-visible {
  outline: 2px solid var(--accent); outline-offset: 2px; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums lining-nums; font-size: .88rem; }
th, td { padding: .5rem .8rem; text-align: left; vertical-align: baseline; white-space: nowrap; }
thead th { color: var(--quiet); font-size: .76rem; font-weight: 500; border-bottom: 1px solid var(--line); }
tbody tr + tr > * { border-top: 1px solid var(--line); }
tbody th { font-weight: 600; }
.number { text-align: right; }
.half { display: block; color: var(--quiet); font-size: .85em; font-weight: 400; line-height: 1.3; }
.summary tbody th { min-width: 9.5rem; white-space: normal; }
.dense th, .dense td { padding: .3rem .8rem; }
.dense .half { display: inline; margin-left: .35em; }
td.best { font-weight: 650; }
.mark { display: inline-block; padding: 0 .4em; border-radius: 4px; font-size: .72rem; font-weight: 600; }
.mark.best { color: var(--good); background: var(--best-bg); }
.mark.tie, .mark.bound { color: var(--quiet); background: var(--tie-bg); }
.label { display: inline-block; max-width: 24rem; white-space: normal; overflow-wrap: break-word; font-weight: 600; }
.label { vertical-align: top; }
.glyph { display: inline-block; width: 1.1em; text-align: center; }
.legend { display: flex; flex-wrap: wrap; gap: .15rem 1.2rem; margin: .4rem 0 .6rem; font-size: .88rem; }
.spaced { margin-bottom: 1.4rem; }
.legend.small { margin: .2rem 0 .4rem; font-size: .8rem; color: var(--quiet); }
.shades td, .shades thead th { text-align: center; padding: .35rem .45rem; }
.shades tbody td { border-left: 1px solid var(--line); line-height: 1.3; }
.shades thead th { white-space: normal; line-height: 1.3; }
.shades .half { font-size: .76rem; }
.shades.many td { padding: .35rem .1rem; font-size: .82rem; }
.shades.many th { padding: .35rem .3rem; }
.shades.many tbody th { padding-left: .8rem; }
.many .told, .many .half, .many .about { font-size: .7rem; }
.shades .about { font-size: .76rem; font-weight: 400; }
.shades .told { display: block; font-size: .74rem; font-weight: 600; }
.shades td .half { color: inherit; }
.shades td.gone { color: var(--quiet); white-space: normal; }
.legend .label { font-weight: 500; }
.notes { max-width: 52rem; margin: .9rem 0 0; padding-left: 1.2rem; color: var(--quiet); font-size: .88rem; }
.legend .label, figcaption .label, summary .label { white-space: normal; overflow-wrap: anywhere; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 1rem; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 300px), 1fr)); gap: 1rem;
  align-items: start; }
.grid.large { grid-template-columns: repeat(auto-fill, minmax(min(100%, 420px), 1fr)); }
figure { min-width: 0; margin: 0; padding: .8rem .8rem .3rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; }
figure.square { max-width: 34rem; }
figcaption { margin-bottom: .3rem; font-size: .88rem; font-weight: 600; }
.plot { overflow: hidden; }
.scale { display: flex; align-items: center; gap: .6rem; margin: .2rem 0 0; color: var(--quiet); font-size: .8rem; }
.bar { flex: none; width: 140px; height: 10px; border-radius: 3px; }
.grey.bar { width: 90px; filter: none; border: 1px solid var(--line); }
.paths { margin: .4rem 0 1.6rem; }
.paths .wide { padding: .4rem .6rem; }
.paths svg { display: block; margin: 0 auto; }
.paths label { display: block; margin: .6rem 0; font-size: .88rem; }
.paths select { max-width: 100%; padding: .15rem .3rem; font: inherit; color: var(--ink); background: var(--card);
  border: 1px solid var(--line); border-radius: 4px; }
.paths output { display: block; min-height: 3.2em; margin-top: .4rem; font-size: .85rem; }
.paths.asked svg g { opacity: .1; }
.paths.asked svg g.lit { opacity: 1; }
.strips { display: flex; flex-wrap: wrap; gap: .7rem; }
.strips figure { min-width: min(100%, 8.5rem); max-width: 100%; padding: .5rem; }
.strips img { display: block; max-width: 100%; height: auto; }
.strips .coarse { image-rendering: pixelated; }
.strips figcaption { width: 0; min-width: 100%; margin: .35rem 0 0; color: var(--quiet); font-size: .8rem;
  font-weight: 400; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; }
.deep { overflow-x: auto; }
.deep .plot { min-width: 680px; }
.audit .tight { min-width: 5.5rem; white-space: normal; text-align: center; vertical-align: bottom; line-height: 1.25; }
.audit tbody th { min-width: 9.5rem; }
.lines td { white-space: normal; min-width: 7rem; overflow-wrap: anywhere; }
.lines th { white-space: normal; overflow-wrap: anywhere; min-width: 8rem; }
.lines td .met { white-space: nowrap; }
.met.yes { color: var(--good); } .met.no { color: var(--bad); } .met.some { color: var(--some); }
.met.none { color: var(--quiet); }
.key { display: flex; flex-wrap: wrap; gap: 1.2rem; margin: .6rem 0 1.2rem; font-size: .82rem; }
details { margin-top: .5rem; }
summary { padding: .35rem 0; cursor: pointer; }
details .wide { margin: .3rem 0 1rem; }
code { font: .92em ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
.note { color: var(--quiet); }
@media (max-width: 640px) {
  body { padding: 1.6rem 1rem 3rem; }
  section { margin-top: 2.4rem; }
  th, td { padding: .45rem .6rem; }
  .wide th:first-child { position: sticky; left: 0; min-width: 9.5rem; max-width: 46vw; white-space: normal;
    background: var(--card); }
  .wide .label { white-space: normal; overflow-wrap: break-word; }
  .dense .half { display: block; margin: 0; }
  .wide .dense th:first-child { min-width: 6rem; }
  figure { padding: .7rem .5rem .2rem; }
}
@media print { figure, .wide { break-inside: avoid; } }
"""

SCRIPT = """\
for (const place of document.querySelectorAll(".plot")) {
  const figure = JSON.parse(place.querySelector("script").textContent);
  place.replaceChildren();
  Plotly.newPlot(place, figure.data, figure.layout, {responsive: true, displayModeBar: false, scrollZoom: false});
}
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
"""
