"""Holdfast: a workbench for continual learning. Learn new things; hold fast to the old ones.

import holdfast as hf
stream = hf.stream("rotated", tasks=5)
print(hf.compare(["finetune", "ewc", "gem"], stream, seeds=3))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from holdfast.process import VERSION

if TYPE_CHECKING:
    from holdfast.advice import Advice, advise
    from holdfast.api import (
        Comparison,
        compare,
        diagnose,
        load,
        load_model,
        method,
        model,
        net,
        protocol,
        run,
        run_cells,
        save,
        stream,
        sweep,
        tune,
        warm,
    )
    from holdfast.data import Source, at_hand
    from holdfast.engine import Growing, Memory, Net
    from holdfast.errors import BadInput, PastDataError, RunFailed
    from holdfast.estimator import ContinualClassifier
    from holdfast.methods import Learner
    from holdfast.metrics import (
        Diagnosis,
        compare_examples,
        fronts,
        growth,
        interval,
        panels,
        study,
        transfer,
        uncertainty,
    )
    from holdfast.protocols import Passing, Protocol
    from holdfast.streams import Plan, Rows, StreamSpec
    from holdfast.sweeps import Cell, Choice, Model
    from holdfast.types import Batch, Record, Segment, Stream, StreamInfo, Task

__version__ = VERSION

__all__ = [
    "Advice", "BadInput", "Batch", "Cell", "Choice", "Comparison", "ContinualClassifier", "Diagnosis", "Growing",
    "Learner", "Memory", "Model", "Net", "Passing", "PastDataError", "Plan", "Protocol", "Record", "Rows", "RunFailed",
    "Segment", "Source", "Stream", "StreamInfo", "StreamSpec", "Task", "advise", "at_hand", "compare",
    "compare_examples", "diagnose", "fronts", "growth", "interval", "load", "load_model", "method", "model", "net",
    "panels", "protocol", "run", "run_cells", "save", "stream", "study", "sweep", "transfer", "tune",
    "uncertainty", "warm",
]  # fmt: skip

_ROOMS = (  # where public names live; a room's files are names in it, too, so `hf.study` is that of metrics
    "errors", "types", "api", "methods", "engine", "metrics", "sweeps", "protocols", "streams", "data",
    "advice", "estimator",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    """Public names are imported when first used: the command line answers a mistake without waiting for torch."""
    if name in __all__:
        for room in _ROOMS:
            module = import_module(f"holdfast.{room}")
            if name in vars(module):
                globals()[name] = getattr(module, name)
                return globals()[name]
    raise AttributeError(f"module 'holdfast' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
