"""The sweep that is shown is one that runs, and the page's Python does what it says."""

import re
from pathlib import Path

import holdfast as hf
from holdfast.sweeps import read_sweep

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "sweeps.md").read_text()


def test_the_example_means_what_its_comments_say():
    found = read_sweep(ROOT / "examples" / "strengths.toml")
    assert found.name == "strengths" and len(found.cells) == 21
    ewc = {(c.method.strength, c.protocol.lr) for c in found.cells if c.name.startswith("ewc")}
    assert ewc == {(10.0, 0.02), (10.0, 0.1), (100.0, 0.02), (100.0, 0.01)}
    assert {c.net.hidden for c in found.cells} == {(100, 100)}


def test_the_python_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(block, "sweeps.md", "exec"), {"__name__": "page"})
    assert "ewc[net.hidden=20,strength=10]" in capsys.readouterr().out
    assert len(hf.load(tmp_path / "runs" / "python")) == 16


def test_links_lead_somewhere():
    for link in re.findall(r"\]\((?!http)([^)]+)\)", PAGE):
        assert (ROOT / "docs" / link).exists()
