"""A clock that jumps changes no result, no duration and no lock."""

import random
import time

import holdfast as hf
from holdfast.sweeps import locked


def test_a_clock_that_jumps_is_not_noticed(tmp_path, monkeypatch):
    stream = hf.stream("split", tasks=2, examples=40)
    steady = hf.compare(["er"], stream, seeds=2, jobs=2, out=tmp_path / "steady")
    dice = random.Random(0)
    monkeypatch.setattr(time, "time", lambda: dice.uniform(-1e9, 4e9))
    monkeypatch.setattr(time, "time_ns", lambda: dice.randrange(4 * 10**18))
    jumpy = hf.compare(["er"], stream, seeds=2, jobs=2, out=tmp_path / "jumpy", checkpoint_every=2)
    for a, b in zip(steady.records, jumpy.records, strict=True):
        assert (a.R == b.R).all()
        assert all(0 < seconds < 60 for seconds in b.resources["train_seconds"])
        assert 0 < b.resources["eval_seconds"] < 60
    with locked(tmp_path / "jumpy"):
        pass
