"""The report: one HTML file that needs nothing else, offline, in light and dark, on a desk and on a phone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from plotly.offline import get_plotlyjs

from holdfast.disk import write_text
from holdfast.metrics import Asked, Group, front, gaps, interval
from holdfast.report import advice as advised
from holdfast.report import (
    answer,
    early,
    images,
    legends,
    origin,
    page,
    parts,
    paths,
    plots,
    progress,
    scenarios,
    settings,
    studies,
    table,
    transfers,
    uncertainty,
    verdicts,
    words,
)
from holdfast.report import reproduction as reproduced
from holdfast.report.reproduction import Reproduction
from holdfast.types import Record

DRAWN = 24  # labels of an arena in figures that have a line or a matrix for each
FOLDED = 20  # tasks that are told of in a list of which only the heading is seen at first, if there are more


def html(
    records: Sequence[Record],
    title: str = "",
    *,
    names: Sequence[str] = (),
    failures: Mapping[str, str] | None = None,
    asked: Sequence[Asked] = (),
    reproduction: Reproduction | None = None,
    experiment: Mapping[str, Any] | None = None,
    advice: Mapping[str, Any] | None = None,
) -> str:
    """The report on these records as one self-contained page; without a title, the question is one.

    `names` are labels of the records' own, e.g. their places in a table; `failures` says why a cell failed, `asked`
    which seeds there should be; `experiment`, the content of experiment.json, where all came from; `advice`, that of
    advice.json, what they led to.
    """
    arenas = table.arenas_of(records, names, asked) if records or reproduction is None else []  # a table without runs
    style = plots.styles(arenas)
    groups = [g for arena in arenas for g in arena]
    question = answer.question(groups) if groups and reproduction is None else ""
    question = advised.question(advice) if advice is not None else question
    data = origin.data(groups)
    first = "" if reproduction is None else reproduced.banner(reproduction, data)
    sections = [
        "" if advice is None else advised.section(advice),
        "" if reproduction is None else reproduced.section(reproduction, data),
        parts.section("Failed runs", "They are missing from all that follows.", _failed(failures or {})),
        answer.section(arenas, style, asked),
        answer.conditions(groups),
        parts.section(
            "Scenarios side by side",
            "The same runs in two scenarios: how much higher ACC is in one of them, paired over seeds.",
            [answer.notes([scenarios.sentence(gap) for gap in gaps(groups)])],
        ),
        transfers.section(groups, style),
        paths.section(groups),
        early.section(groups),
        studies.section(groups, drawn=reproduction is None),  # a reproduction draws its own
        parts.section(
            "Accuracy over tasks",
            "Lines are means over seeds, bands their 95% intervals. What a task forgot is its best accuracy before the "
            "last task less what is left at the end. A name hides or shows its method in every figure.",
            [_over_tasks(arena, style) for arena in arenas if len(arena[0].first.tasks) > 1],
        ),
        parts.section(
            "Accuracy over updates",
            "Of runs that were scored while a task was being learned.",
            [_over_updates(arena, style) for arena in arenas],
        ),
        parts.section(
            "Accuracy matrices",
            "The accuracy on each task after each task, mean over seeds. Below the stairs are tasks already learned: "
            "a column that fades downwards was forgotten."
            + (" Blank: not scored." if any(np.isnan(r.final).any() for g in groups for r in g.records) else ""),
            [_matrices(arena, style) for arena in arenas if arena[0].alone is None],
            before=_scale(),
        ),
        uncertainty.section([(answer.arena_title(arena), arena) for arena in arenas], style),
        parts.section(
            "Cost against accuracy",
            "Up and to the left is better; what is ringed is Pareto-optimal: nothing cheaper is as accurate. "
            "Costs are of training: total seconds and FLOPs, and the bytes a learner holds after the last task. "
            "The cost axes are logarithmic.",
            [_costs(arena, style) for arena in arenas if len(arena) > 1 and arena[0].alone is None],
        ),
        parts.section(
            "Audit", "What the run measured of itself; nothing here is declared.", verdicts.section(groups, style)
        ),
        parts.section("Tasks", "What each is made of, for the first seed.", _tasks(arenas)),
        parts.section("Settings", "Every value, and who chose it from what.", [settings.tables(groups)]),
        origin.section(groups, experiment or {}),
    ]
    return page.PAGE.format(
        policy=page.POLICY,
        title=escape(title or question),
        style=page.STYLE,
        header=_header(first, question if title else "", sections),
        body="\n".join(sections),
        plotly=get_plotlyjs(),
        script=page.SCRIPT,
    )


def write(
    records: Sequence[Record],
    path: str | Path,
    title: str = "",
    *,
    names: Sequence[str] = (),
    failures: Mapping[str, str] | None = None,
    asked: Sequence[Asked] = (),
    reproduction: Reproduction | None = None,
    experiment: Mapping[str, Any] | None = None,
    advice: Mapping[str, Any] | None = None,
) -> Path:
    """Write the report; a reader sees the old file or the new one, never half of it."""
    path = Path(path)
    write_text(
        path,
        html(
            records,
            title,
            names=names,
            failures=failures,
            asked=asked,
            reproduction=reproduction,
            experiment=experiment,
            advice=advice,
        ),
    )
    return path


def _header(first: str, question: str, sections: Sequence[str]) -> str:
    """What must be known first, the question, and what stands where on the page."""
    asked = f'<p class="question">{escape(question)}</p>' if question else ""
    places = re.findall(r'<section id="([^"]*)">\n<h2>(.*?)</h2>', "".join(sections))
    links = "".join(f'<a href="#{place}">{title}</a>' for place, title in places)
    return f'{first}{asked}<nav aria-label="Sections">{links}</nav>'


def _failed(failures: Mapping[str, str]) -> list[str]:
    body = "".join(
        f'<tr><th scope="row"><code>{escape(cell)}</code></th><td>{escape(reason)}</td></tr>'
        for cell, reason in failures.items()
    )
    return [parts.table("Failed runs", [("Run", ""), ("Why", "")], body, "lines")] if failures else []


def _tasks(arenas: Sequence[Sequence[Group]]) -> list[str]:
    """What tasks look like, each stream's once, and, where their names do not say it all, what they are made of and
    where that is less than was asked for."""
    drawn: dict[str, str] = {}
    for arena in (arena for arena in arenas if arena[0].alone is None):
        record = arena[0].first
        tasks = [
            f"{t} {task['name']}: {'; '.join(task[word] for word in ('about', 'note') if word in task)}."
            for t, task in enumerate(record.tasks, 1)
            if "about" in task or "note" in task
        ]
        notes = answer.notes(tasks)
        if len(tasks) > FOLDED:
            notes = f"<details><summary>What {len(tasks)} tasks are made of</summary>{notes}</details>"
        made = images.strips(record) + notes
        if made:
            drawn.setdefault(made, answer.arena_title(arena) + made)
    return list(drawn.values())


def _drawn(arena: Sequence[Group]) -> tuple[list[Group], str]:
    """The labels that are drawn, and what is said about the others: with many, the ones with the highest ACC."""
    if len(arena) <= DRAWN:
        return list(arena), ""
    means = {g.label: interval(g.values("acc")).mean for g in arena}
    best = sorted(arena, key=lambda g: -1.0 if means[g.label] is None else means[g.label] or 0.0, reverse=True)[:DRAWN]
    shown = {g.label for g in best}
    note = f'<p class="note">The {DRAWN} of {len(arena)} labels with the highest ACC are drawn.</p>'
    return [g for g in arena if g.label in shown], note


def _over_tasks(arena: Sequence[Group], style: dict[str, plots.Style]) -> str:
    arena, note = _drawn(arena)
    figures = [
        ("Mean accuracy over the tasks seen so far", plots.seen_tasks(arena, style)),
        ("Accuracy on the first task", plots.first_task(arena, style)),
        ("Forgetting of each task", progress.lost(arena, style)),
        ("ACC of every seed, with the mean's 95% interval", progress.seeds(arena, style)),
    ]
    drawn = parts.figures([(title, made) for title, made in figures if made is not None], "pair")
    return answer.arena_title(arena) + note + legends.of_groups(arena, style) + drawn


def _over_updates(arena: Sequence[Group], style: dict[str, plots.Style]) -> str:
    """Nothing where runs were scored after each task alone."""
    arena, note = _drawn(arena)
    figures = [
        ("Mean accuracy over the tasks begun so far", progress.begun_tasks(arena, style)),
        ("Accuracy on the task that is being learned", progress.task_at_hand(arena, style)),
    ]
    drawn = [(title, made) for title, made in figures if made is not None]
    if not drawn:
        return ""
    return answer.arena_title(arena) + note + legends.of_groups(arena, style) + parts.figures(drawn, "pair")


def _matrices(arena: Sequence[Group], style: dict[str, plots.Style]) -> str:
    small = len(arena[0].first.tasks) <= 6
    arena, note = _drawn(arena)
    drawn = [
        f'<figure data-of="{escape(g.label)}"><figcaption>{legends.label(g, style)} {_numbers(g)}</figcaption>'
        f"{parts.figure(plots.heat_map(g), g.label)}</figure>"
        for g in arena
    ]
    return f'{answer.arena_title(arena)}{note}<div class="{"grid" if small else "grid large"}">{"".join(drawn)}</div>'


def _numbers(g: Group) -> str:
    acc = table.rows([g], ["acc"])[0].cells["acc"].text
    lacks = "" if g.complete else f" · {words.finished(len(g.seeds), len(g.asked))}"
    return f'<span class="aside">ACC {escape(acc)} · {escape(g.scenario)}{lacks}</span>'


def _scale() -> str:
    stops = ", ".join(f"{colour} {100 * at:g}%" for at, colour in plots.SCALE)
    return (
        '<p class="scale" aria-hidden="true"><span>accuracy 0</span>'
        f'<span class="bar" style="background: linear-gradient(to right, {stops})"></span><span>1</span></p>'
    )


def _costs(arena: Sequence[Group], style: dict[str, plots.Style]) -> str:
    metrics = {"train_seconds": "Training time", "flops": "Training compute", "bytes": "Memory"}
    figures = [(name, plots.cost(arena, metric, style)) for metric, name in metrics.items()]
    notes = [words.optimal(name, [g.label for g in front(arena, metric)]) for metric, name in metrics.items()]
    drawn = parts.figures(figures, "grid")
    legend = legends.of_groups(arena, style)
    return answer.arena_title(arena) + legend + drawn + answer.notes([note for note in notes if note])
