"""A slice of benchmarks/fuzz.py: whatever a user's own file holds, it is data or a list of faults."""

import importlib
import random
import shutil
from pathlib import Path

import pytest

import holdfast as hf

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize("kind", ["CSV", "Parquet", "npz", "images"])
def test_spoiled_files(kind, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    fuzz = importlib.import_module("fuzz")
    fuzz.write_own(tmp_path / "own")
    outcomes = set()
    for i in range(25):
        data = tmp_path / str(i)
        shutil.copytree(tmp_path / "own", data / "own")
        own = data / "own" / fuzz.OWN[kind]
        words = fuzz.spoil_own(own, random.Random(f"slice {kind} {i}"))
        said = {word[2:]: words[words.index(word) + 1] for word in ("--label", "--columns") if word in words}
        try:
            hf.stream("split", hf.Source(own, **said), tasks=2)
            outcomes.add("data")
        except hf.BadInput as error:
            outcomes.add("faults")
            assert error.faults  # noqa: PT017
    assert "faults" in outcomes
