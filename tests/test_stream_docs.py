"""The page on streams names them all, and what it says of the detector is measured."""

import re
from pathlib import Path

import pytest

import holdfast as hf
from holdfast.streams import streams

PAGE = (Path(__file__).parents[1] / "docs" / "streams.md").read_text()


@pytest.mark.parametrize("name", streams.names())
def test_every_stream_is_on_the_page(name):
    assert f"`{name}`" in PAGE


def test_hard_changes_are_found_as_the_table_says():
    row = re.search(r"\| `blurred`, `window=0` \| (\d+), (\d+), (\d+) \((.+?)\) \|", PAGE)
    assert row is not None
    found = [
        hf.run(
            "finetune",
            hf.stream("blurred", window=0.0, test_examples=50, seed=seed),
            protocol=hf.protocol("online", boundaries="detected", score="ends"),
            seed=seed,
        ).boundaries
        for seed in range(5)
    ]
    sums = [sum(each[name] for each in found) for name in ("hits", "misses", "false_alarms")]
    assert sums == [int(n) for n in row.groups()[:3]]
    assert sum(each["delay"] for each in found) / 5 == pytest.approx(float(row[4]), abs=0.06)
