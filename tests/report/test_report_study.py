"""Figures with panels and the grey-scale table of papers 003 and 004."""

from __future__ import annotations

import dataclasses

import pytest

import holdfast as hf
from holdfast import report
from holdfast.metrics.panels import Mark, Panel, curve
from holdfast.papers.base import Figure, forgets
from holdfast.report import courses, plots, shades

SCENARIO = "class, task label hidden"
MEAN, MODE = "D1 ∪ D2, mean merge", "D1 ∪ D2, mode merge"


def panel(title: str = "D5-5a", merged: bool = False) -> dict:
    first, later = [(t, 0.1 + 0.08 * t) for t in range(11)], [(10 + t, 0.09 * t) for t in range(11)]
    curves = [curve("D1", [first, first]), curve("D2", [later, later])]
    marks = [Mark(12, "stopped")]
    if merged:
        curves += [curve(name, [[(a / 10, 0.5 + a / 30) for a in range(11)]], "alpha") for name in (MEAN, MODE)]
        marks += [Mark(0.5, "share of D2", over="alpha"), Mark(0.7, "best mean", MEAN, "alpha")]
    else:
        curves += [curve("D1 ∪ D2", [later, later])]
    return dataclasses.asdict(Panel(title, SCENARIO, curves, [0.0, 10.0], 0.97, marks))


def figure(kind: str, *panels: dict) -> dict:
    return dataclasses.asdict(Figure(kind, f"A {kind}", [], "epoch", [])) | {"panels": list(panels)}


def cell(row: str = "fc", column: str = "D5-5a", threshold: float | None = 0.5, values=(0.3, 0.31), **fields) -> dict:
    mean = sum(values) / len(values) if values else None
    usual = {"row": row, "column": column, "metric": "best", "published": 0.47, "measured": mean, "low": None,
             "high": None, "tolerance": None, "within": None, "emulated": None, "judged": False, "setting": "",
             "scenario": SCENARIO if values else None, "threshold": threshold,
             "verdict": forgets(values, threshold)}  # fmt: skip
    return usual | fields


def made(cells=(), figures=()) -> report.Reproduction:
    return report.Reproduction("apps/table3", "Who forgets", "laptop", list(cells), figures=list(figures))


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("threshold", [0.5, 0.9])
def test_every_shade_is_readable_and_lighter_for_more(threshold):
    shown = [shades.shade(value / 100, threshold) for value in range(101)]
    for back, ink in shown:
        dark, light = sorted((luminance(back), luminance(ink)))
        assert (light + 0.05) / (dark + 0.05) >= 4.5
    lights = [luminance(back) for back, _ in shown]
    assert lights == sorted(lights) and lights[-1] == 1
    assert len(set(lights[: round(100 * threshold)])) == 1  # all that is below the threshold is equally black


def test_a_verdict_needs_an_interval_that_excludes_the_threshold():
    assert forgets([0.88, 0.92, 0.91], 0.9) == "undecided"
    assert forgets([0.2, 0.21, 0.2], 0.9) == "forgetting" and forgets([0.95, 0.951, 0.95], 0.9) == "none"
    assert forgets([0.4], 0.5) == "forgetting" and forgets([0.5], 0.5) == "none"
    assert forgets(None, 0.5) is None and forgets([0.4], None) is None


def test_the_grey_table_says_who_forgets_and_what_is_absent():
    cells = [
        cell(), cell(metric="last", threshold=None, values=(0.1, 0.1), verdict=None, published=0.1),
        cell(column="DP10-10", values=(0.97, 0.98), published=0.2, emulated=0.99),
        cell(row="EWC", values=(), setting="EMNIST is absent"),
        cell(row="EWC", column="DP10-10", values=(0.49, 0.52), low=0.4, high=0.6),
    ]  # fmt: skip
    text = shades.table(cells)
    assert "<b>1</b> forgetting, <b>1</b> none, <b>1</b> undecided" in text
    assert "In 2 of them the published number gives another verdict" in text
    assert "EMNIST is absent" in text and ".30/.10" in text and "authors .99" in text and "± .10" in text
    assert text.count(SCENARIO) == 2  # once per column: all rows share it
    assert shades.table([cell(threshold=None, verdict=None)]) == ""


def test_the_scenario_stands_beside_rows_where_columns_mix_it():
    cells = [cell(row=row, column=c, scenario=s) for row, s in (("a", "class, x"), ("b", "domain, x")) for c in "12"]
    text = shades.table(cells)
    assert text.index("class, x") > text.index("<tbody>") and text.count("domain, x") == 1


