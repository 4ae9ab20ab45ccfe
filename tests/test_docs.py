"""Every snippet of every page runs, page by page, in the order in which it is read.

A comment before a block says what is different about it: `<!-- not run: why -->`, `<!-- slow -->`, `<!-- exits 1 -->`,
and before a text block `<!-- printed -->`: the block before printed it, but for times and decimals. Commands that are
not run are read, so that their options exist: those marked so, those on data that are not embedded, and those behind
measured numbers.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

import holdfast as hf
from holdfast import papers
from holdfast.cli import main
from holdfast.cli._app import _app
from holdfast.commands.list import KINDS, shelf_of
from holdfast.sweeps import read_sweep

ROOT = Path(__file__).parents[1]
PAGES = sorted(str(p.relative_to(ROOT)) for p in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
MEASURED = ("docs/measured.md", "docs/papers/")  # each command there is behind a table of numbers
EMBEDDED = {"digits", "synth"}
BLOCK = re.compile(r"^(?:<!-- ([^>]*) -->\n)?```(?:\{\.)?(python|sh|text)\}?\n(.*?)^```", re.MULTILINE | re.DOTALL)
VARIES = re.compile(r"\d[\d.]* (µs|ms|s)\b|[−-]?\d+\.\d*")  # from machine to machine: times, and what has decimals


@dataclass(frozen=True)
class Block:
    mark: str
    kind: str
    text: str

    @property
    def commands(self) -> list[list[str]]:
        """What follows `holdfast` in its lines."""
        lines = self.text.replace("\\\n", " ").splitlines() if self.kind == "sh" else []
        return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("holdfast ")]


def blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text()
    whole = re.sub(r'^--8<-- "(.*)"$', lambda included: (ROOT / included[1]).read_text(), text, flags=re.MULTILINE)
    return [Block(*found) for found in BLOCK.findall(whole)]


def runs(page: str, block: Block, words: list[str] | None = None) -> bool:
    """Whether a block is run, or of its commands this one."""
    data = words[words.index("--data") + 1].split(",") if words and "--data" in words else ["digits"]
    return not page.startswith(MEASURED) and not block.mark.startswith("not run") and set(data) <= EMBEDDED


@pytest.fixture
def at_work(tmp_path, monkeypatch):
    """Runs a page in a folder of its own, where `examples` is; gives what its Python left behind and printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path / "data"))
    (tmp_path / "examples").symlink_to(ROOT / "examples")

    def run(page: str, capsys: pytest.CaptureFixture[str], slow: bool) -> tuple[ModuleType, str]:
        module = ModuleType("page")
        monkeypatch.setitem(sys.modules, "page", module)
        said, before = [], ""
        for block in blocks(page):
            if block.mark == "slow" and not slow:
                continue
            if block.kind == "text" and block.mark == "printed":
                for line in block.text.splitlines():
                    assert masked(line) in masked(before), f"{page} shows, and nothing printed: {line}"
                continue
            if block.kind == "python" and runs(page, block):
                exec(compile(block.text, page, "exec"), vars(module))
            for words in block.commands:
                if runs(page, block, words):
                    assert main(words) == (1 if block.mark == "exits 1" else 0), words
            said.append(before := "".join(capsys.readouterr()))
        return module, "".join(said)

    return run


def masked(text: str) -> str:
    return " ".join(VARIES.sub("#", text).split())


def slow(page: str) -> bool:
    return any(block.mark == "slow" for block in blocks(page))


@cache
def commands() -> Any:
    return typer.main.get_command(_app())


def read(words: list[str]) -> None:
    """A command that is not run has the options that it is shown with."""
    group = commands()
    while words and words[0] in getattr(group, "commands", {}):
        group, words = group.commands[words[0]], words[1:]
    loose = group.make_context("holdfast", list(words)).params.get("words")
    if isinstance(loose, tuple | list):  # `run` and `compare` tell of unknown options later
        assert not [word for word in loose if word.startswith("-")], words


