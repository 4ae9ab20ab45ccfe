"""Which cells belong together is known from experiment.json alone."""

import json

import pytest

import holdfast as hf
from holdfast.sweeps import together


def test_the_cells_of_a_folder_are_found_by_their_settings_and_seeds(stream, tmp_path):
    methods = [hf.method("ewc", strength=s) for s in (1, 10)]
    found = hf.compare([*methods, "er"], stream, seeds=[3, 5], net=hf.net("mlp", hidden=(8,)), jobs=1, out=tmp_path)
    kept = json.loads((tmp_path / "experiment.json").read_text())
    first, second, er = together(kept)
    assert [title for title, _ in (first, second, er)] == ["ewc[strength=1]", "ewc[strength=10]", "er"]
    assert [list(cells) for _, cells in (first, second, er)] == [[3, 5]] * 3
    assert [name for _, cells in (first, second, er) for name in cells.values()] == kept["cells"] == list(found.names)
    assert together(found.experiment) == together(kept)


def test_seeds_that_some_settings_do_not_have_are_not_theirs(cell):
    """As in a store of sweeps, which has all their seeds in one list."""
    er, ewc = cell("er", seed=0), cell("ewc", seed=1)
    runs = [er.settings(), ewc.settings()]
    found = together({"runs": runs, "seeds": [0, 1], "cells": [er.name, ewc.name]})
    assert found == [("er", {0: er.name}), ("ewc", {1: ewc.name})]


@pytest.mark.parametrize("runs", [3, [3], [{}], [{"method": {}}], [{"method": "er", "net": {}, "stream": {}}]])
def test_an_experiment_that_is_not_ours_is_bad_input(runs):
    assert together({}) == []
    for spoiled in ({"runs": runs, "seeds": [0], "cells": []}, {"runs": [], "seeds": [0], "cells": [3]}):
        with pytest.raises(hf.BadInput, match=r"experiment\.json does not say what was asked for"):
            together(spoiled)
