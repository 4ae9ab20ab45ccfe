"""(c) Avalanche 0.6.0 in its leanest configuration; run by the interpreter that has it (see avalanche_env.sh).

In-memory float tensors without task labels, no loggers, one metric, no worker processes, scoring in batches of 1,000.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import contestant
import torch
from contestant import Contestant, Tick
from torch.utils.data import TensorDataset
from workloads import AVALANCHE_STRENGTH, BUFFER, LR, MARGIN, MEMORIES, Workload, load

# ruff: noqa: E402 (torchvision's operators must be named before Avalanche imports it)
# Its wheels are linked against CUDA, so beside a CPU build of torch its operators do not load. Avalanche wants it for
# data sets and transforms, which are not used here; with the names of the two operators that its Python code decorates
# it can be imported.
_torchvision = torch.library.Library("torchvision", "DEF")
for _name in ("nms", "qnms"):
    _torchvision.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

from avalanche.benchmarks import benchmark_from_datasets
from avalanche.benchmarks.utils import AvalancheDataset
from avalanche.core import SupervisedPlugin
from avalanche.evaluation.metrics import accuracy_metrics
from avalanche.training.plugins import EvaluationPlugin
from avalanche.training.supervised import EWC, GEM, Naive, Replay

STRATEGIES = {
    "naive": (Naive, {}),
    "gem": (GEM, {"patterns_per_exp": MEMORIES, "memory_strength": MARGIN}),
    "ewc": (EWC, {"ewc_lambda": AVALANCHE_STRENGTH}),
    "replay": (Replay, {"mem_size": BUFFER}),
}


class Avalanche(Contestant):
    def __init__(self, work: Workload, data: Path, seed: int) -> None:
        warnings.filterwarnings("ignore", "No loggers specified")
        tasks = load(data, work)
        self.scenario = benchmark_from_datasets(
            train=[_dataset(task.x, task.y) for task in tasks],
            test=[_dataset(task.test_x, task.test_y) for task in tasks],
        )
        net = work.net()
        strategy, settings = STRATEGIES[work.method]
        self.strategy = strategy(
            model=net,
            optimizer=torch.optim.SGD(net.parameters(), lr=LR),
            criterion=torch.nn.CrossEntropyLoss(),
            train_mb_size=work.batch,
            train_epochs=1,
            eval_mb_size=1000,
            evaluator=EvaluationPlugin(accuracy_metrics(experience=True), loggers=[], collect_all=False),
            **settings,
        )

    def learn(self, t: int, tick: Tick | None = None) -> None:
        if tick is not None:
            self.strategy.plugins.append(_Ticker(tick))
        self.strategy.train(self.scenario.train_stream[t], num_workers=0)
        if tick is not None:
            self.strategy.plugins.pop()

    def score(self) -> list[float]:
        found = self.strategy.eval(self.scenario.test_stream, num_workers=0)
        return [value for name, value in found.items() if name.startswith("Top1_Acc_Exp")]


class _Ticker(SupervisedPlugin):
    def __init__(self, tick: Tick) -> None:
        super().__init__()
        self.tick = tick

    def after_training_iteration(self, strategy: object, **_: object) -> None:
        self.tick()


def _dataset(x: torch.Tensor, y: torch.Tensor) -> AvalancheDataset:
    return AvalancheDataset([TensorDataset(x.float() / 255, y)])


if __name__ == "__main__":
    contestant.main(Avalanche)
