"""The page on architecture: what it names exists, and one mini-batch goes the way that it describes."""

from __future__ import annotations

import importlib
import re
import sys
from operator import attrgetter
from pathlib import Path

import pytest

import holdfast
from holdfast.cli import main
from holdfast.engine import SGD

PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text()
ROOT = f"{Path(holdfast.__file__).parent}/"
LONGEST = 18  # steps from the command line to the weights


def section(heading: str) -> list[str]:
    """The first name of each numbered line."""
    text = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\d+\. `([\w.]+:[\w.]+)`", text, re.MULTILINE)


def name(code) -> str:
    return f"{code.co_filename.removeprefix(ROOT).removesuffix('.py').replace('/', '.')}:{code.co_qualname}"


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """A real run: the functions of ours that were at work at the first write into the weights, and those called after
    it, each once."""
    walk, after = [], {}

    def watch(frame, event, _):
        if event != "call" or not frame.f_code.co_filename.startswith(ROOT):
            return
        if not walk and frame.f_code is SGD.descend.__code__:
            at = frame
            while at is not None:
                if at.f_code.co_filename.startswith(ROOT):
                    walk.insert(0, name(at.f_code))
                at = at.f_back
        elif walk:
            after.setdefault(name(frame.f_code))

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        out = str(tmp_path_factory.mktemp("walk") / "out")
        code = main(["run", "finetune", "--tasks", "2", "--examples", "20", "--out", out])
    finally:
        sys.setprofile(before)
    assert code == 0
    return walk, list(after)


@pytest.mark.parametrize("named", sorted(set(re.findall(r"`([\w.]+:[\w.]+)`", PAGE))))
def test_what_the_page_names_exists(named):
    module, _, path = named.partition(":")
    assert callable(attrgetter(path)(importlib.import_module(f"holdfast.{module}")))


def test_a_batch_goes_to_the_weights_as_the_page_says(walked):
    assert section("From the command line to the weights") == walked[0]


def test_the_way_to_the_weights_is_short(walked):
    assert 10 < len(walked[0]) <= LONGEST


def test_the_way_back_is_as_the_page_says(walked):
    listed = section("And back to the report")
    assert listed == [each for each in walked[1] if each in listed]


def test_the_picture_has_every_room():
    picture = set(re.findall(r"\w+", PAGE.partition("```")[2].partition("```")[0]))
    rooms = {path.stem for path in Path(ROOT).iterdir() if path.name[0] != "_" and path.suffix in ("", ".py")}
    assert rooms <= picture
