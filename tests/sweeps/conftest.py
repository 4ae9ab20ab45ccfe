"""A small stream, cells over it, and one finished record."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast as hf
from holdfast.sweeps import Cell, write_record
from holdfast.types import Record

SMALL = {"tasks": 2, "examples": 60, "test_examples": 30}


@pytest.fixture(scope="session")
def stream() -> hf.Stream:
    return hf.stream("split", **SMALL)


@pytest.fixture
def cell(stream: hf.Stream) -> Callable[..., Cell]:
    """cell(method="gem", ...) with anything of it replaced."""

    def make(method: Any = "finetune", seed: int = 0, **changes: Any) -> Cell:
        learner = hf.method(method) if isinstance(method, str) else method
        usual = {"stream": stream, "net": hf.net("mlp", hidden=(8,)), "protocol": hf.protocol("online")}
        return Cell(method=learner, seed=seed, **{**usual, **changes})

    return make


@pytest.fixture(scope="session")
def record(stream: hf.Stream) -> Record:
    return hf.run(hf.method("er", memories=20), stream, net=hf.net("mlp", hidden=(8,)), seed=3)


@pytest.fixture
def home(record: Record, tmp_path: Path) -> Path:
    """A folder that holds the record."""
    write_record(record, tmp_path / "cell")
    return tmp_path / "cell"
