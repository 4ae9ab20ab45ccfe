"""The first batches of a second task: what is measured is what the step does, and measuring changes nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import holdfast as hf
from holdfast.engine import Checkpoint
from holdfast.methods import Weighing, methods
from holdfast.protocols.early import PERMUTED, TASK, _permuted
from holdfast.sweeps import Cell
from holdfast.types import Batch

SMALL = {"steps": 30, "batches": 3, "rows": 4}
VCL = {"samples": 2, "test_samples": 3}


def run(method="vcl", stream=None, seed=0, **settings):
    learner = hf.method(method, **(VCL if method == "vcl" else {}))
    stream = stream or hf.stream("split", tasks=5, examples=60).first(2)
    net = hf.net("bayes" if method == "vcl" else "mlp", hidden=(20,))
    return hf.run(learner, stream, net=net, protocol=hf.protocol("early", **{**SMALL, **settings}), seed=seed)


def early(record, of=TASK):
    return [row for row in record.study["early"] if row["of"] == of]


def test_a_stream_can_end_early():
    whole = hf.stream("split", tasks=5)
    two = whole.first(2)
    assert len(two) == 2 and two.info.classes == 10 and two.info.task_classes == ((0, 1), (2, 3))
    assert two.settings["first"] == 2 and whole.first(5) is whole
    again = two.reseed(3)
    assert len(again) == 2 and again.seed == 3 and again.settings["first"] == 2


@pytest.mark.parametrize("method", ["vcl", "ewc", "finetune"])
def test_the_two_terms_add_up_to_the_step(method):
    """SGD of rate 1: θ moves by the sum of both gradients, with the same draws of the weights."""
    learner = run_and_catch(method)
    batch = Batch(torch.rand(8, 1, 8, 8), torch.randint(10, (8,)), 1)
    for _ in range(2):  # the second time away from the prior's mean
        before, dice = learner.net.theta.detach().clone(), learner.rng.get_state().clone()
        likelihood, prior = learner.terms(batch)
        assert torch.equal(learner.net.theta.detach(), before) and torch.equal(learner.rng.get_state(), dice)
        learner.observe(batch)
        moved = learner.output_layer(before - learner.net.theta.detach())
        both = likelihood if prior is None else likelihood + prior
        torch.testing.assert_close(moved, both, rtol=1e-3, atol=1e-5)
        assert likelihood.shape == (20 * 10 + 10,)  # weights and biases of the last layer, or their means


def run_and_catch(method) -> Weighing:
    """A learner that has learned one task, with plain SGD of rate 1 from then on."""
    from holdfast.protocols import fresh
    from holdfast.sweeps.cell import make_net

    settings = {"vcl": {**VCL, "likelihood_start": False}, "ewc": {"strength": 0.5}}.get(method, {})
    stream = hf.stream("split", tasks=2, examples=60)
    net = make_net(hf.net("bayes" if method == "vcl" else "mlp", hidden=(20,)), stream.info, torch.device("cpu"), 0)
    protocol = hf.protocol("epochs", epochs=1, lr=0.1)
    session = protocol.run(fresh(hf.method(method, **settings)), stream.first(1), net, 0)
    session.learner.optimiser.lr = 1.0
    return session.learner


def test_before_the_first_batch_the_prior_is_where_the_weights_are():
    first, *later = early(run())
    assert first["prior"] == 0.0 and first["likelihood"] > 0
    assert all(row["prior"] > 0 for row in later)


def test_in_the_task_scenario_a_new_head_is_away_from_its_prior():
    record = run(stream=hf.stream("split", tasks=5, examples=60, scenario="task").first(2))
    assert early(record)[0]["prior"] > 0
    assert all(row["entropy"] <= row["most"] == math.log(2) for row in record.study["early"])


def test_every_batch_has_its_row_for_the_task_and_for_permuted_pixels():
    record = run()
    assert [row["batch"] for row in early(record)] == [row["batch"] for row in early(record, PERMUTED)] == [1, 2, 3]
    assert all(0 <= row["entropy"] <= row["most"] == math.log(10) for row in record.study["early"])


def test_the_prior_weighs_the_same_whatever_is_shown():
    """N is B's, and where it is given that; the prior's gradient goes with 1/N."""
    one, ten = (early(run(prior_rows=n, optimiser="sgd", lr=1e-3), PERMUTED)[1] for n in (40, 400))
    assert one["prior"] == pytest.approx(10 * ten["prior"], rel=1e-3)


def test_permuted_pixels_take_nothing_from_the_task_itself():
    """The copy that learns them is another learner: B's rows are those of a run in which only B is shown."""
    from holdfast.protocols.early import Early

    class Alone(Early):
        def _rows(self, session, what, learner, shown, test):
            return iter(()) if what == PERMUTED else super()._rows(session, what, learner, shown, test)

    learner, stream = hf.method("vcl", **VCL), hf.stream("split", tasks=5, examples=60).first(2)
    alone = hf.run(learner, stream, net=hf.net("bayes", hidden=(20,)), protocol=Alone(**SMALL), seed=0)
    assert early(alone) == early(run()) and np.array_equal(alone.R, run().R)


