"""Sampled predictions: what they say together, and how sure they are, against hand-worked numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import entropy as scipy_entropy

import holdfast as hf
from holdfast.engine import evaluate, score
from holdfast.engine.evaluate import calibration_error, entropy_of, information_of, pooled
from holdfast.types import Part

CERTAIN, EVEN = [0.0, -math.inf], [0.0, 0.0]


def logs(*p):
    return torch.tensor(p).log()


def test_the_mean_of_the_softmax_is_what_samples_say():
    samples = torch.stack([logs([0.9, 0.1], [0.2, 0.8]), logs([0.5, 0.5], [0.4, 0.6])]) + 3.0  # shifted logits
    torch.testing.assert_close(pooled(samples).exp(), torch.tensor([[0.7, 0.3], [0.3, 0.7]]))
    torch.testing.assert_close(pooled(samples[0]).exp(), torch.tensor([[0.9, 0.1], [0.2, 0.8]]))


def test_entropy_is_that_of_scipy_and_what_is_impossible_adds_nothing():
    p = np.random.default_rng(0).dirichlet(np.ones(5), size=7)
    torch.testing.assert_close(entropy_of(torch.tensor(p).log()), torch.tensor(scipy_entropy(p, axis=1)))
    assert entropy_of(torch.tensor([CERTAIN])).item() == 0.0
    assert entropy_of(torch.tensor([EVEN]).log_softmax(-1)).item() == pytest.approx(math.log(2))


def test_information_is_what_samples_disagree_about():
    sure = torch.tensor([[CERTAIN], [CERTAIN[::-1]]])  # each certain, of other classes: ln 2
    unsure = torch.tensor([[EVEN], [EVEN]])  # both undecided: nothing
    assert information_of(sure).item() == pytest.approx(math.log(2))
    assert information_of(unsure).item() == pytest.approx(0.0, abs=1e-12)
    assert information_of(torch.randn(1, 4, 3)).abs().max() < 1e-12  # one sample knows no other


def test_information_of_weights_that_hardly_vary_is_not_lost():
    """Two samples around p = 1/2: MI ≈ δ²/2 for p = 1/2 ± δ/2, far below what float32 has left of ln 2."""
    delta = 1e-5
    samples = torch.tensor([[[0.0, 2 * delta]], [[0.0, -2 * delta]]], dtype=torch.float64)  # logits: p = 1/2 ± δ/2
    assert information_of(samples).item() == pytest.approx(delta**2 / 2, rel=1e-3)


def test_calibration_error_by_hand():
    confidence = torch.tensor([0.95, 0.95, 0.95, 0.95, 0.55, 0.55])
    right = torch.tensor([True, True, True, False, True, True])
    # |0.75 − 0.95| · 4/6 + |1 − 0.55| · 2/6
    assert calibration_error(confidence, right) == pytest.approx(0.2 * 4 / 6 + 0.45 * 2 / 6)
    assert calibration_error(torch.ones(3), torch.ones(3, dtype=torch.bool)) == 0.0


def test_a_part_is_scored_by_what_samples_say_together():
    x = torch.zeros(4, 2)
    part = Part(x, torch.arange(4), torch.tensor([0, 0, 1, 1]))
    samples = torch.stack([logs([0.9, 0.1]).expand(4, 2), logs([0.3, 0.7]).expand(4, 2)])
    found = score(lambda x, task: samples, part, None, None)
    assert (found.accuracy, found.predicted.tolist()) == (0.5, [0, 0, 0, 0])
    assert found.loss == pytest.approx(-(2 * math.log(0.6) + 2 * math.log(0.4)) / 4)
    assert found.entropy == pytest.approx(scipy_entropy([0.6, 0.4]))
    each = scipy_entropy([0.9, 0.1]) / 2 + scipy_entropy([0.3, 0.7]) / 2
    assert found.information == pytest.approx(scipy_entropy([0.6, 0.4]) - each)
    np.testing.assert_allclose(found.uncertainty, [[found.entropy] * 4, [found.information] * 4], rtol=1e-6)
    assert found.calibration == pytest.approx(0.1, rel=1e-5)  # 0.6 sure, half right


@pytest.mark.parametrize("classes", [2, 10, evaluate.FEW_CLASSES, evaluate.FEW_CLASSES + 1, 60])
def test_few_classes_and_many_are_scored_as_by_hand(classes):
    rng = np.random.default_rng(classes)
    logits, y = 4 * rng.standard_normal((1200, classes)), rng.integers(classes, size=1200)
    mask = np.arange(classes) < max(2, classes - 3)
    y[~mask[y]] = 0
    x = torch.tensor(logits, dtype=torch.float32)
    part = Part(x, torch.arange(1200), torch.tensor(y))
    found = score(lambda x, task: x, part, 0, torch.tensor(mask))
    p = np.where(mask, np.exp(logits), 0)
    p /= p.sum(1, keepdims=True)
    right = p.argmax(1) == y
    bins = np.minimum((p.max(1) * evaluate.BINS).astype(int), evaluate.BINS - 1)
    gaps = [abs((right[bins == b] - p.max(1)[bins == b]).sum()) for b in range(evaluate.BINS)]
    assert found.predicted.tolist() == p.argmax(1).tolist() and found.accuracy == right.mean()
    assert found.loss == pytest.approx(-np.log(p[np.arange(1200), y]).mean(), rel=1e-5)
    assert found.entropy == pytest.approx(scipy_entropy(p, axis=1).mean(), rel=1e-5)
    assert found.calibration == pytest.approx(sum(gaps) / 1200, abs=1e-5)


def test_a_mask_leaves_impossible_classes_out_of_all_numbers():
    part = Part(torch.zeros(1, 2), torch.arange(1), torch.tensor([0]))
    samples = torch.tensor([[[1.0, 1.0, 9.0]], [[1.0, 1.0, 5.0]]])
    found = score(lambda x, task: samples, part, 0, torch.tensor([True, True, False]))
    assert found.entropy == pytest.approx(math.log(2)) and found.information == pytest.approx(0, abs=1e-12)


class Sampling(hf.Learner):
    """Says what the network says, five times, each with other noise of its own seed."""

    def observe(self, batch):
        return self.descend(self.cross_entropy(batch))

    def predict(self, x, task):
        noise = torch.randn(5, 1, self.info.classes, generator=torch.Generator().manual_seed(0))
        return super().predict(x, task) + noise


def test_a_record_keeps_how_sure_a_learner_was(tmp_path):
    stream = hf.stream("split", tasks=2, examples=60)
    found = hf.compare([Sampling(), "finetune"], stream, seeds=1, out=tmp_path / "out")
    for sampled, plain in (found.records, hf.Comparison.read(tmp_path / "out").records):
        assert all(row["information"] > 0 and row["entropy"] > 0 for row in sampled.curves)
        assert [u.shape for u in sampled.uncertainties] == [(2, 2, len(t.test)) for t in stream.tasks]
        mean = sampled.uncertainties[1][-1].astype(float).mean(1)
        row = sampled.curves[-1]
        np.testing.assert_allclose(mean, [row["entropy"], row["information"]], rtol=1e-2)
        assert plain.uncertainties == () and all("information" not in row for row in plain.curves)
        assert all(row["entropy"] >= 0 and 0 <= row["calibration"] <= 1 for row in plain.curves)


def test_an_estimator_takes_samples():
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    model = hf.ContinualClassifier(Sampling(), max_classes=10).fit(X / 16, y)
    proba = model.predict_proba(X[:5] / 16)
    assert proba.shape == (5, 10) and model.score(X / 16, y) > 0.5
    np.testing.assert_allclose(proba.sum(1), 1, rtol=1e-5)


@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 3), (2, 2, 3, 4)])
def test_other_shapes_are_refused(shape):
    class Wrong(Sampling):
        def predict(self, x, task):
            return torch.zeros(shape)

    with pytest.raises(TypeError, match="or samples of them"):
        hf.run(Wrong(), hf.stream("split", tasks=2, examples=20))


def test_a_run_of_samples_goes_on_where_it_was_interrupted(tmp_path, monkeypatch):
    stream = hf.stream("split", tasks=3, examples=40)
    whole = hf.compare([Sampling()], stream, seeds=1, out=tmp_path / "whole").records[0]
    calls = []

    class Interrupted(Exception):
        pass

    real = evaluate.score_together

    def fragile(predict, rows):
        calls.append(1)
        if len(calls) == 3:
            raise Interrupted
        return real(predict, rows)

    monkeypatch.setattr("holdfast.protocols._session.score_together", fragile)
    broken = hf.compare([Sampling()], stream, seeds=1, out=tmp_path / "pieces", jobs=1)
    assert broken.failures
    monkeypatch.setattr("holdfast.protocols._session.score_together", real)
    pieced = hf.compare([Sampling()], stream, seeds=1, out=tmp_path / "pieces", jobs=1).records[0]
    assert all(map(np.array_equal, whole.uncertainties, pieced.uncertainties))
    assert whole.curves == pieced.curves
