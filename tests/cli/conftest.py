"""Commands in this process, in an empty folder."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.cli import main

TINY = "--tasks 2 --examples 20 --jobs 1"


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def complaints(self) -> list[str]:
        """The lines on standard error; every one of them must be a complaint."""
        lines = self.err.splitlines()
        assert all(line.startswith("holdfast: ") for line in lines), self.err
        return [line.removeprefix("holdfast: ") for line in lines]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: empty, and without data sets on disk."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path / "data"))
    return folder


@pytest.fixture
def holdfast(here: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[str], Done]:
    """`holdfast("run gem --quiet")`; TINY in it stands for a run of a few milliseconds."""

    def run(command: str) -> Done:
        capsys.readouterr()
        code = main(shlex.split(command.replace("TINY", TINY)))
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return run
