"""How hard the procedural families are, for a linear classifier, an MLP and a small convolutional net.

Run: PYTHONPATH=src OMP_NUM_THREADS=1 python tests/data/measure_synth.py        (about two minutes)
"""

import sys
import time

import torch
from torch import nn

from holdfast.data import synth
from holdfast.data.files import Arrays

EPOCHS = 15
NETS = {
    "linear": lambda: nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)),
    "mlp": lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(3072, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
    ),
    "conv": lambda: nn.Sequential(
        *(nn.Conv2d(3, 16, 5, stride=2, padding=2), nn.ReLU()),
        *(nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(1024, 10)),
    ),
}


def accuracy(net: nn.Module, data: Arrays) -> float:
    x, y, x_test, y_test = (torch.from_numpy(part) for part in data[:4])
    x, x_test = x / 255 - 0.5, x_test / 255 - 0.5
    optimiser = torch.optim.Adam(net.parameters(), 1e-3)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(x)).split(64):
            optimiser.zero_grad()
            nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
            optimiser.step()
    with torch.inference_mode():
        return (net(x_test).argmax(1) == y_test).float().mean().item()


if __name__ == "__main__":
    torch.set_num_threads(1)
    start = time.perf_counter()
    synth.read("synth")
    print(f"all four families, 400 + 100 rows per class: {time.perf_counter() - start:.1f} s")
    for name in sys.argv[1:] or synth.FAMILIES:
        data = synth.family(name)
        for kind, make in NETS.items():
            torch.manual_seed(0)
            print(f"{name:9} {kind:7} {accuracy(make(), data):.3f}", flush=True)
