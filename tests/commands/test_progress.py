"""What a line about a finished run says."""

from __future__ import annotations

from dataclasses import replace

import holdfast as hf
from holdfast.commands.progress import shown
from holdfast.sweeps import Event


def test_the_time_of_a_study_has_that_of_its_trials(capsys):
    stream, protocol = hf.stream("split", data="digits", tasks=2), hf.protocol("online")
    cell = hf.Cell(hf.method("finetune"), stream, hf.net("mlp"), protocol, seed=0)
    record = cell.run()
    spent = {**record.resources, "train_seconds": [60.0, 60.0], "eval_seconds": 60.0, "trials": {"seconds": 420.0}}
    tuned_before = replace(cell, choice_cost={"seconds": 420.0})
    for each in (cell, tuned_before):
        with shown([each], quiet=False) as watch:
            watch(Event(0, outcome=replace(record, resources=spent)))
    study, other = capsys.readouterr().err.splitlines()
    assert study.endswith("10 min") and other.endswith("3 min")
