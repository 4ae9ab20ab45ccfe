"""Figures as files for a paper: all of them, in print as on the page, for eyes of every kind."""

from __future__ import annotations

import dataclasses
import itertools
import re

import numpy as np
import pytest

from holdfast import report
from holdfast.metrics.panels import Mark, Panel, curve
from holdfast.papers.base import Figure, Series
from holdfast.report import figures, ink

pytest.importorskip("matplotlib", reason="needs the figures extra")

SEES = {  # linear RGB as seen without one kind of cone (Machado et al., 2009)
    "all": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.95047, 1, 1.08883])


def lab(colour, eye):
    rgb = np.array(ink.colour(colour)[:3])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    share = XYZ @ np.clip(np.array(eye) @ linear, 0, 1) / WHITE
    x, y, z = np.where(share > 0.008856, np.cbrt(share), 7.787 * share + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eye", SEES)
def test_printed_colours_are_told_apart_by_every_eye(eye):
    seen = [lab(colour, SEES[eye]) for colour in ink.PRINTED]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 15


def kinds():
    """A reproduction with every kind of figure that a paper has."""
    x, scenario = ["ACC", "a $ & <b>"], "class, task label hidden"
    points, told = {"mean": [0.4, 0.6], "low": [0.3, None], "high": [0.5, None]}, ["0.4", "0.6"]
    mine = Series("gem", scenario, **points, x=[1.0, 2.0], told=told, optimal=[True, False])
    other = dataclasses.replace(mine, name="published", outline=True)
    curves = [curve("D1", [[(0.0, 0.1), (1.0, 0.9)]] * 2), curve("D2", [[(1.0, 0.1), (2.0, 0.8)]])]
    curves += [curve("D1 ∪ D2, mean merge", [[(0.0, 0.2), (1.0, 0.6)]], "alpha")]
    marks = [Mark(1.5, "stopped"), Mark(0.5, "share of D2", over="alpha")]
    panel = Panel("D5-5", scenario, curves, [0.0, 1.0], 0.97, marks)
    drawn = [Figure(kind, f"A {kind}", x, "axis", [mine, other]) for kind in ("bars", "lines", "radar", "matrix")]
    drawn += [Figure(kind, f"A {kind}", [1.0, 2.0], "axis", [mine]) for kind in ("scatter", "roc")]
    drawn += [Figure(kind, f"A {kind}", [], "axis", [], [panel]) for kind in ("course", "waterfall", "tuning")]
    return report.Reproduction("a/b", "All kinds", "smoke", [], figures=[dataclasses.asdict(each) for each in drawn])


@pytest.fixture(scope="module")
def page(fake):
    rows = [{"task": t, "path": path, "sizes": [1, 1]} for t, path in enumerate(([0, 0], [0, 1]))]
    modular = dataclasses.replace(fake("mntdp", tasks=2), study={"paths": rows})
    records = [fake(method, seed=seed) for method in ("gem", "finetune", "iid") for seed in range(2)]
    return report.html([*records, modular], reproduction=kinds())


@pytest.fixture(scope="module")
def files(page):
    return figures.files(page, "pdf")


def test_every_figure_of_the_page_is_a_file(page, files):
    shown = page.count('<div class="plot"') + page.count('<svg class="strands"')
    names = [name for name in files if name != figures.INDEX]
    assert shown > 15 and [int(name[:2]) for name in names] == list(range(1, shown + 1))
    assert all(name.endswith(".pdf") and files[name].startswith(b"%PDF") for name in names)
    assert all(map(figures.is_ours, files))


def test_letters_stay_letters(files):
    pdf = b"".join(files.values())
    assert b"/FontFile2" in pdf and b"/Type3" not in pdf


@pytest.mark.parametrize(("form", "begins"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_the_same_figure_is_the_same_file(page, monkeypatch, form, begins):
    drawn = figures.drawn_in(page)[:2]
    monkeypatch.setattr(figures, "drawn_in", lambda page: drawn)
    once, again = figures.files(page, form), figures.files(page, form)
    assert once == again and len(once) == 3
    assert all(content.startswith(begins) for name, content in once.items() if name.endswith(form))


def test_captions_say_the_scenario_and_what_is_read_aloud(page, files):
    (curves, *_) = [each for each in figures.drawn_in(page) if each.section == "Accuracy over tasks"]
    assert curves.caption == "Mean accuracy over the tasks seen so far"
    assert re.match(r"class scenario · task label hidden at test · split: data digits", curves.heading)
    first = figures.drawn_in(page)[0]
    assert (first.title, first.caption) == ("A bars", "A bars · class, task label hidden · smoke run on digits")
    text = files[figures.INDEX].decode()
    said = r"A bars $\cdot$ class, task label hidden $\cdot$ smoke run on digits"
    assert rf"\caption{{Published and measured. {said}.}}" in text
    assert text.count(r"\includegraphics") == text.count(r"\caption") == len(figures.drawn_in(page))


def test_a_figure_has_its_legend_and_names_as_they_are_written(page):
    from holdfast.report.drawing import draw

    bars = draw(figures.drawn_in(page)[0].spec)
    assert [text.get_text() for text in bars.legends[0].get_texts()] == ["gem", "published"]
    assert [label.get_text() for label in bars.axes[0].get_xticklabels()] == ["ACC", "a $ & <b>"]
    course = next(each for each in figures.drawn_in(page) if each.title == "A course, D5-5")
    said = [text.get_text() for text in draw(course.spec).legends[0].get_texts()]
    assert {"D1", "D2", "retraining", "all tasks at once", "stopped"} <= set(said)


def test_a_folder_of_somebody_elses_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").touch()
    (told,) = figures.faults(tmp_path, "pdf")
    assert "notes.txt" in told
    assert figures.faults(tmp_path / "new", "pfd") == ["unknown format of figures 'pfd'; did you mean 'pdf'?"]


def test_a_papers_table_is_a_booktabs_tabular():
    cell = {"row": "EWC_λ", "column": "1 epoch", "metric": "acc", "published": 0.55, "measured": 0.5, "low": 0.4,
            "high": 0.6, "tolerance": 0.02, "within": False, "emulated": None, "judged": True, "setting": "",
            "scenario": "domain, task label hidden"}  # fmt: skip
    said = report.reproduced(dataclasses.replace(kinds(), cells=[cell, {**cell, "column": "2 epochs"}]))
    first, second = [line for line in said.splitlines() if "epoch" in line]
    assert first.startswith(
        r"EWC\_$\lambda$ & 1 epoch & ACC & domain, task label hidden & 0.55 & 0.500 $\pm$ 0.100 & no"
    )
    assert second.startswith(" & 2 epochs") and r"\toprule" in said and "Authors" not in said
