"""What `holdfast watch` does."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from rich.console import Console
from rich.live import Live

from holdfast.commands.progress import drawn, sentence
from holdfast.commands.terminal import INTERRUPTED, WIDE
from holdfast.sweeps.board import Snapshot, read_board

EVERY = 0.5  # seconds between two looks


def look_once(folder: Path) -> int:
    """The table as text."""
    now = read_board(folder)
    Console(width=None if sys.stdout.isatty() else WIDE, highlight=False).print(drawn(now))
    _tell_end(folder, now)
    return 0


def look_on(folder: Path) -> int:
    """The table on a terminal, a line for every change elsewhere, until nobody works on it any more."""
    now = read_board(folder)
    try:
        if sys.stdout.isatty():
            console = Console(highlight=False)
            with Live(drawn(now, console.height), console=console, transient=True, auto_refresh=False) as live:
                while now.runner == "running":
                    time.sleep(EVERY)
                    now = read_board(folder)
                    live.update(drawn(now, console.height), refresh=True)
        else:
            now = _lines(folder, now)
    except KeyboardInterrupt:
        return INTERRUPTED
    print(sentence(now))
    _tell_end(folder, now)
    return 0


def _lines(folder: Path, now: Snapshot) -> Snapshot:
    said = None
    while now.runner == "running":
        if now.counts != said:
            print(sentence(now), flush=True)
            said = now.counts
        time.sleep(EVERY)
        now = read_board(folder)
    return now


def _tell_end(folder: Path, now: Snapshot) -> None:
    if now.runner == "running":
        return
    if now.counts["done"] == len(now.rows):
        print("finished")
    elif now.runner == "gone":
        print(f"its runner is gone; the same command goes on from what is kept in {folder}")
    else:
        print("nobody is working on it; the same command goes on with the rest")
