"""T(S): the last task after the stream and alone, paired over seeds."""

import pytest

import holdfast as hf
from holdfast import metrics
from holdfast.report.transfers import sentence

SMALL = {"tasks": 3, "examples": 40, "test_examples": 50, "scenario": "task"}


def test_the_last_task_is_compared_with_itself_alone(record):
    whole = [record([[0.9, 0.1], [0.6, a]], seed=seed) for seed, a in enumerate((0.5, 0.4, 0.6))]
    stream = dict(whole[0].stream)
    alone = [record([[a]], seed=seed, stream={**stream, "only": 1}) for seed, a in enumerate((0.3, 0.3, 0.35))]
    other = [record([[0.2]], seed=0, stream={**stream, "only": 0})]
    (found,) = metrics.transfers(metrics.group([*whole, *alone, *other]))
    assert (found.label, found.alone.label, found.seeds) == ("gem", "gem, task 2 alone", (0, 1, 2))
    assert found.values == pytest.approx([0.2, 0.1, 0.25])
    half = 4.302653 * 0.0763763 / 3**0.5  # t(0.975, 2) · s/√3
    assert found.gain.low == pytest.approx(0.55 / 3 - half, abs=1e-5)
    assert sentence(found) == (
        "gem: the last task ends at 0.500, alone at 0.317: T(S) = 0.183 (95% interval −0.006 to 0.373, which includes "
        "0, 3 seeds)."
    )


def test_other_settings_are_no_twins(record):
    whole, stream = record([[0.9, 0.1], [0.6, 0.5]]), dict(record([[0.5]]).stream)
    slower = record([[0.3]], stream={**stream, "only": 1}, protocol={**whole.protocol, "lr": 0.5})
    assert metrics.transfers(metrics.group([whole, slower])) == []


def test_runs_on_the_last_task_alone_are_cells_of_their_own(tmp_path):
    def asked():
        return hf.compare(
            ["finetune", "independent"], hf.stream("split", **SMALL), seeds=2, jobs=1, out=tmp_path, alone=True
        )

    found = asked()
    assert len(found.records) == 8 and asked().names == found.names  # nothing is run twice
    summary = found.summary()["methods"]
    assert sum("transfer" in entry for entry in summary.values()) == 2
    for label in ("finetune", "independent"):
        whole, alone = summary[label], summary[f"{label}, task 3 alone"]
        records = [r for r in found.records if r.method == label and len(r.tasks) == 3]
        last = [r.final[-1, -1] for r in records]
        assert whole["transfer"]["values"] == pytest.approx(
            [a - b for a, b in zip(last, alone["acc"]["values"], strict=True)]
        )
    assert "What transfers to the last task" in (tmp_path / "report.html").read_text()
    assert "finetune: the last task ends at" in str(found)


@pytest.mark.parametrize("words", [{"lr": (0.01,), "decay": (0.0,)}, {"lr": (0.01, 0.001), "decay": (0.0,)}], ids=str)
def test_what_a_protocol_that_chooses_had_one_value_for_tells_no_runs_apart(words):
    protocol = hf.protocol("crossval", epochs=1, batch=20, **words)
    stream = hf.stream("split", val=0.2, **SMALL)
    found = hf.compare("finetune", stream, seeds=1, protocol=protocol, jobs=1, alone=True)
    assert len(metrics.transfers(found.groups())) == 1


def test_what_was_chosen_over_the_stream_tells_no_task_alone_apart(record):
    chosen, given = ({"strength": {"value": 5.0, "chosen_by": who}} for who in ("val:stream", "default"))
    whole = record([[0.9, 0.1], [0.6, 0.5]], settings=chosen)
    lone = record([[0.3]], stream={**whole.stream, "only": 1}, settings=given)
    (found,) = metrics.transfers(metrics.group([whole, lone]))
    assert found.values == pytest.approx([0.2])
    other = record([[0.9, 0.1], [0.6, 0.5]], settings={"strength": {"value": 5.0, "chosen_by": "given"}})
    assert metrics.transfers(metrics.group([other, record([[0.3]], stream={**whole.stream, "only": 1})])) == []


@pytest.mark.parametrize(
    ("stream", "why"), [(hf.stream("split", tasks=1), "it has one task"), (hf.stream("blurred"), "shown mixed")]
)
def test_where_there_is_nothing_before_the_last_task_it_is_told(stream, why):
    with pytest.raises(hf.BadInput, match=why):
        hf.compare("finetune", stream, seeds=1, alone=True)
