"""The README's examples are the files it says they are. Its snippets run with those of all pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


@pytest.mark.parametrize(("block", "name"), [(1, "own_method.py"), (2, "own_protocol.py"), (3, "own_stream.py")])
def test_the_example_is_the_file_that_is_named(block, name):
    assert BLOCKS[block] in (ROOT / "examples" / name).read_text()


@pytest.mark.parametrize("name", ["own_protocol.py", "own_stream.py"])
def test_the_commands_of_the_examples_are_in_the_readme(name):
    command = (ROOT / "examples" / name).read_text().split('"""')[1].strip().splitlines()[-1]
    assert f"\n{command}\n" in (ROOT / "README.md").read_text()


@pytest.mark.slow
def test_the_example_runs_and_passes_the_contracts(capsys):
    path = ROOT / "examples" / "own_method.py"
    exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__"})
    assert "Leash" in capsys.readouterr().out
