"""`holdfast doctor`: what is installed, what is here, and whether it works."""

from __future__ import annotations

from typing import Annotated

from typer import Option


def doctor(json: Annotated[bool, Option("--json", help="Print it as JSON, and nothing else.")] = False) -> int:
    """Show versions, devices, threads and data sets, and test in a few seconds whether all works.

    The test compares two methods on embedded data in processes of their own, keeps what comes of it in a temporary
    folder, and repeats one of them here: both must be the same bit for bit. The exit code is 1 if anything is wrong.
    """
    from holdfast.commands.doctor import examine

    return examine(as_json=json)
