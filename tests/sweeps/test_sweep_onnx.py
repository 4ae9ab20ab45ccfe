"""A model as an ONNX file: another runtime's answers are the model's, and what cannot be one says why."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import torch
from torch import nn

import holdfast as hf
from holdfast.methods import Learner, methods
from holdfast.nets import nets

runtime = pytest.importorskip("onnxruntime", reason="needs the package onnxruntime")
QUICK = hf.protocol("epochs", epochs=1)
SMALL = hf.net("mlp", hidden=(8,))


def read(path):
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    props = session.get_modelmeta().custom_metadata_map
    return session, {name: json.loads(text) for name, text in props.items()}


def learned(method="finetune", net=SMALL, tasks=2, words=(), stream=()):
    """A model of some tasks of digits, and the stream."""
    cut = hf.stream("split", tasks=5, examples=20, test_examples=20, **dict(stream)).first(tasks)
    scenario = dict(words).get("scenario", "class")
    model = hf.model(method, net, QUICK, classes=10, **{"scenario": scenario, **dict(words)})
    for task in cut.tasks:
        model.learn(task.train.raw(), task.train.y)
    return model, cut


def test_its_answers_are_those_of_the_model(tmp_path):
    model, stream = learned("er")
    model.export(tmp_path / "m.onnx")
    session, said = read(tmp_path / "m.onnx")
    for task in stream.tasks:
        x = task.test.raw().numpy()  # bytes, which it scales itself
        assert x.dtype == np.uint8
        (logits,) = session.run(None, {"x": x})
        np.testing.assert_allclose(logits, model.logits(x), rtol=1e-5, atol=1e-5)
        assert (np.array(said["classes"])[logits.argmax(1)] == model.predict(x)).all()
        assert session.run(None, {"x": x[:1]})[0].shape == (1, 4)  # any number of rows
    assert said["classes"] == ["0", "1", "2", "3"] and said["method"] == "er" and said["scenario"] == "class"
    assert said["input"] == {"shape": [1, 8, 8], "dtype": "uint8"} and said["tasks"][1]["classes"] == ["2", "3"]
    model.learn(stream.tasks[0].train.raw(), stream.tasks[0].train.y)
    model.export(tmp_path / "m.onnx")  # the next takes its place
    assert len(read(tmp_path / "m.onnx")[1]["tasks"]) == 3


@pytest.mark.parametrize(("net", "scale"), [*((net, "unit") for net in nets.names()), ("resnet", "centred")])
def test_every_network_can_be_one_with_its_batch_statistics_and_the_scale_of_pixels(net, scale, tmp_path):
    x = torch.randint(0, 256, (6, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    model = hf.model("finetune", hf.net(net), hf.protocol("epochs", epochs=1, lr=1e-3), classes=4, scale=scale)
    model.learn(x, np.array(list("aabbcc")))
    model.export(tmp_path / "m.onnx")
    (logits,) = read(tmp_path / "m.onnx")[0].run(None, {"x": x.numpy()})
    np.testing.assert_allclose(logits, model.logits(x), rtol=1e-3, atol=1e-4)


def test_tables_and_features_are_said_with_it(tmp_path):
    import pandas as pd

    rows = pd.DataFrame({"a": np.arange(20) % 5, "colour": ["red", "blue"] * 10, "kind": ["p", "q"] * 10})
    model = hf.model("finetune", SMALL, QUICK)
    model.learn(rows)
    model.export(tmp_path / "m.onnx")
    session, said = read(tmp_path / "m.onnx")
    assert [column["name"] for column in said["encoding"]["columns"]] == ["a", "colour"]
    x = model.read(rows).x.numpy()
    np.testing.assert_allclose(session.run(None, {"x": x})[0], model.logits(x), rtol=1e-5, atol=1e-5)


def test_a_network_of_your_own_can_be_one_if_it_can(tmp_path):
    def fine(info):
        return nn.Sequential(nn.Flatten(), nn.Linear(64, info.classes))

    class Odd(nn.Module):
        def __init__(self, info):
            super().__init__()
            self.whole = fine(info)

        def forward(self, x):
            return self.whole(torch.special.bessel_j0(x))

    learned(net=fine)[0].export(tmp_path / "m.onnx")
    model, _ = learned(net=lambda info: Odd(info))
    with pytest.raises(hf.BadInput, match=r"^the network cannot be written as ONNX: [^\n]*bessel"):
        model.export(tmp_path / "n.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


@pytest.mark.parametrize("name", methods.names())
def test_a_method_can_be_exported_or_says_why_not(name, tmp_path, quick):
    method = quick(name)
    scenario = "task" if type(method).needs_task else "class"
    model, stream = learned(method, tasks=1 if method.needs_length else 2, words={"scenario": scenario})
    if type(method).predict is Learner.predict:
        model.export(tmp_path / "m.onnx")
        x = stream.tasks[0].test.raw().numpy()
        (logits,) = read(tmp_path / "m.onnx")[0].run(None, {"x": x})
        np.testing.assert_allclose(logits, model.logits(x), rtol=1e-5, atol=1e-5)
        return
    with pytest.raises(hf.BadInput, match=f"method {name!r} does not answer with its network's outputs alone") as why:
        model.export(tmp_path / "m.onnx")
    assert len(why.value.faults) == 1 and "ewc" in str(why.value) and not list(tmp_path.iterdir())


def test_other_reasons_are_a_line(tmp_path, monkeypatch):
    with pytest.raises(hf.BadInput, match="has learned nothing yet"):
        hf.model().export(tmp_path / "m.onnx")
    sampled, _ = learned(net=hf.net("mlp", hidden=(8,), dropout=0.5, test_samples=5))
    with pytest.raises(hf.BadInput, match="a network with test_samples answers with the mean of many"):
        sampled.export(tmp_path / "m.onnx")
    scaled, _ = learned(words={"scale": "task"})
    with pytest.raises(hf.BadInput, match="each task has a pixel scale of its own"):
        scaled.export(tmp_path / "m.onnx")
    model, _ = learned()
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(hf.BadInput, match=r"need the package onnx; run `pip install 'holdfast\[onnx\]'`"):
        model.export(tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_the_task_scenario_says_the_classes_of_each_task(tmp_path):
    model, stream = learned("er", words={"scenario": "task"})
    model.export(tmp_path / "m.onnx")
    session, said = read(tmp_path / "m.onnx")
    x = stream.tasks[1].test.raw().numpy()
    columns = [said["classes"].index(name) for name in said["tasks"][1]["classes"]]
    (logits,) = session.run(None, {"x": x})
    np.testing.assert_allclose(logits[:, columns], model.logits(x, task=1), rtol=1e-5, atol=1e-5)


def test_it_is_on_the_command_line(tmp_path, capsys):
    from holdfast.cli import main

    model, stream = learned("ewc")
    hf.save(model, tmp_path / "m")
    out = tmp_path / "m.onnx"
    assert main(["export", str(tmp_path / "m"), "--onnx", "--out", str(out)]) == 0
    (logits,) = read(out)[0].run(None, {"x": stream.tasks[0].test.raw().numpy()})
    np.testing.assert_allclose(logits, model.logits(stream.tasks[0].test.raw()), rtol=1e-5, atol=1e-5)
    capsys.readouterr()
    for words, faults in [
        (["none", "--onnx", "--out", "x.onnx"], ["none holds no model"]),
        ([str(tmp_path / "m"), "--onnx"], ["--onnx is not for terminals; name a file with --out"]),
        (
            ["none", "--onnx", "--scores", "--out", str(tmp_path)],
            ["--scores goes", "is a folder", "none holds no model"],
        ),
    ]:
        assert main(["export", *words]) == 2
        said = capsys.readouterr().err.splitlines()
        assert len(said) == len(faults) and all(f in line for f, line in zip(faults, said, strict=True)), said
