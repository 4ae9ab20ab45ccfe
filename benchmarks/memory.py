"""What keeping freed memory gains: training steps of paper 000's ResNet in processes with and without it.

    python benchmarks/memory.py [--repeats 5] [--width 16]

Processes take turns and have one thread each; printed is the ratio of the medians of their own seconds per step.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys

STEPS, BATCH = 20, 64


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--repeats", type=int, default=5)
    ask.add_argument("--width", type=int, default=16)
    ask.add_argument("--alone", choices=("kept", "given back"), help=argparse.SUPPRESS)
    given = ask.parse_args()
    if given.alone:
        return print(json.dumps(steps(given.width, given.alone == "kept")))
    seconds: dict[str, list[float]] = {"kept": [], "given back": []}
    for _ in range(given.repeats):
        for how, found in seconds.items():
            command = [sys.executable, __file__, "--width", str(given.width), "--alone", how]
            env = os.environ | {"OMP_NUM_THREADS": "1"}
            found += json.loads(subprocess.run(command, check=True, capture_output=True, env=env).stdout)
    kept, given_back = (statistics.median(found) for found in seconds.values())
    print(f"a step of {BATCH} images, width {given.width}: {kept:.4f} s with memory kept, {given_back:.4f} s without")
    print(f"ratio {kept / given_back:.2f}")


def steps(width: int, keep: bool) -> list[float]:
    import time

    import torch

    import holdfast as hf
    from holdfast.process import keep_memory
    from holdfast.types import StreamInfo

    if keep:
        keep_memory()
    info = StreamInfo("made-up", "class", (3, 32, 32), 10, (tuple(range(10)),))
    net = hf.net("ctrl_resnet", width=width).build(info).to(memory_format=torch.channels_last)
    x = torch.randn(BATCH, *info.shape).contiguous(memory_format=torch.channels_last)
    y = torch.randint(10, (BATCH,))
    found = []
    for _ in range(STEPS):
        began = time.process_time()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        found.append(time.process_time() - began)
    return found[3:]


if __name__ == "__main__":
    main()
