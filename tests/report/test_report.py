from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from holdfast import metrics, report
from holdfast.errors import BadInput
from holdfast.report import card, plots, settings, table, words

EVIL = "<script>alert(1)</script>"
SCRIPTS = 3  # the theme before the page is painted, plotly once, and the lines that draw


class Page(HTMLParser):
    """A page's scripts, its other text, its figures, and everything it would fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.figures: list[dict] = []
        self.words: list[str] = []
        self.fetched: list[str] = []
        self.open: list[tuple[str, dict]] = []
        self.feed(text.replace("<wbr>", ""))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.fetched += [found[name] for name in ("src", "href") if name in found and not found[name].startswith("#")]
        if tag in ("link", "iframe", "object"):
            self.fetched.append(tag)
        if tag not in ("meta", "br"):
            self.open.append((tag, found))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        tag, attrs = self.open[-1] if self.open else ("", {})
        if tag == "script" and attrs.get("type") == "application/json":
            self.figures.append(json.loads(data))
        elif tag == "script":
            self.scripts.append(data)
        elif tag != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


def test_the_page_is_whole_and_fetches_nothing(records):
    page = Page(report.html(records, "Five methods"))
    assert page.open == []
    assert page.fetched == []
    assert len(page.scripts) == SCRIPTS


def test_the_page_says_what_was_run_without_settings_at_their_defaults(records):
    text = Page(report.html(records, "Five methods")).text
    facts = ("Five methods", "Stream split: data digits, tasks 5", "Protocol online: lr by val:first-task", "Net mlp M")
    assert all(fact in text for fact in (*facts, "Seeds 0, 1, 2"))
    assert "class (task label hidden at test)" in text
    assert "task (task label given at test)" in text
    captions = text.partition("Every value, and who chose it")[0]
    assert "batch 10" not in captions and "hidden 100" not in captions


def test_a_value_chosen_during_the_run_is_not_shown_as_a_condition(records):
    assert "lr by val:first-task" in Page(report.html(records)).text


def test_names_cannot_inject(fake):
    evil = [fake(EVIL, seed=s, scenario=scenario) for s in range(2) for scenario in ("class", "task")]
    evil = [dataclasses.replace(r, stream={"name": EVIL, "x": "</script><img src=x>"}) for r in evil]
    evil = [
        dataclasses.replace(
            r,
            settings={EVIL: {"value": EVIL, "chosen_by": EVIL}},
            net={"name": EVIL},
            card={EVIL: {"label": EVIL, "value": {EVIL: EVIL}, "unit": EVIL, "met": None, "note": EVIL}},
        )
        for r in evil
    ]
    text = report.html(evil, EVIL)
    page = Page(text)
    assert EVIL not in text
    assert len(page.scripts) == SCRIPTS and page.fetched == []
    assert EVIL in page.text
    assert any("&lt;script&gt;" in trace.get("name", "") for figure in page.figures for trace in figure["data"])


def test_data_in_a_script_cannot_end_it(fake):
    text = report.html([fake(EVIL, seed=s) for s in range(2)])
    embedded = re.findall(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)
    assert embedded and not any("<" in data for data in embedded)


def test_every_accuracy_stands_beside_its_scenario(records):
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", report.html(records).split("<h2>Accuracy over tasks")[0])
    assert len(rows) == 10
    beside = r'<span class="half">(class, task label hidden|task, task label given)</span></th>'
    assert all(re.search(beside, row) for row in rows)


def test_scenarios_are_never_ranked_against_each_other(records):
    found = {"class": 0, "task": 0}
    for arena in table.arenas_of(records):
        (scenario,) = {g.scenario for g in arena}
        found[scenario] += any(row.cells["acc"].mark for row in table.rows(arena, ["acc"]))
    assert found == {"class": 1, "task": 1}


def test_the_leader_and_its_ties_are_marked_and_the_upper_bound_is_not(fake):
    better = [dataclasses.replace(fake("gem", seed=s), method="best") for s in range(3)]
    better = [dataclasses.replace(r, R=np.minimum(r.R + 0.1, 1)) for r in better]
    others = [fake(m, seed=s) for m in ("gem", "finetune", "iid") for s in range(3)]
    (arena,) = table.arenas_of(better + others)
    marks = {row.group.label: row.cells["acc"].mark for row in table.rows(arena, ["acc"])}
    assert marks == {"best": "best", "gem": "", "finetune": "", "iid": ""}
    text = Page(report.html(better + others)).text
    assert "best has the highest ACC" in text and "all tasks at once" in text


def test_one_seed_names_no_winner(fake):
    records = [fake("gem"), fake("finetune")]
    text = report.html(records)
    assert 'class="mark best"' not in text and 'class="mark tie"' not in text and "±" not in text
    assert "nobody is called a winner" in text


def test_one_method_one_seed_one_task_has_dashes_for_what_is_undefined(fake):
    text = report.html([fake("gem", tasks=1)])
    page = Page(text)
    assert text.count('<td class="number " data-sort="">–</td>') == 3  # BWT, FWT, forgetting
    assert "NaN" not in page.text and "None" not in page.text
    assert len(page.figures) == 1  # its matrix; there is nothing to draw over tasks, nobody to compare costs with


def test_figures_are_strict_json_for_any_shape(fake):
    for tasks in (1, 2, 10, 20):
        for figure in Page(report.html([fake(m, tasks=tasks) for m in ("gem", "iid")])).figures:
            json.dumps(figure, allow_nan=False)


def test_nothing_to_report_is_bad_input():
    for draw in (report.html, report.text, report.latex):
        with pytest.raises(BadInput, match="no records to report"):
            draw([])


def test_writing_leaves_one_whole_file(fake, tmp_path):
    path = report.write([fake("gem")], tmp_path / "new" / "report.html", "One")
    assert path.read_text(encoding="utf-8") == report.html([fake("gem")], "One")
    assert [p.name for p in path.parent.iterdir()] == ["report.html"]


def test_a_failed_write_keeps_the_old_file(fake, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        report.write([fake("gem")], path)
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"] and path.read_text() == "old"


def test_a_heat_map_shows_the_mean_over_seeds_on_a_fixed_scale(fake):
    runs = [fake("gem", seed=s) for s in range(3)]
    (group,) = metrics.group(runs)
    heat, numbers = plots.heat_map(group).data
    np.testing.assert_allclose(np.array(heat.z), np.mean([r.R for r in runs], axis=0))
    assert (heat.zmin, heat.zmax) == (0, 1)
    assert len(numbers.text) == 25
    assert plots.heat_map(group).layout.yaxis.ticktext[0] == "after task 1"


def test_many_tasks_are_drawn_without_numbers(fake):
    (group,) = metrics.group([fake("gem", tasks=20)])
    assert [trace.type for trace in plots.heat_map(group).data] == ["heatmap"]


@pytest.mark.parametrize("tasks", [1, 2, 10, 11, 12, 20, 23, 50, 100, 1000])
def test_ticks_are_few_and_have_the_first_and_the_last_task(tasks):
    ticks = plots.task_ticks(tasks)
    assert ticks[0] == 1 and ticks[-1] == tasks and ticks == sorted(set(ticks)) and len(ticks) <= 10
    assert plots.task_ticks(20) == [1, 5, 10, 15, 20]


def test_curves_are_means_over_the_tasks_seen_so_far(fake):
    runs = [fake("gem", seed=s) for s in range(3)]
    arenas = metrics.arenas(metrics.group(runs))
    band, line = plots.seen_tasks(arenas[0], plots.styles(arenas)).data
    expected = [np.mean([r.R[i, : i + 1].mean() for r in runs]) for i in range(5)]
    np.testing.assert_allclose(line.y, expected)
    assert band.fill == "toself" and len(band.y) == 10
    (_, first) = plots.first_task(arenas[0], plots.styles(arenas)).data
    np.testing.assert_allclose(first.y, np.mean([r.R[:, 0] for r in runs], axis=0))


def test_a_point_on_which_all_seeds_agree_leaves_the_band_of_the_others(fake):
    runs = [fake("gem", seed=s) for s in range(3)]
    runs = [dataclasses.replace(r, R=np.vstack([[1.0, 0, 0, 0, 0], r.R[1:]])) for r in runs]
    arenas = metrics.arenas(metrics.group(runs))
    band, line = plots.first_task(arenas[0], plots.styles(arenas)).data
    assert band.y[0] == band.y[-1] == line.y[0] == 1.0
    assert all(high > low for high, low in zip(band.y[1:5], band.y[-2:4:-1], strict=True))
    same = [dataclasses.replace(r, R=np.ones((5, 5))) for r in runs]
    arenas = metrics.arenas(metrics.group(same))
    assert [trace.fill for trace in plots.first_task(arenas[0], plots.styles(arenas)).data] == [None]


def test_a_number_on_which_all_seeds_agree_stands_alone(fake):
    runs = [fake(m, seed=s) for m in ("gem", "finetune") for s in range(3)]
    runs = [dataclasses.replace(r, R=np.tile([0.5 + 0.1 * r.seed] * 5, (5, 1))) for r in runs]
    (arena,) = table.arenas_of(runs)
    for row in table.rows(arena, ["acc", "bwt"]):
        assert row.cells["bwt"].text == "0.000" and " ± " in row.cells["acc"].text
    text = report.text(runs)
    assert re.search(r"gem .* 0\.600 ± 0\.248 tie +0\.000 tie +0\.000 tie ", text)
    assert "± is a 95% interval over seeds, absent where they agree" in text
    for figure in Page(report.html(runs)).figures:
        json.dumps(figure, allow_nan=False)
    assert "0.600 $\\pm$ 0.248" in report.latex(runs)


def test_a_method_looks_the_same_in_every_arena(records):
    arenas = metrics.arenas(metrics.group(records))
    style = plots.styles(arenas)
    assert style["gem/class"] == style["gem/task"]
    assert len({style[g.label] for g in arenas[0]}) == 5


@pytest.mark.parametrize("spread", [1.0, 1.2, 3.0, 40.0, 1e4, 1e9])
def test_cost_axes_have_round_ticks_inside_their_range(spread):
    low, high, ticks = plots._log_ticks(0.7, 0.7 * spread)
    assert low < 0.7 and high > 0.7 * spread
    assert 2 <= len(ticks) <= 5 and all(low <= tick <= high for tick in ticks)


def points(figure):
    """Of a figure of costs: label -> (cost, ACC, whether it is ringed); and the names or numbers beside them."""
    drawn = {t.name: (t.x[0], t.y[0], t.marker.line.width > 0) for t in figure.data if t.mode == "markers"}
    return drawn, [note.text for note in figure.layout.annotations]


def test_what_is_pareto_optimal_is_ringed_and_named_and_joined(fake):
    (arena,) = table.arenas_of([fake(m, seed=s) for m in ("finetune", "ewc", "gem", "er", "iid") for s in range(3)])
    figure = plots.cost(arena, "train_seconds", plots.styles([arena]))
    drawn, beside = points(figure)
    names = ["finetune", "ewc", "er", "gem"]
    assert [label for label, (_, _, ringed) in drawn.items() if ringed] == ["finetune", "ewc", "gem", "er"]
    assert not drawn["iid"][2]  # cheap and accurate, but what saw all tasks at once is no rival
    (stairs,) = [trace for trace in figure.data if trace.name == "front"]
    assert list(zip(stairs.x, stairs.y, strict=True))[:4] == [drawn[name][:2] for name in names]
    assert beside == names
    page = Page(report.html([r for g in arena for r in g.records])).text
    named = ", ".join(f"{i} {name}" for i, name in enumerate(names, 1))
    assert f"Training time, Pareto-optimal from the cheapest to the most accurate: {named}." in page


def test_names_that_are_long_or_lie_on_each_other_become_numbers(fake):
    def beside(*methods):
        (arena,) = table.arenas_of([fake(m) for m in methods])
        return points(plots.cost(arena, "flops", plots.styles([arena])))[1]

    assert beside("finetune", "er") == ["finetune", "er"]
    assert beside("finetune", "a method with a long name") == ["1", "2"]
    assert beside("one", "two") == ["1", "2"]  # equal, and so both optimal


def test_the_card_of_a_label_joins_its_seeds(fake):
    (group,) = metrics.group([fake("gem", seed=s) for s in range(3)])
    lines = {line.key: line for line in card.lines(group)}
    assert lines["tasks"].value == "5" and lines["tasks"].met == "met"
    assert lines["resemblance"].value == "0.63 bits (0.61 bits to 0.65 bits)"
    assert lines["memory"].value == "final: 1.39 MB, slope per task: 260 kB" and lines["memory"].met == "not met"
    assert lines["time"].met == "met by 2 of 3 seeds"
    assert (lines["passes"].value, lines["passes"].met) == ("–", "not applicable")


def test_settings_shared_by_all_are_written_once_with_who_chose_them(fake):
    groups = metrics.group([fake(m, seed=s) for m in ("gem", "er") for s in range(3)])
    rows = [(row.owner, row.name, row.value, row.chosen_by) for row in settings.rows(groups)]
    assert ("all", "protocol.lr", "0.03 (seed 0); 0.1 (seeds 1, 2)", "val:first-task") in rows
    assert ("gem", "memories", "256", "default") in rows
    assert ("er", "memories", "500", "default") in rows
    assert len([row for row in rows if row[1] == "protocol.batch"]) == 1


def test_the_text_table_has_a_line_per_label(records):
    text = report.text(records)
    lines = text.splitlines()
    assert lines[0].split() == [
        "label", "scenario", "task", "label", "seeds", "ACC", "BWT", "forgetting", "memory", "training"
    ]  # fmt: skip
    (gem,) = [line for line in lines if line.startswith("gem/task")]
    assert re.search(r"gem/task\s+task\s+given\s+3/3\s+0\.\d{3} ± 0\.\d{3} tie\s+−0\.\d{3} ± ", gem)
    assert "iid/class, iid/task: all tasks at once, not ranked." in text
    assert max(map(len, lines)) <= 130


def test_the_latex_table_escapes_and_balances(fake):
    text = report.latex(
        [fake(r"a_b%&\{$^~<#", seed=s) for s in range(2)] + [fake("finetune", seed=s) for s in range(2)]
    )
    assert r"a\_b\%\&\textbackslash{}\{\$\textasciicircum{}\textasciitilde{}\textless{}\#" in text
    body = [line for line in text.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in body} == {8}
    assert r"\toprule" in text and r"\bottomrule" in text and r"$\pm$" in text
    text.replace("−", "").encode("ascii")


def test_numbers_read_well():
    assert words.number(None, "acc") == "–"
    assert words.number(-0.0001, "bwt") == "0.000"
    assert words.number(-0.25, "bwt") == "−0.250"
    assert [words.in_bytes(n) for n in (0, 999, 1000, 999_900, 2.5e9)] == ["0 B", "999 B", "1 kB", "1 MB", "2.5 GB"]
    assert (words.in_bytes(1e-12), words.in_seconds(-0.002), words.in_seconds(1e-15)) == ("0 B", "−2 ms", "0 s")
    assert [words.in_seconds(n) for n in (0, 0.0034, 90, 150, 7300)] == ["0 s", "3.4 ms", "90 s", "2.5 min", "2.03 h"]


def test_failed_runs_are_told(fake):
    page = Page(report.html([fake("gem")], failures={"ewc-s0-ab12": f"the loss became inf {EVIL}"}))
    assert "Failed runs" in page.text and f"ewc-s0-ab12 the loss became inf {EVIL}" in page.text
    assert len(page.scripts) == SCRIPTS
    assert "Failed runs" not in report.html([fake("gem")])


def asked_for(records, title="gem", seeds=3):
    """Seeds that were asked for, of which only these records finished."""
    failed = tuple(seed for seed in range(seeds) if seed not in [r.seed for r in records])
    return metrics.Asked(title, tuple(range(seeds)), failed, tuple(records))


def by_method(fake, methods, lacking=(), lost=2):
    return [asked_for([fake(m, seed=s) for s in range(lost if m in lacking else 0, 3)], m) for m in methods]


def drawn(asked):
    records = [record for each in asked for record in each.records]
    return Page(report.html(records, asked=asked)).text


def test_the_first_sentence_is_about_those_that_finished_all_their_seeds(fake):
    text = drawn(by_method(fake, ["er", "finetune", "gem"], lacking=["gem"]))
    assert "er has the highest ACC of those that finished all their seeds, " in text
    assert "all their seeds, 0." in text and re.search(r", ahead of finetune by 0\.\d+ \(95% interval", text)
    assert re.search(r"er class, task label hidden 0\.\d+ ± 0\.\d+ best .* 3/3", text)
    assert re.search(r"gem not ranked class, task label hidden 0\.\d+ – .* 1/3", text)
    assert "gem: 1 of 3 seeds finished, not ranked." in text and "· class · 1 of 3 seeds finished" in text
    text = drawn(by_method(fake, ["er", "finetune", "gem"]))
    assert "the highest ACC" in text and "finished all their seeds" not in text and "not ranked" not in text


def test_the_first_sentence_ranks_nobody_where_fewer_than_two_finished_all_their_seeds(fake):
    for lacking in (["gem"], ["gem", "er"]):
        text = drawn(by_method(fake, ["er", "gem", "iid"], lacking)).partition(" Accuracy over tasks Lines")[0]
        assert "Fewer than two labels finished all their seeds, so nobody is ranked." in text
        assert "highest" not in text and "separable" not in text and " best " not in text
    one_left = drawn(by_method(fake, ["er", "gem"], ["gem", "er"]))
    assert "Fewer than two labels" in one_left and "One seed" not in one_left


def test_what_was_asked_for_in_vain_is_told_whatever_it_is_called(fake):
    er, gem = by_method(fake, ["er", "gem"], ["gem"], lost=3)
    gem = dataclasses.replace(gem, title=EVIL)
    text = report.html(er.records, asked=[er, gem])
    assert f"{EVIL}: 0 of 3 seeds finished, not ranked." in Page(text).text and EVIL not in text
    assert f"{EVIL}: 0 of 3 seeds finished, not ranked." in report.text(er.records, [er, gem])
    assert r"\textless{}script\textgreater{}" in report.latex(er.records, [er, gem])


def test_names_replace_labels_where_they_tell_the_groups_apart(fake):
    runs = [fake("gem", seed=s) for s in range(2)] + [fake("finetune", seed=s) for s in range(2)]
    assert [g.label for g in metrics.group(runs, ["A, 1", "A, 1", "B, 1", "B, 1"])] == ["A, 1", "B, 1"]
    assert [g.label for g in metrics.group(runs, ["A", "A", "A", "A"])] == ["gem", "finetune"]
    assert [g.label for g in metrics.group(runs, ["A", "A", "", ""])] == ["gem", "finetune"]


def test_many_protocols_share_a_line(fake):
    runs = [
        fake(m, protocol={"name": "online", "lr": lr, "batch": 10}, settings={})
        for m, lr in (("gem", 0.1), ("ewc", 0.01), ("finetune", 0.003))
    ]
    assert "Protocol online: lr 0.1 or 0.01 or 0.003, batch 10" in Page(report.html(runs)).text


def number(**values) -> dict:
    usual = {"row": "GEM", "column": "1 epoch", "metric": "acc", "published": 0.86, "measured": 0.8631, "low": 0.85,
             "high": 0.876, "tolerance": 0.02, "within": True, "emulated": None, "judged": True,
             "scenario": "domain, task label hidden"}  # fmt: skip
    return usual | values


LINES = {"kind": "lines", "title": "First task", "axis": "after task", "x": [1, 2, 3]}
SERIES = {"name": "GEM", "scenario": "domain, task label hidden", "mean": [0.9, 0.8, 0.7]}


def test_a_reproduction_stands_on_the_page_as_published_and_measured(fake):
    cells = [
        number(),
        number(row="EWC", measured=0.5, low=None, high=None, emulated=0.55, within=False),
        number(row=EVIL, published=None, within=None, tolerance=None, judged=False, metric="seconds"),
    ]
    choices = [
        {"place": "EWC", "chosen": {"strength": 3.0}, "seconds": 12.0, "flops": 2e9,
         "trials": [{"settings": {"strength": 3.0}, "acc": 0.5}, {"settings": {"strength": 30.0}, "acc": None}]}
    ]  # fmt: skip
    bars = {"kind": "bars", "title": EVIL, "axis": "", "x": ["ACC"], "series": [
        {"name": "GEM", "scenario": EVIL, "mean": [0.5], "low": [None], "high": [None]}]}  # fmt: skip
    lines = {**LINES, "series": [{**SERIES, "low": [0.8, 0.7, 0.6], "high": [1.0, 0.9, 0.8]}]}
    made = report.Reproduction("gem/table3", "ACC/BWT", "laptop", cells, [f"A note {EVIL}"], choices, [bars, lines])
    text = report.html([fake("gem")], reproduction=made)
    page = Page(text)
    assert "1 of 2 judged numbers are within" in page.text
    assert "GEM 1 epoch ACC domain task label hidden 0.86 0.863 ± 0.013 – ✓ yes ± 0.02" in page.text
    assert "EWC 1 epoch ACC domain task label hidden 0.86 0.500 0.550 ✕ no ± 0.02" in page.text
    assert f"A note {EVIL}" in page.text and EVIL not in text and len(page.scripts) == SCRIPTS
    assert "strength: 3 → 0.500; strength: 30 → failed 2 12 s 2 G" in page.text
    assert [len(figure["data"]) for figure in page.figures[:2]] == [1, 2]


def test_numbers_are_as_fine_where_nothing_is_published_and_as_printed_where_they_are_large(fake):
    cells = [
        number(metric="last − first", published=None, measured=-0.3512, low=None, high=None, within=None),
        number(metric="FLOPs (T)", published=1876.0, measured=12.5, low=None, high=None, within=None),
    ]
    page = Page(report.html([fake("gem")], reproduction=report.Reproduction("a/b", "t", "smoke", cells)))
    assert "– | −0.351" in page.text and "1876 | " in page.text


def test_a_reproduction_is_read_back_or_refused():
    made = report.Reproduction("a/b", "t", "smoke", [number()])
    assert report.Reproduction.read(dataclasses.asdict(made)) == made
    for spoiled in ({}, {**dataclasses.asdict(made), "cells": [{}]}, {**dataclasses.asdict(made), "figures": [{}]}):
        with pytest.raises(BadInput, match="not one of Holdfast's"):
            report.Reproduction.read(spoiled)


def test_a_network_given_as_a_module_is_named_not_printed(fake):
    net = {"name": "Sequential", "module": "Sequential(\n  (0): Linear()\n)", "weights": "ab12", "parameters": 7}
    assert "Net Sequential Method" in Page(report.html([fake("gem", net=net)])).text


def test_the_audit_has_the_papers_conditions_apart_from_its_harder_ones(fake):
    line = {"value": 1, "unit": None, "met": True, "note": ""}
    lines = {"shared_head": line | {"label": "One head"}, "memory": line | {"label": "Flat"}, "odd": line}
    page = report.html([fake("gem", card=lines)])
    heads = [re.findall(r"<th [^>]*tight[^>]*>(.*?)</th>", part) for part in page.split('<table class="audit">')[1:]]
    assert [len(columns) for columns in heads] == [5, 6, 1]
    assert "One head" in heads[0] and "Flat" in heads[1] and heads[2] == ["odd"]
    assert "Cross-task resemblances" in heads[0] and 'aria-label="not measured"' in page