def test_permuted_pixels_are_the_same_pixels_elsewhere():
    part = hf.stream("rotated", tasks=2).tasks[1].train
    order = torch.randperm(64, generator=torch.Generator().manual_seed(0))
    other = _permuted(part, order)
    some = torch.arange(5)
    assert torch.equal(other.x(some).flatten(1), part.x(some).flatten(1)[:, order])
    assert torch.equal(other.y, part.y)


def test_a_resembling_task_is_surer_and_pulls_harder_than_permuted_pixels():
    """Split digits, 500 steps, 4 repeats, measured: entropy .17 and .84, gradient .10 and .02."""
    found = hf.diagnose("split", repeats=3, jobs=1, protocol=hf.protocol("early", steps=200))
    assert found.poses == "yes" and found.number > 2
    assert found.at("entropy").mean < 0.5 * found.at("entropy", PERMUTED).mean


def test_a_task_of_permuted_pixels_is_no_surer_than_permuted_pixels():
    found = hf.diagnose("permuted", repeats=3, jobs=1, protocol=hf.protocol("early", steps=200))
    assert found.poses != "yes" and found.at("entropy").mean > 0.5


def test_a_few_rows_are_shown_again():
    record = run(stream=hf.stream("split", tasks=5, examples=6).first(2), batches=5)
    assert len(early(record)) == 5


def test_an_interrupted_run_goes_on_to_the_same_numbers(tmp_path, fragile):
    stream, net = hf.stream("split", tasks=5, examples=60).first(2), hf.net("bayes", hidden=(20,))
    cell = Cell(hf.method("vcl", **VCL), stream, net, hf.protocol("early", **SMALL), 0, "cpu")
    whole = cell.run()
    with pytest.raises(fragile.Interrupted):
        cell.run(keep=fragile(tmp_path, "key"))
    again = cell.run(keep=Checkpoint(tmp_path, "key"))
    assert again.study["early"] == whole.study["early"] and np.array_equal(again.R, whole.R)


def test_what_cannot_be_looked_at_is_refused():
    with pytest.raises(hf.BadInput, match="needs two tasks, and stream 'split' has 5; `holdfast diagnose`"):
        run(stream=hf.stream("split", tasks=5))
    others = [name for name in methods.names() if not issubclass(methods.find(name), Weighing)]
    assert "gem" in others
    with pytest.raises(hf.BadInput, match="loss's terms are known, not 'gem'"):
        run("gem")
    with pytest.raises(hf.BadInput, match="score_every of protocol 'early' would be ignored"):
        run(score_every=3)


def test_a_bad_number_of_repeats_is_refused():
    with pytest.raises(hf.BadInput, match="repeats must be a whole number >= 1, not 0"):
        hf.diagnose("split", repeats=0)


def test_a_network_that_vcl_cannot_have_is_diagnosed_by_another_method():
    protocol = hf.protocol("early", **SMALL)
    with pytest.raises(hf.BadInput, match="needs a perceptron"):
        hf.diagnose("split", net="conv", repeats=1, protocol=protocol)
    found = hf.diagnose("split", net="conv", method="finetune", repeats=1, jobs=1, protocol=protocol)
    assert found.at("prior").mean is None and found.at("likelihood").mean > 0
