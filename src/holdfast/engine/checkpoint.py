"""Checkpoints: the last two states of a run that is not finished."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from safetensors import SafetensorError

from holdfast.engine.state import Files, State, from_files, read_files, to_files, write_files

# What a cut, spoiled or foreign state raises.
DAMAGED = (OSError, ValueError, KeyError, TypeError, RecursionError, SafetensorError)


class Keeper(ABC):
    """Keeps the states of a run that is not finished.

    `key` says whose states they are: another's are of no use. `every`: also in the middle of a task, so many steps
    apart. `say` hears, in words, what becomes of the states found.
    """

    def __init__(self, key: str, every: int | None = None, say: Callable[[str], None] = lambda line: None) -> None:
        self.key, self.every, self.say = key, every, say

    def packed(self, state: State) -> Files:
        """A state as the files that `Checkpoint` has, and reads."""
        return to_files({"key": self.key, "state": state})

    @abstractmethod
    def write(self, state: State) -> None:
        """Keep a state."""

    @abstractmethod
    def read(self) -> State | None:
        """The newest state that is whole, if there is one."""


class Checkpoint(Keeper):
    """A folder of numbered states. A newer one is whole before an older one goes, and the one before it stays.

    What they have in common, the full pages of their logs, is one file that has a name in either.
    """

    def __init__(
        self, folder: Path, key: str, every: int | None = None, say: Callable[[str], None] = lambda line: None
    ) -> None:
        super().__init__(key, every, say)
        self.folder = folder

    def write(self, state: State) -> None:
        self.put(self.packed(state))

    def read(self) -> State | None:
        """What is damaged is told and thrown away."""
        found = self._newest()
        return None if found is None else found[1]

    def put(self, files: Files) -> None:
        """Keep a state that is files already, and the one before it."""
        *older, last = [0, *self._numbers()]
        write_files(files, self.folder / str(last + 1), self.folder / str(last) if last else None)
        for number in older:
            shutil.rmtree(self.folder / str(number), ignore_errors=True)

    def files(self) -> Files | None:
        """What `read` finds, as files."""
        found = self._newest()
        return None if found is None else found[0]

    def _newest(self) -> tuple[Files, State] | None:
        numbers = self._numbers()
        while numbers:
            place = self.folder / str(numbers.pop())
            try:
                files = read_files(place)
                saved = from_files(files)
                if saved["key"] != self.key:
                    raise ValueError("it is of another run")
                return files, saved["state"]
            except DAMAGED as error:
                reason = (str(error).splitlines() or [type(error).__name__])[0]
                then = "goes on from the one before" if numbers else "starts over"
                self.say(f"a checkpoint cannot be used ({reason}); {then}")
                shutil.rmtree(place, ignore_errors=True)
        return None

    def _numbers(self) -> list[int]:
        return numbers_in(self.folder)


def numbers_in(folder: Path) -> list[int]:
    """Of the states in a folder, the oldest first."""
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(int(path.name) for path in found if path.name.isdecimal())