def test_a_course_is_white_in_training_and_grey_in_retraining():
    drawn = courses.course(panel(), "epoch")
    grey, stop = drawn.layout.shapes
    assert (grey.x0, grey.x1, grey.fillcolor) == (10, 20, courses.SHADE) and stop.x0 == 12
    lines = {trace.name: trace.line.color for trace in drawn.data if trace.name}
    assert lines == {
        "D1": plots.PALETTE[0], "D2": plots.PALETTE[2], "D1 ∪ D2": plots.PALETTE[6], "all tasks at once": plots.INK
    }  # fmt: skip
    assert [trace.line.dash for trace in drawn.data].count("dash") == 1  # all at once
    merged = courses.course(panel(merged=True), "epoch")
    assert {trace.name for trace in merged.data if trace.name} == {"D1", "D2", "all tasks at once"}


def test_a_tuning_curve_marks_the_share_and_the_best():
    drawn = courses.tuning(panel(merged=True), "α")
    assert [(shape.x0, shape.line.color) for shape in drawn.layout.shapes] == [
        (0.5, plots.INK), (0.7, courses.style_of(MEAN).colour)
    ]  # fmt: skip
    assert {trace.name for trace in drawn.data if trace.name} == {MEAN, MODE, "all tasks at once"}
    assert courses.style_of(MEAN).colour != courses.style_of(MODE).colour


def test_a_waterfall_has_a_ribbon_per_curve_and_a_white_bar_for_all_at_once():
    drawn = courses.waterfall([panel("MNIST", merged=True), panel("FashionMNIST", merged=True)], "epoch")
    kinds = [trace.type for trace in drawn.data]
    assert kinds.count("surface") == 8 and kinds.count("mesh3d") == 2
    assert {trace.color for trace in drawn.data if trace.type == "mesh3d"} == {"#ffffff"}
    assert drawn.layout.scene.yaxis.ticktext == ("MNIST", "FashionMNIST")
    assert drawn.layout.scene.xaxis.ticktext == ("0", "10", "20", "α 0", "α 1")
    plain = courses.waterfall([panel()], "epoch")
    blue = next(t for t in plain.data if t.type == "surface")
    assert max(blue.x[0]) == 10  # D1 is blue while it is trained; then the union speaks


def test_parts_beyond_the_second_look_different():
    looks = [courses.style_of(f"D{t}") for t in range(1, 7)]
    assert len(set(looks)) == 6 and courses.style_of("D1 ∪ D2 ∪ D3") == courses.style_of("D1 ∪ D2")


def test_panels_and_shades_stand_on_the_page(fake):
    figures = [figure("course", panel("<b>D5-5a</b>")), figure("tuning", panel(merged=True))]
    text = report.html([fake("gem")], reproduction=made([cell()], figures))
    assert "&lt;b&gt;D5-5a&lt;/b&gt;" in text and "<b>D5-5a</b>" not in text
    assert "Who forgets" in text and "All 1 numbers" in text and "retraining" in text
    before, after = text.index("best mean"), text.index("stopped")
    assert after < before and text.count("stopped</span>") == 1  # each dotted line is told below its own panel


def test_numbers_of_some_runs_wait_for_the_others_and_the_authors_way_alone_has_no_verdict(fake):
    cells = [cell("fc", judged=True, tolerance=0.1, within=True), cell("LWTA", judged=True, tolerance=0.1)]
    text = report.html([fake("gem")], reproduction=made(cells))
    assert "<b>1 of 1</b> judged numbers" in text and "1 more is judged when all their runs are there" in text
    alone = report.html([fake("gem")], reproduction=made([cell(values=(), emulated=0.8)]))
    assert "Only the authors’ way was run" in alone


def test_a_study_of_ones_own_stands_on_the_page_with_its_course():
    small = {"layers": (1,), "sizes": (8,), "lr": (0.01,), "later_lr": (0.01,), "steps": 4, "score_every": 2}
    stream, protocol = hf.stream("slt", parts="D9-1a", val=0.2), hf.protocol("application", alphas=2, **small)
    records = [hf.run(method, stream, protocol=protocol, seed=s) for method in ("finetune", "imm") for s in (0, 1)]
    text = report.html(records)
    studies = text[text.index("<h2>Studies") : text.index("<h2>Accuracy over tasks")]
    assert studies.count('class="plot"') == 3 and "all at once: one network" in studies  # finetune, and imm over α, too
    assert "net.hidden: 8" in studies and "protocol.later_lr: 0.01" in studies
    both = hf.interval([hf.study.pooled(record) for record in records[:2]])
    assert f"{both.mean:.3f} " in studies and f"± {both.half:.3f}" in studies
    assert "<h2>Studies" not in report.html([hf.run("finetune", hf.stream("split", tasks=2), seed=0)])


@pytest.mark.browser
def test_a_browser_draws_panels_and_waterfalls(browser, fake, tmp_path):
    figures = [figure(kind, panel(merged=True)) for kind in ("course", "waterfall", "tuning")]
    browser.open(report.write([fake("gem")], tmp_path / "report.html", reproduction=made([cell()], figures)))
    there, drawn = browser.draw_all()
    assert there == drawn
    browser.wait("return document.querySelector('.deep canvas') && !document.querySelector('.no-webgl')")
    assert browser.complaints() == []
