"""The page on formulas: every value in its table is what the function gives on the matrix above it."""

import re
from pathlib import Path

import pytest

from holdfast.metrics import SOURCES, Matrix, formulas

PAGE = (Path(__file__).parents[1] / "docs" / "formulas.md").read_text()


def rows(heading):
    """The cells of the table below a heading, without its head."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def shown():
    return {(source.strip("`"), metric.strip("`")): (formula, value) for source, metric, _, formula, value in VALUES}


VALUES = rows("What each makes of it")
NUMBERS = [[float(cell) for cell in cells] for _, *cells in rows("One matrix")]
FOUND = Matrix.of(NUMBERS[1:-1], baseline=NUMBERS[0], n_test=[int(n) for n in NUMBERS[-1]])


def test_every_metric_of_every_source_is_there_once():
    assert sorted(shown()) == sorted((source, name) for source in SOURCES for name in SOURCES[source])
    assert len(VALUES) == len(shown())


@pytest.mark.parametrize(("source", "metric"), shown())
def test_values(source, metric):
    _, value = shown()[source, metric]
    assert f"{formulas(source)[metric](FOUND):.4f}".replace("-", "−") == value


@pytest.mark.parametrize(("source", "metric"), shown())
def test_formulas_are_those_of_the_docstrings(source, metric):
    formula, _ = shown()[source, metric]
    assert f" = {formula}" in formulas(source)[metric].__doc__


def test_the_python_of_the_page_does_what_its_comment_says(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(block, "formulas.md", "exec"), {"__name__": "page"})
    assert capsys.readouterr().out.strip() == re.findall(r"# (-0.5 .*)", block)[0]
