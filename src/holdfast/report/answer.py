"""What a reader came for: the question, the answer in a sentence with its uncertainty, the ranked table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from holdfast.metrics import Asked, Group, desiderata
from holdfast.report import legends, parts, plots, table, verdicts, words

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
NAMED = 6  # labels that are named in a sentence; of more, their number is told
INTERVALS = "± is a 95% interval over seeds, absent where they agree."
RANKED = (
    "Bold: the best of its column, or not separable from it, as the interval of the difference, paired over seeds, "
    "includes 0."
)


def question(groups: Sequence[Group]) -> str:
    """'Which knows most after 5 tasks of split digits: finetune, ewc or gem?'"""
    whole = [g for g in groups if g.alone is None] or list(groups)
    after = _unique(_stream(g) for g in whole)
    stream = after[0] if len(after) == 1 else f"each of {len(after)} streams"
    methods = _unique(g.first.method for g in whole if not g.mixed) or [whole[0].first.method]
    if len(methods) == 1:
        return f"What does {methods[0]} still know after {stream}?"
    if len(methods) > NAMED:
        return f"Which of {len(methods)} methods knows most after {stream}?"
    return f"Which method knows most after {stream}: {', '.join(methods[:-1])} or {methods[-1]}?"


def _stream(g: Group) -> str:
    tasks = len(g.first.tasks)
    told = g.conditions("stream")
    named = " ".join(words.value(told[name]) for name in ("name", "data") if told.get(name) is not None)
    return f"{tasks} task{'s' if tasks > 1 else ''} of {named}"


def conditions(groups: Sequence[Group]) -> str:
    """Stream, scenario, protocol, network and seeds, without settings at their defaults."""
    if not groups:
        return ""
    scenarios = {g.scenario: f"{g.scenario} (task label {words.label_given(g)} at test)" for g in groups}
    seeds, methods = sorted({seed for g in groups for seed in g.asked}), _unique(g.first.method for g in groups)
    whole = any(g.alone is None for g in groups)
    facts = {
        "Stream": words.all_described([words.told(g, "stream") for g in groups if g.alone is None or not whole]),
        "Scenario": list(scenarios.values()),
        "Protocol": words.all_described([words.told(g, "protocol") for g in groups]),
        "Net": words.all_described([words.told(g, "net") for g in groups]),
        "Method": [", ".join(methods) if len(methods) <= 2 * NAMED else f"{len(methods)}, in the table"],
        "Seed": [", ".join(map(str, seeds))],
    }
    items = "".join(
        f"<div><dt>{name}{'s' if len(found) > 1 or (name in ('Seed', 'Method') and ',' in found[0]) else ''}</dt>"
        f"<dd>{'<br>'.join(map(escape, found))}</dd></div>"
        for name, found in facts.items()
    )
    return f'<dl class="facts">{items}</dl>'


def section(arenas: Sequence[Sequence[Group]], style: Mapping[str, plots.Style], asked: Sequence[Asked]) -> str:
    """A sentence and a table for each arena."""
    drawn = [_arena(arena, style) for arena in arenas]
    return parts.section("Summary", "", [*drawn, _key("".join(drawn), arenas), notes(table.lacking([], asked))])


def arena_title(arena: Sequence[Group]) -> str:
    g = arena[0]
    stream = escape(words.described(words.told(g, "stream")))
    return (
        f'<h3><span class="scenario">{escape(g.scenario)}</span> scenario <span class="aside">task label '
        f"{words.label_given(g)} at test · {stream}</span></h3>"
    )


def notes(told: Sequence[str]) -> str:
    return f'<ul class="notes">{"".join(f"<li>{escape(note)}</li>" for note in told)}</ul>' if told else ""


def _arena(arena: Sequence[Group], style: Mapping[str, plots.Style]) -> str:
    present = {metric for g in arena for metric in g.metrics()}
    columns = [metric for metric in COLUMNS if metric in present]
    rows = table.ranked(table.rows(arena, columns))
    leads = [row for row in rows if row.cells["acc"].mark]
    carded = any(g.first.card for g in arena)
    head = [("Label", ""), (table.title("acc"), "number"), *([("Behind the best", "number")] if leads else [])]
    head += [(table.title(m), "number") for m in columns if m != "acc"] + [("Seeds", "number")]
    head += [("Card", "card")] if carded else []
    body = "".join(
        f'<tr><th scope="row">{legends.label(row.group, style)}{legends.standing(row.group)}'
        f'<span class="half">{escape(row.group.scenario)}, task label {words.label_given(row.group)}</span></th>'
        + _cell(row.cells["acc"])
        + (_behind(leads[0], row) if leads else "")
        + "".join(_cell(cell) for metric, cell in row.cells.items() if metric != "acc")
        + f'<td class="number"{parts.sortable(len(row.group.seeds))}>{row.seeds}</td>'
        + (verdicts.five(row.group) if carded else "")
        + "</tr>"
        for row in rows
    )
    said = f'<p class="finding">{_finding(rows)}</p>{parts.table("Summary", head, body, "summary")}'
    return f"{arena_title(arena)}{said}{notes(table.lacking(arena))}"


def _cell(cell: table.Cell) -> str:
    mean, plus_minus, half = cell.text.partition(" ± ")
    half = f' <span class="half">± {escape(half)}</span>' if plus_minus else ""
    return f'<td class="number {cell.mark}"{parts.sortable(cell.found.mean)}>{escape(mean)}{half}</td>'


def _behind(best: table.Row, row: table.Row) -> str:
    """What the table says of a label beside the one with the highest ACC."""
    mark = row.cells["acc"].mark
    if row is best:
        chip = "best" if mark == "best" else "highest"
        return f'<td class="number"{parts.sortable(0)}><span class="mark best">{chip}</span></td>'
    found = table.behind(best.group, row.group)
    if row.group.mixed or not row.group.complete or found.mean is None:
        return f'<td class="number quiet"{parts.sortable(None)}>{words.UNDEFINED}</td>'
    chip = '<span class="mark tie">not separable from the best</span>' if mark else ""
    half = "" if found.half is None else f' <span class="half">± {words.number(found.half, "acc")}</span>'
    number = f"<span>{words.number(found.mean, 'acc')}{half}</span>"
    return f'<td class="number"{parts.sortable(found.mean)}><div class="behind">{chip}{number}</div></td>'


def _finding(rows: Sequence[table.Row]) -> str:
    """What the table says about accuracy, in a sentence."""
    whole = [row for row in rows if row.group.complete]
    if len(whole) < len(rows) and sum(not row.group.mixed for row in whole) < 2:
        return "Fewer than two labels finished all their seeds, so nobody is ranked."
    seeds = max(len(row.group.seeds) for row in whole)
    if seeds < 2:
        return "One seed: there are no intervals, and nobody is called a winner."
    leaders = [row for row in rows if row.cells["acc"].mark]
    if not leaders:
        return f"{_alone(rows)}{seeds} seeds, 95% intervals; differences are paired over seeds."
    best, *level = leaders
    of = "" if len(whole) == len(rows) else " of those that finished all their seeds"
    acc = words.spread(best.cells["acc"].found, "acc")
    said = f"{_named(best)} has the highest ACC{of}, {acc}"
    if not level:
        second = next(row for row in rows if row is not best)
        return f"{said}, ahead of {_named(second)} by {_apart(best, second)}."
    if len(level) == 1:
        return f"{said}, but {_named(level[0])} is not separable from it: they differ by {_apart(best, level[0])}."
    names = list(map(_named, level))
    named = names if len(names) <= NAMED else [*names[: NAMED - 1], f"{len(names) - NAMED + 1} more"]
    return (
        f"{said}, but {', '.join(named[:-1])} and {named[-1]} are not separable from it: the 95% interval of each "
        f"difference, paired over {seeds} seeds, includes 0."
    )


def _alone(rows: Sequence[table.Row]) -> str:
    """The one result there is, where nobody is compared."""
    found = rows[0].cells["acc"].found
    if len(rows) > 1 or found.mean is None:
        return ""
    return f"{_named(rows[0])} ends at an ACC of {words.spread(found, 'acc')}. "


def _apart(best: table.Row, other: table.Row) -> str:
    """'0.068 (95% interval 0.010 to 0.126, paired over 3 seeds)'"""
    mean, low, high = table.behind(best.group, other.group)
    common = len(set(best.group.seeds) & set(other.group.seeds))
    told = words.number(mean, "acc")
    if low is None:
        return f"{told} (with each of {common} seeds)"
    limits = f"{words.number(low, 'acc')} to {words.number(high, 'acc')}"
    return f"{told} (95% interval {limits}, paired over {common} seeds)"


def _named(row: table.Row) -> str:
    return f"<b>{escape(row.group.label)}</b>"


def _key(drawn: str, arenas: Sequence[Sequence[Group]]) -> str:
    """What ±, bold numbers and signs mean, where there are any."""
    said = [INTERVALS] if "±" in drawn else []
    said += [RANKED] if 'class="mark best"' in drawn else []
    said += [card] if (card := _card_key(arenas)) else []
    return f'<p class="note small">{" ".join(said)}</p>' if said else ""


def _card_key(arenas: Sequence[Sequence[Group]]) -> str:
    if not any(g.first.card for arena in arenas for g in arena):
        return ""
    lines = "; ".join(f"{i} {said.lower()}" for i, said in enumerate(desiderata.MINIMAL.values(), 1))
    return f'Card: the conditions of paper 001, in order: {escape(lines)}. <a href="#audit">All of them</a>.'


def _unique(found: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(found))
