"""What the README says is so. Its snippets run with those of all pages, and its table of papers is made with theirs."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.commands.list import KINDS, shelf_of

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_it_is_short_and_its_picture_small():
    assert README.count("\n") <= 120
    (picture,) = re.findall(r"!\[.*\]\((.*)\)", README)
    assert (ROOT / picture).stat().st_size < 150_000


def test_the_example_is_the_file_that_is_named():
    _, example = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    head, body = example.split("\n\n\n")
    assert body in (ROOT / "examples" / "own_method.py").read_text() and head == "from dataclasses import dataclass"


def test_ratios_of_speed_are_those_of_the_last_run():
    said, kept = table(README), table((ROOT / "benchmarks" / "README.md").read_text())
    assert len(said) == 5 and said == {name: kept[name][3:5] for name in said}


def table(text):
    """The cells of the workloads W1 to W5, by their names."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| W")]
    return {name: cells for name, *cells in rows}


def test_it_counts_what_is_here_and_a_page_names_all_of_it():
    page = (ROOT / "docs" / "contents.md").read_text()
    for kind in (kind for kind in KINDS if kind != "data"):
        names = shelf_of(kind).names()
        assert [name for name in names if f"`{name}`" not in page] == []
        assert f"{len(names)} {kind}" in README or kind not in ("methods", "streams")
