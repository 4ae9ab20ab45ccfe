"""Checkpoints: the last two states of a run that is not finished."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from safetensors import SafetensorError

from holdfast.engine.state import State, read, save

# What a cut, spoiled or foreign state raises.
_DAMAGED = (OSError, ValueError, KeyError, TypeError, RecursionError, SafetensorError)


class Checkpoint:
    """A folder of numbered states. A newer one is whole before an older one goes, and the one before it stays.

    `key` says whose states they are: another's are of no use. `every`: also in the middle of a task, so many steps
    apart. `say` hears, in words, what becomes of the states found.
    """

    def __init__(
        self, folder: Path, key: str, every: int | None = None, say: Callable[[str], None] = lambda line: None
    ) -> None:
        self.folder, self.key, self.every, self.say = folder, key, every, say

    def write(self, state: State) -> None:
        """Keep a state, and the one before it."""
        *older, _ = numbers = [0, *self._numbers()]
        save({"key": self.key, "state": state}, self.folder / str(numbers[-1] + 1))
        for number in older:
            shutil.rmtree(self.folder / str(number), ignore_errors=True)

    def read(self) -> State | None:
        """The newest state that is whole, if any is; what is damaged is told and thrown away."""
        numbers = self._numbers()
        while numbers:
            place = self.folder / str(numbers.pop())
            try:
                saved = read(place)
                if saved["key"] != self.key:
                    raise ValueError("it is of another run")
                return saved["state"]
            except _DAMAGED as error:
                reason = (str(error).splitlines() or [type(error).__name__])[0]
                then = "goes on from the one before" if numbers else "starts over"
                self.say(f"a checkpoint cannot be used ({reason}); {then}")
                shutil.rmtree(place, ignore_errors=True)
        return None

    def _numbers(self) -> list[int]:
        found = self.folder.iterdir() if self.folder.is_dir() else ()
        return sorted(int(path.name) for path in found if path.name.isdecimal())
