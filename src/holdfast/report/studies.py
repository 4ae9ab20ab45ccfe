"""Studies: what a model's choice, its retraining and its stop came to (protocols prescient, realistic, application)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import Any

import plotly.graph_objects as go

from holdfast.metrics import Group, interval, panels, study
from holdfast.report import courses, legends, parts, words

LEAD = (
    "Models are chosen on the first part, the chosen one is retrained on each later part. The accuracy on all parts "
    "together is that of their test rows in one set; ACC above counts every part alike, however small."
)
CHOSEN = ("net.hidden", "protocol.lr", "protocol.later_lr")
COLUMNS = [("Label", ""), ("Scenario", ""), ("Chosen", ""), ("Stopped at step", "number"),
           ("On all parts together", "number"), ("Best at any step", "number"), ("All at once", "number")]  # fmt: skip


def section(groups: Sequence[Group], *, drawn: bool = True) -> str:
    """A row for each label that was studied, and its course over time; nothing where there is none."""
    studied = [g for g in groups if len(g.first.study.get("curves", ())) and len(g.first.tasks) > 1]
    if not studied:
        return ""
    pieces = [parts.table("Studies", COLUMNS, "".join(map(_row, studied)), "lines")]
    if drawn:
        made = [(g, asdict(panels.panel(g.label, g.records))) for g in studied]
        kinds = [{"kind": kind, "panels": [panel]} for g, panel in made for kind, *_ in _kinds(g)]
        pieces.append(legends.of_panels(kinds))
        pieces.append(f'<div class="grid spaced">{"".join(_figures(g, panel) for g, panel in made)}</div>')
    return parts.section("Studies", LEAD, pieces)


def _row(g: Group) -> str:
    merges = bool(g.first.study.get("blends"))
    best = None if merges else [study.best(r) for r in g.records]  # of a network that is not the result
    cells = [
        _number([study.pooled(r) for r in g.records]),
        words.UNDEFINED if best is None else _number(best),
        _number([b for b in map(study.at_once, g.records) if b is not None]),
    ]
    numbers = "".join(f'<td class="number">{cell}</td>' for cell in (_stops(g), *cells))
    return (
        f'<tr><th scope="row"><span class="label">{escape(g.label)}</span></th><td>{escape(g.scenario)}</td>'
        f"<td>{escape(_chosen(g))}</td>{numbers}</tr>"
    )


def _chosen(g: Group) -> str:
    """The model and the learning rates; those of several seeds where they differ."""
    found = (words.value({name: r.settings[name]["value"] for name in CHOSEN if name in r.settings}) for r in g.records)
    return "; or ".join(dict.fromkeys(found))


def _stops(g: Group) -> str:
    """Of each part; those of several seeds where they differ."""
    found = (words.value(r.settings["protocol.stop"]["value"]) for r in g.records)
    return "; or ".join(dict.fromkeys(found))


def _number(values: Sequence[float]) -> str:
    if not values:
        return words.UNDEFINED
    mean, plus_minus, half = words.spread(interval(values), "acc").partition(" ± ")
    return f'{mean} <span class="half">± {half}</span>' if plus_minus else mean


def _kinds(g: Group) -> list[tuple[str, str, Callable[..., go.Figure], str]]:
    """How a study is drawn: over time, and over α where networks are merged."""
    over_time = ("course", "step", courses.course, "time")
    return [over_time, ("tuning", "α", courses.tuning, "alpha")] if g.first.study.get("blends") else [over_time]


def _figures(g: Group, panel: Mapping[str, Any]) -> str:
    return "".join(
        f'<figure><figcaption><span class="label">{escape(g.label)}</span>'
        f'<span class="half">{escape(str(panel["scenario"]))}</span></figcaption>'
        f"{parts.figure(draw(panel, axis), f'{g.label}, {kind}')}{legends.of_marks(panel, over)}</figure>"
        for kind, axis, draw, over in _kinds(g)
    )
