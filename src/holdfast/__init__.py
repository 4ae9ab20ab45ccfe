"""Holdfast: a workbench for continual learning. Learn new things; hold fast to the old ones.

import holdfast as hf
stream = hf.stream("rotated", tasks=5)
print(hf.compare(["finetune", "ewc", "gem"], stream, seeds=3))
"""

import os

# Before torch and its BLAS start: idle threads sleep instead of spinning, and one process uses one thread.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from holdfast.api import Comparison, compare, load, method, net, protocol, run, stream
from holdfast.engine import Growing, Memory, Net
from holdfast.errors import BadInput, PastDataError, RunFailed
from holdfast.estimator import ContinualClassifier
from holdfast.methods import Learner
from holdfast.types import Batch, Record, Stream, StreamInfo, Task

__version__ = "0.1.0"

__all__ = [
    "BadInput", "Batch", "Comparison", "ContinualClassifier", "Growing", "Learner", "Memory", "Net", "PastDataError",
    "Record", "RunFailed", "Stream", "StreamInfo", "Task", "compare", "load", "method", "net", "protocol", "run",
    "stream",
]  # fmt: skip
