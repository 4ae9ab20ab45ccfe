"""What `holdfast metrics` does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.api import Comparison
from holdfast.commands.experiment import collected
from holdfast.commands.terminal import print_json, print_table
from holdfast.errors import BadInput
from holdfast.metrics import SOURCES, Group, formulas, interval, over_seeds, unfinished, who
from holdfast.metrics.formulas import NAMES, OURS
from holdfast.report import words

Values = dict[str, list[float | None]]  # of each metric, in order of seeds


def show_metrics(folder: str, source: str | None, as_json: bool) -> None:
    """The metrics of every result in an output folder by the formulas of one source, or of all."""
    faults: list[str] = []
    sources, found = list(SOURCES), Comparison(())
    if source is not None:
        with collected(faults):
            formulas(source)
            sources = [source]
    with collected(faults):
        found = Comparison.read(folder)
    if faults:
        raise BadInput(*faults)
    groups, asked = found.groups(), found.asked()
    if as_json:
        methods = {g.label: {**who(g), "formulas": _entries(g, sources)} for g in groups}
        print_json({"schema": 1, "ours": OURS, "methods": methods, **unfinished(asked)})
        return
    _print_metrics(groups, sources)
    for each in asked:
        if not each.records:
            print(f"{each.title}: {words.finished(0, len(each.seeds))}, so there are no metrics.")


def _values(group: Group, source: str) -> Values:
    return {name: [formula(record) for record in group.records] for name, formula in formulas(source).items()}


def _entries(group: Group, sources: Sequence[str]) -> dict[str, Any]:
    return {source: {name: over_seeds(values) for name, values in _values(group, source).items()} for source in sources}


def _print_metrics(groups: Sequence[Group], sources: Sequence[str]) -> None:
    shown = [name for name in NAMES if any(name in SOURCES[source] for source in sources)]
    rows = []
    for g in groups:
        for source in sources:
            values = _values(g, source)
            cells = [words.spread(interval(values[name]), "acc") if name in values else "" for name in shown]
            seeds = f"{len(g.seeds)}/{len(g.asked)}"
            called = f"{source} (ours)" if source == OURS else source
            rows.append([g.label, g.scenario, words.label_given(g), seeds, called, *cells])
    print_table(["label", "scenario", "task label", "seeds", "as", *(NAMES[name] for name in shown)], rows)
    print(
        f"\n± is a 95% interval over seeds; {words.UNDEFINED}: undefined, or accuracies that it needs were not scored."
    )
    if len(sources) > 1:
        print("Blank: the source has no such metric. docs/formulas.md has the formulas.")
