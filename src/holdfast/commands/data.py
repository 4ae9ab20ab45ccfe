"""What `holdfast data status|fetch|verify` do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from holdfast import data
from holdfast.commands.terminal import FAILED, INTERRUPTED, complain, print_json, print_table, tell
from holdfast.data.fetch import Progress
from holdfast.report import words


def show_status(as_json: bool) -> None:
    """A row per data set: whether it is there, how large it is, and where."""
    rows = data.status()
    if as_json:
        print_json([asdict(row) for row in rows])
        return

    def count(rows: int | None) -> str:
        return words.UNDEFINED if rows is None else str(rows)

    print_table(
        ["data set", "there", "train", "test", "size", "where", "note"],
        [
            [
                r.name,
                "yes" if r.present else "no",
                count(r.train),
                count(r.test),
                words.in_bytes(r.size),
                r.where,
                r.note,
            ]
            for r in rows
        ],
    )


def download(name: str) -> int:
    """The files of a data set from its public source; the exit code."""
    try:
        with _shown() as progress:
            paths = data.fetch(name, progress=progress)
    except KeyboardInterrupt:
        complain("stopped; the same command goes on from there")
        return INTERRUPTED
    for path in paths:
        print(path)
    if not paths:
        print(f"{name} is {_kind(name)}: there is nothing to download")
    return 0


def compare_files(name: str) -> int:
    """The files of a data set against what was published; the exit code."""
    verdict = data.verify(name)
    for check in verdict.files:
        print(f"{check.file}: {check.state}; {check.detail}")
    if not verdict.files:
        print(f"{name} is {_kind(name)}: there are no published files to compare with")
    lacking = any(check.state == "absent" for check in verdict.files)
    print(f"not all of its files are there; run `holdfast data fetch {name}`" if lacking else verdict.detail)
    return 0 if verdict.published else FAILED


def _kind(name: str) -> str:
    """Of a data set without published files."""
    return "embedded" if name in data.EMBEDDED else "got by hand" if name in data.ON_DISK else "a folder of yours"


@contextmanager
def _shown() -> Iterator[Progress]:
    """A bar per file on a terminal, a line per file elsewhere."""
    if not sys.stderr.isatty():
        begun: set[str] = set()

        def line(done: int, total: int | None, file: str) -> None:
            if file not in begun:
                begun.add(file)
                tell(f"downloading {file}" + (f" ({total} bytes)" if total else ""))

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TaskID, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Display

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    bars: dict[str, TaskID] = {}
    with Display(*columns, console=Console(stderr=True)) as display:

        def bar(done: int, total: int | None, file: str) -> None:
            if file not in bars:
                bars[file] = display.add_task(file)
            display.update(bars[file], completed=done, total=total)

        yield bar
