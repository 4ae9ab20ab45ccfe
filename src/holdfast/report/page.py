"""The page around a report: its frame; its style is in page.css, what it does in page.js."""

from __future__ import annotations

from importlib.resources import files

# Nothing is fetched, whatever a label contains: the page may run and style only what it carries.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}
</style>
<script>document.documentElement.dataset.theme =
  matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";</script>
</head>
<body>
<header>
<div class="top"><p class="eyebrow">Holdfast</p><button type="button" id="theme" hidden>Dark</button></div>
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

STYLE, SCRIPT = (
    files("holdfast.report").joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js")
)
