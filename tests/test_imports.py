"""What is imported before it is asked for: nothing that takes long."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "numpy", "scipy", "pandas", "sklearn", "matplotlib", "ray", "plotly")
SLOW = ("scipy.stats", "pandas", "sklearn", "matplotlib", "ray", "rich", "holdfast.papers")


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import holdfast", HEAVY),
        ("from holdfast.cli import main; main(['--help']); main(['reproduce', '--help'])", HEAVY),
        ("import holdfast as hf; hf.run, hf.compare", SLOW),
    ],
    ids=["import", "help", "run"],
)
def test_nobody_waits_for_what_was_not_asked_for(code, absent):
    asked = f"{code}\nimport sys\nprint('loaded', *(name for name in {absent} if name in sys.modules))"
    said = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True, text=True).stdout
    assert said.splitlines()[-1] == "loaded"
