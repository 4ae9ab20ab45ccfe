"""Seconds of `compare` with five seeds of four methods: python parallel.py JOBS"""

from __future__ import annotations

import json
import sys
import time

from workloads import BUFFER, LR, MARGIN, MEMORIES, STRENGTH

import holdfast as hf

METHODS = [
    hf.method("finetune"),
    hf.method("gem", memories=MEMORIES, margin=MARGIN),
    hf.method("ewc", strength=STRENGTH),
    hf.method("er", memories=BUFFER),
]


def seconds(jobs: int) -> float:
    stream = hf.stream("permuted", data="mnist", tasks=5, examples=1000)
    began = time.perf_counter()
    found = hf.compare(METHODS, stream, seeds=5, protocol=hf.protocol("online", batch=10, lr=LR), jobs=jobs)
    if found.failures:
        raise RuntimeError(str(found))
    return time.perf_counter() - began


if __name__ == "__main__":
    print(json.dumps({"seconds": seconds(int(sys.argv[1]))}))
