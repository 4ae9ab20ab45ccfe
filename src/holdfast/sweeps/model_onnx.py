"""The network of a model as an ONNX file, for programs that know neither Python nor Holdfast."""

from __future__ import annotations

import copy
import json
import tempfile
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from holdfast.errors import BadInput, guarded
from holdfast.methods import Learner, methods
from holdfast.nets._base import Sampled
from holdfast.nets.lwta import Winners
from holdfast.protocols import name_of
from holdfast.sweeps.model import ENCODING, Model
from holdfast.sweeps.store import write_bytes
from holdfast.types import Scale, as_float

INPUT, OUTPUT, ROWS = "x", "logits", "rows"


class Answering(nn.Module):
    """Rows as they were learned, bytes unscaled, to the logits of the classes that are known."""

    def __init__(self, network: nn.Module, places: list[int], scale: Scale | None) -> None:
        super().__init__()
        self.network, self.scale = network, scale
        self.register_buffer("places", torch.tensor(places))

    def forward(self, x: Tensor) -> Tensor:
        return self.network(as_float(x, self.scale)).index_select(1, self.places)  # type: ignore[no-any-return]


class Winning(nn.Module):
    """What `Winners` of the net lwta does, without writing into its mask, for which the exporter has no words.

    >>> z = torch.tensor([[1.0, 3.0, -2.0, -5.0, 4.0, 4.0]])
    >>> torch.equal(Winning(2)(z), Winners(2)(z)), torch.equal(Winning(3)(z), Winners(3)(z))
    (True, True)
    """

    def __init__(self, block: int) -> None:
        super().__init__()
        self.block = block

    def forward(self, z: Tensor) -> Tensor:
        units = z.unflatten(-1, (-1, self.block)).unbind(-1)
        each = [
            torch.stack([*(a > b for b in units[:i]), *(a >= b for b in units[i:])]).all(0)  # a >= a, too
            for i, a in enumerate(units)
        ]
        return torch.where(torch.stack(each, -1).flatten(-2), z, 0.0)


def write(model: Model, path: Path) -> None:
    """Whole or not at all. A BadInput where more than a network answers, for which ONNX has no place."""
    if faults := refused(model):
        raise BadInput(*faults)
    try:
        import onnx
    except ImportError as error:
        raise BadInput("ONNX files need the package onnx; run `pip install 'holdfast[onnx]'`") from error
    made = onnx.load_from_string(_exported(model))
    onnx.helper.set_model_props(
        made, {name: json.dumps(said, ensure_ascii=False) for name, said in described(model).items()}
    )
    write_bytes(path, made.SerializeToString())


def refused(model: Model) -> list[str]:
    """Why it cannot be one: what its method answers with besides its network."""
    learner, name = model.learner, name_of(model.cell.method)
    if type(learner).predict is not Learner.predict:
        plain = [each for each in methods.names() if methods.find(each).predict is Learner.predict]
        return [
            f"method {name!r} does not answer with its network's outputs alone, so its model cannot be an ONNX file; "
            f"those of {', '.join(plain)} can"
        ]
    if isinstance(learner.net.module, Sampled):
        return ["a network with test_samples answers with the mean of many, so its model cannot be an ONNX file"]
    first, *others = [task.train.scale or Scale.of([0.0], [1.0]) for task in model.stream.tasks]
    if any(not first.same(other) for other in others):
        return ["each task has a pixel scale of its own (scale=task), so the model cannot be one ONNX file"]
    return []


def described(model: Model) -> dict[str, object]:
    """What the file says of itself, besides the network: JSON by name."""
    stream, like = model.stream, model.stream.tasks[0].train
    words: dict[str, object] = {
        "classes": list(model.classes),  # of the columns of the logits
        "input": {"shape": list(stream.info.shape), "dtype": str(like.dtype).partition(".")[2]},
        "scenario": stream.scenario,
        "tasks": [{"name": task.name, "classes": list(task.names)} for task in stream.tasks],
        "method": name_of(model.cell.method),
    }
    reading = model.reading
    return (
        words
        | ({ENCODING: model.notes[ENCODING]} if reading.encoding else {})
        | ({"features": reading.features} if reading.features else {})
    )


def _exported(model: Model) -> bytes:
    network = copy.deepcopy(model.learner.net.module).cpu()
    for name, module in [each for each in network.named_modules() if isinstance(each[1], Winners)]:
        network.set_submodule(name, Winning(module.block))
    scale = model.stream.tasks[-1].train.scale
    shown = torch.zeros(2, *model.stream.info.shape, dtype=model.stream.tasks[0].train.dtype)
    whole = Answering(network, model.places(), scale).eval()
    axes = {INPUT: {0: ROWS}, OUTPUT: {0: ROWS}}
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")  # the exporter that does without onnxscript is called legacy
        file = Path(folder) / "network.onnx"
        with guarded("the network", "be written as ONNX"):
            torch.onnx.export(
                whole, (shown,), file, input_names=[INPUT], output_names=[OUTPUT], dynamic_axes=axes, dynamo=False
            )
        return file.read_bytes()