LEFT = {  # what else is true when a page has run, of its names and of what it printed
    "README.md": lambda page, said: "'value': 320" in said and Path("report.html").stat().st_size > 10_000,
    "docs/study.md": lambda page, said: said.count("stopped at step") == 5 and "net.hidden" in said,
    "docs/sweeps.md": lambda page, said: "ewc[net.hidden=20,strength=10]" in said and len(page.runs) == 16,
}


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(runs(page, b) and b.kind != "text" for b in blocks(page))]
)
def test_the_snippets_run(page, at_work, capsys):
    module, said = at_work(page, capsys, slow=False)
    assert page not in LEFT or LEFT[page](module, said)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if slow(page)])
def test_the_slow_snippets_run(page, at_work, capsys):
    at_work(page, capsys, slow=True)


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_are_not_run_can_be_read(page):
    for block in blocks(page):
        for words in block.commands:
            if not runs(page, block, words):
                read(words)


def test_commands_in_the_examples_can_be_read():
    lines = [line for path in (ROOT / "examples").glob("*.py") for line in path.read_text().splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("holdfast ")]
    assert len(commands) == 2
    for words in commands:
        read(words)


def test_a_mistyped_option_is_found():
    with pytest.raises(hf.BadInput, match="--seed"):
        read(["sweep", "a.toml", "--seed", "1"])
    with pytest.raises(AssertionError):
        read(["run", "ewc", "--steam", "split"])


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_run_and_are_kept_without_outputs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "page", module := ModuleType("page"))
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
            exec(compile("".join(cell["source"]), path.name, "exec"), vars(module))


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(page):
    """Those of other pages are followed when the site is built."""
    for link in re.findall(r"\]\((?!http)([^)#]+)", (ROOT / page).read_text()):
        assert (ROOT / link).exists()


HEADINGS = ["Cost", "When it fails", "Departures from the paper"]


def test_every_method_has_a_page_with_these_headings_and_every_page_a_method():
    written = {path.stem: path for path in (ROOT / "docs" / "methods").glob("*.md") if path.stem != "index"}
    assert sorted(written) == shelf_of("methods").names()
    for name, path in written.items():
        title, *headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
        assert (title, headings) == (name, HEADINGS)


def test_a_page_tells_all_departures_that_its_docstring_numbers():
    """In the site they stand in the page's section alone."""
    for name in shelf_of("methods").names():
        said = (shelf_of("methods").find(name).__doc__ or "").partition("Departures")[2].partition("\n\n")[0]
        written = (ROOT / "docs" / "methods" / f"{name}.md").read_text().partition("## Departures")[2]
        assert len(re.findall(r"^\d\. ", written, re.MULTILINE)) >= len(re.findall(r"\b\d\. ", said)), name


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("methods", "data")])
def test_what_is_written_of_streams_protocols_and_nets_is_of_one_that_exists(kind):
    written = {path.stem for path in (ROOT / "docs" / kind).glob("*.md")} - {"index"}
    assert written <= set(shelf_of(kind).names())


def test_the_sweep_that_is_shown_means_what_its_comments_say():
    found = read_sweep(ROOT / "examples" / "strengths.toml")
    assert found.name == "strengths" and len(found.cells) == 21
    ewc = {(c.method.strength, c.protocol.lr) for c in found.cells if c.name.startswith("ewc")}
    assert ewc == {(10.0, 0.02), (10.0, 0.1), (100.0, 0.02), (100.0, 0.01)}
    assert {c.net.hidden for c in found.cells} == {(100, 100)}


def test_what_the_page_on_studies_names_exists():
    page = (ROOT / "docs" / "study.md").read_text()
    for name in ("course", "union", "prescient", "realistic", "best", "last", "at_once", "omega_all", "blended"):
        assert f"`{name}" in page and name in vars(hf.study)


def test_the_tables_that_pages_reproduce_exist():
    built = {item.id for item in papers.contents() if item.recipe}
    for page in PAGES:
        assert set(re.findall(r"holdfast reproduce ([a-z]+/\w+)", (ROOT / page).read_text())) <= built, page
