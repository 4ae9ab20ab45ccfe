"""The README's code runs, and its example is the file it says it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_the_first_block_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(BLOCKS[0], "README.md", "exec"), {"__name__": "readme"})
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert "'value': 320" in capsys.readouterr().out


@pytest.mark.parametrize(("block", "name"), [(1, "own_method.py"), (2, "own_protocol.py"), (3, "own_stream.py")])
def test_the_example_is_the_file_that_is_named(block, name):
    assert BLOCKS[block] in (ROOT / "examples" / name).read_text()


@pytest.mark.parametrize("name", ["own_protocol.py", "own_stream.py"])
def test_the_commands_of_the_examples_are_in_the_readme(name):
    command = (ROOT / "examples" / name).read_text().split('"""')[1].strip().splitlines()[-1]
    assert f"\n{command}\n" in (ROOT / "README.md").read_text()


def test_the_example_runs_and_passes_the_contracts(capsys):
    path = ROOT / "examples" / "own_method.py"
    exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__"})
    assert "Leash" in capsys.readouterr().out


@pytest.mark.parametrize("link", re.findall(r"\]\((?!http)([^)]+)\)", (ROOT / "README.md").read_text()))
def test_links_lead_somewhere(link):
    assert (ROOT / link).exists()
