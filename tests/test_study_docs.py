"""The page on studies: its Python runs, and what it names exists."""

import re
from pathlib import Path

import holdfast as hf
from holdfast import papers

PAGE = (Path(__file__).parents[1] / "docs" / "study.md").read_text()


def test_the_python_of_the_page_runs(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(block, "study.md", "exec"), {"__name__": "page"})
    said = capsys.readouterr().out
    assert said.count("stopped at step") == 5 and "net.hidden" in said


def test_what_the_page_names_exists():
    for name in ("course", "union", "prescient", "realistic", "best", "last", "at_once", "omega_all", "blended"):
        assert f"`{name}" in PAGE and name in vars(hf.study)
    for id in re.findall(r"holdfast reproduce (\S+)", PAGE):
        assert papers.find(id).id == id
