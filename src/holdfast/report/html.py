"""The report: one HTML file that needs nothing else, offline, in light and dark, on a desk and on a phone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np
from plotly.offline import get_plotlyjs

from holdfast.disk import write_text
from holdfast.metrics import Asked, Group, front, gaps, interval
from holdfast.report import (
    card,
    early,
    images,
    page,
    parts,
    paths,
    plots,
    scenarios,
    settings,
    studies,
    table,
    transfers,
    uncertainty,
    words,
)
from holdfast.report import reproduction as reproduced
from holdfast.report.reproduction import Reproduction
from holdfast.types import Record

DRAWN = 24  # labels of an arena in figures that have a line or a matrix for each
FOLDED = 20  # tasks that are told of in a list of which only the heading is seen at first, if there are more
COLUMNS = (
    "acc",
    "bwt",
    "fwt",
    "forgetting",
    "lca",
    "unseen_auc",
    "ece",
    "bytes",
    "flops",
    "train_seconds",
    "eval_seconds",
)


def html(
    records: Sequence[Record],
    title: str = "Continual learning report",
    *,
    names: Sequence[str] = (),
    failures: Mapping[str, str] | None = None,
    asked: Sequence[Asked] = (),
    reproduction: Reproduction | None = None,
) -> str:
    """The report on these records as one self-contained page.

    `names` are labels of the records' own, e.g. their places in a table; `failures` says why a cell failed, `asked`
    which seeds there should be.
    """
    arenas = table.arenas_of(records, names, asked) if records or reproduction is None else []  # a table without runs
    style = plots.styles(arenas)
    groups = [g for arena in arenas for g in arena]
    sections = [
        "" if reproduction is None else reproduced.section(reproduction),
        parts.section("Failed runs", "They are missing from all that follows.", _failed(failures or {})),
        parts.section("Summary", "", [*(_summary(arena, style) for arena in arenas), _notes(table.lacking([], asked))]),
        parts.section("Tasks", "What each is made of, for the first seed.", _tasks(arenas)),
        parts.section(
            "Scenarios side by side",
            "The same runs in two scenarios: how much higher ACC is in one of them, paired over seeds.",
            [_notes([scenarios.sentence(gap) for gap in gaps(groups)])],
        ),
        transfers.section(groups, style),
        paths.section(groups),
        early.section(groups),
        studies.section(groups, drawn=reproduction is None),  # a reproduction draws its own
        parts.section(
            "Accuracy over tasks",
            "Lines are means over seeds, bands their 95% intervals.",
            [_over_tasks(arena, style) for arena in arenas if len(arena[0].first.tasks) > 1],
        ),
        parts.section(
            "Accuracy matrices",
            "The accuracy on each task after each task, mean over seeds. Below the stairs are tasks already learned: "
            "a column that fades downwards was forgotten."
            + (" Blank: not scored." if any(np.isnan(r.final).any() for g in groups for r in g.records) else ""),
            [_matrices(arena, style) for arena in arenas if arena[0].alone is None],
            before=_scale(),
        ),
        uncertainty.section([(_arena_title(arena), arena) for arena in arenas], style),
        parts.section(
            "Cost against accuracy",
            "Up and to the left is better; what is ringed is Pareto-optimal: nothing cheaper is as accurate. "
            "Costs are of training: total seconds and FLOPs, and the bytes a learner holds after the last task. "
            "The cost axes are logarithmic.",
            [_costs(arena, style) for arena in arenas if len(arena) > 1 and arena[0].alone is None],
        ),
        parts.section("Audit", "What the run measured of itself; nothing here is declared.", _audit(groups, style)),
        parts.section("Settings", "Every value, and who chose it from what.", [_settings(groups)] if groups else []),
    ]
    return page.PAGE.format(
        policy=page.POLICY,
        title=escape(title),
        style=page.STYLE,
        header=_header(groups) if groups else "",
        body="\n".join(sections),
        plotly=get_plotlyjs(),
        script=page.SCRIPT,
    )


def write(
    records: Sequence[Record],
    path: str | Path,
    title: str = "Continual learning report",
    *,
    names: Sequence[str] = (),
    failures: Mapping[str, str] | None = None,
    asked: Sequence[Asked] = (),
    reproduction: Reproduction | None = None,
) -> Path:
    """Write the report; a reader sees the old file or the new one, never half of it."""
    path = Path(path)
    write_text(path, html(records, title, names=names, failures=failures, asked=asked, reproduction=reproduction))
    return path


def _header(groups: Sequence[Group]) -> str:
    firsts = [g.first for g in groups]
    scenarios = {g.scenario: f"{g.scenario} (task label {words.label_given(g)} at test)" for g in groups}
    seeds = sorted({seed for g in groups for seed in g.asked})
    whole = any(g.alone is None for g in groups)
    facts = {
        "Stream": words.all_described([g.conditions("stream") for g in groups if g.alone is None or not whole]),
        "Scenario": list(scenarios.values()),
        "Protocol": words.all_described([g.conditions("protocol") for g in groups]),
        "Net": words.all_described([g.conditions("net") for g in groups]),
        "Method": [", ".join(_unique(r.method for r in firsts))],
        "Seed": [", ".join(map(str, seeds))],
    }
    items = "".join(
        f"<div><dt>{name}{'s' if len(found) > 1 or (name in ('Seed', 'Method') and ',' in found[0]) else ''}</dt>"
        f"<dd>{'<br>'.join(map(escape, found))}</dd></div>"
        for name, found in facts.items()
    )
    return f'<dl class="facts">{items}</dl>'


def _failed(failures: Mapping[str, str]) -> list[str]:
    body = "".join(
        f'<tr><th scope="row"><code>{escape(cell)}</code></th><td>{escape(reason)}</td></tr>'
        for cell, reason in failures.items()
    )
    return [parts.table("Failed runs", [("Run", ""), ("Why", "")], body, "lines")] if failures else []


def _arena_title(arena: Sequence[Group]) -> str:
    g = arena[0]
    stream = escape(words.described(g.conditions("stream")))
    return (
        f'<h3><span class="scenario">{escape(g.scenario)}</span> scenario <span class="aside">task label '
        f"{words.label_given(g)} at test · {stream}</span></h3>"
    )


def _summary(arena: Sequence[Group], style: dict[str, plots.Style]) -> str:
    present = {metric for g in arena for metric in g.metrics()}
    columns = [metric for metric in COLUMNS if metric in present]
    rows = table.rows(arena, columns)
    head = [("Label", ""), ("Scenario", ""), ("Seeds", "number"), *((table.title(m), "number") for m in columns)]
    body = "".join(
        f'<tr><th scope="row">{_name(row.group, style)}{_standing(row.group)}</th>'
        f'<td>{escape(row.group.scenario)} <span class="half">task label {words.label_given(row.group)}</span></td>'
        f'<td class="number">{row.seeds}</td>' + "".join(map(_cell, row.cells.values())) + "</tr>"
        for row in rows
    )
    found = f'<p class="finding">{_finding(rows)}</p>{parts.table("Summary", head, body, "summary")}'
    return f"{_arena_title(arena)}{found}{_notes(table.lacking(arena))}"


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
        notes = _notes(tasks)
        if len(tasks) > FOLDED:
            notes = f"<details><summary>What {len(tasks)} tasks are made of</summary>{notes}</details>"
        made = images.strips(record) + notes
        if made:
            drawn.setdefault(made, _arena_title(arena) + made)
    return list(drawn.values())


def _notes(notes: Sequence[str]) -> str:
    return f'<ul class="notes">{"".join(f"<li>{escape(note)}</li>" for note in notes)}</ul>' if notes else ""


def _cell(cell: table.Cell) -> str:
    mark = f'<span class="mark {cell.mark}">{cell.mark}</span> ' if cell.mark else ""
    mean, plus_minus, half = cell.text.partition(" ± ")
    half = f' <span class="half">± {escape(half)}</span>' if plus_minus else ""
    return f'<td class="number {cell.mark}">{mark}{escape(mean)}{half}</td>'


def _finding(rows: Sequence[table.Row]) -> str:
    """What the table says about accuracy, in a sentence."""
    whole = [row for row in rows if row.group.complete]
    if len(whole) < len(rows) and sum(not row.group.mixed for row in whole) < 2:
        return "Fewer than two labels finished all their seeds, so nobody is ranked."
    seeds = max(len(row.group.seeds) for row in whole)
    if seeds < 2:
        return "One seed: there are no intervals, and nobody is called a winner."
    leaders = [row for row in rows if row.cells["acc"].mark]
    over = f"{seeds} seeds, 95% intervals; differences are paired over seeds"
    if not leaders:
        return f"{over[0].upper()}{over[1:]}."
    names = [f"<b>{escape(row.group.label)}</b>" for row in leaders]
    highest = "the highest ACC" if len(whole) == len(rows) else "the highest ACC of those that finished all their seeds"
    if len(names) > 6:
        return f"{', '.join(names[:5])} and {len(names) - 5} more tie for {highest} ({over})."
    if len(names) == 1:
        return f"{names[0]} has {highest}, ahead of every other ({over})."
    return f"{', '.join(names[:-1])} and {names[-1]} tie for {highest} ({over})."


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
    ]
    return _arena_title(arena) + note + _legend(arena, style) + parts.figures(figures, "pair")


def _matrices(arena: Sequence[Group], style: dict[str, plots.Style]) -> str:
    small = len(arena[0].first.tasks) <= 6
    arena, note = _drawn(arena)
    drawn = [
        f"<figure><figcaption>{_name(g, style)} {_numbers(g)}</figcaption>"
        f"{parts.figure(plots.heat_map(g), g.label)}</figure>"
        for g in arena
    ]
    return f'{_arena_title(arena)}{note}<div class="{"grid" if small else "grid large"}">{"".join(drawn)}</div>'


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
    return _arena_title(arena) + _legend(arena, style) + drawn + _notes([note for note in notes if note])


def _audit(groups: Sequence[Group], style: dict[str, plots.Style]) -> list[str]:
    cards = [(g, card.lines(g)) for g in groups]
    cards = [(g, lines) for g, lines in cards if lines]
    if not cards:
        return []
    some = any(line.met.startswith("met by") for _, lines in cards for line in lines)
    key = " ".join(map(_met, ["met", "not met", "not applicable", *([card.SOME] if some else [])]))
    drawn = [_overview(title, keys, cards, style) for title, keys in card.blocks(groups) if keys]
    drawn.append(f'<p class="key">{key}</p>')
    columns = [("Condition", ""), ("Measured", ""), ("Verdict", ""), ("Note", "")]
    opened = " open" if len(cards) == 1 else ""
    for g, lines in cards:
        body = "".join(
            f'<tr><th scope="row">{escape(line.label)}</th><td>{escape(line.value)}</td><td>{_met(line.met)}</td>'
            f'<td class="quiet">{escape(line.note)}</td></tr>'
            for line in lines
        )
        drawn.append(
            f'<details{opened}><summary>{_name(g, style)} <span class="aside">{escape(g.scenario)} · '
            f"{escape(card.tally(lines))}</span></summary>{parts.table('Audit card', columns, body, 'lines')}</details>"
        )
    return drawn


def _overview(
    title: str,
    keys: Mapping[str, str],
    cards: Sequence[tuple[Group, list[card.Line]]],
    style: dict[str, plots.Style],
) -> str:
    """Verdicts of all labels on some lines."""
    labels = {line.key: line.label for _, lines in cards for line in lines}
    heads = [(labels.get(key, named or key.replace("_", " ")), "tight") for key, named in keys.items()]
    body = "".join(
        f'<tr><th scope="row">{_name(g, style)}</th><td>{escape(g.scenario)}</td>'
        + "".join(_met_cell(lines, key) for key in keys)
        + "</tr>"
        for g, lines in cards
    )
    return f"<h3>{escape(title)}</h3>" + parts.table(title, [("Label", ""), ("Scenario", ""), *heads], body, "audit")


def _met_cell(lines: Sequence[card.Line], key: str) -> str:
    return f'<td class="tight">{_met(card.line_of(lines, key).met, short=True)}</td>'


def _met(met: str, short: bool = False) -> str:
    kinds = {"met": ("yes", "✓"), "not met": ("no", "✕"), "not applicable": ("none", words.UNDEFINED)}
    kinds |= dict.fromkeys((card.UNJUDGED, card.UNMEASURED), kinds["not applicable"])
    kind, glyph = kinds.get(met, ("some", "◐"))
    if short:
        return f'<span class="met {kind}" role="img" aria-label="{escape(met)}" title="{escape(met)}">{glyph}</span>'
    return f'<span class="met {kind}"><span aria-hidden="true">{glyph}</span> {escape(met)}</span>'


def _settings(groups: Sequence[Group]) -> str:
    body = "".join(
        f'<tr><th scope="row">{escape(row.owner)}</th><td><code>{escape(row.name)}</code></td>'
        f'<td>{escape(row.value)}</td><td class="quiet">{escape(row.chosen_by)}</td></tr>'
        for row in settings.rows(groups)
    )
    columns = [("Label", ""), ("Setting", ""), ("Value", ""), ("Chosen by", "")]
    return parts.table("Settings", columns, body, "lines")


def _name(g: Group, style: dict[str, plots.Style]) -> str:
    look = style[g.label]
    glyph = f'<span class="glyph" style="color:{look.colour}" aria-hidden="true">{look.glyph}</span>'
    return f'<span class="label">{glyph} {escape(g.label).replace(",", ",<wbr>")}</span>'


def _standing(g: Group) -> str:
    """Why a label is not ranked, if it is not."""
    if not g.complete:
        lacks = words.finished(len(g.seeds), len(g.asked))
        return f' <span class="mark bound" title="{lacks}">not ranked</span>'
    return ' <span class="mark bound" title="saw all tasks at once; not ranked">upper bound</span>' if g.mixed else ""


def _legend(arena: Sequence[Group], style: dict[str, plots.Style]) -> str:
    names = " ".join(f"<span>{_name(g, style)}{_standing(g)}</span>" for g in arena)
    return f'<p class="legend">{names}</p>'


def _unique(words_: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words_))
