"""`holdfast data status|fetch|verify`: the data sets on this machine."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

Name = Annotated[str, Argument(metavar="NAME", hidden=True)]


def data() -> None:
    """See, download and verify data sets."""


def status(json: Annotated[bool, Option("--json", help="Print a list of rows as JSON.")] = False) -> None:
    """Show which data sets are there.

    Their folder is HOLDFAST_DATA, or ~/.cache/holdfast/data. Any folder in it that holds the four IDX files, an npz
    or class folders of images is a data set by its name.
    """
    from holdfast.commands.data import show_status

    show_status(as_json=json)


def fetch(name: Name) -> int:
    """Download the data set NAME from its public source.

    An earlier download that was cut goes on where it ended; every file is compared with its published checksum.
    """
    from holdfast.commands.data import download

    return download(name)


def verify(name: Name) -> int:
    """Compare the data set NAME with what was published.

    It is also read whole. The exit code is 1 when a file differs or cannot be read.
    """
    from holdfast.commands.data import compare_files

    return compare_files(name)
