"""`holdfast watch DIR`: how far a run is, from a second terminal."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option


def watch(
    folder: Annotated[str, Argument(metavar="DIR", hidden=True)],
    once: Annotated[bool, Option("--once", help="Print how far it is now, and end.")] = False,
) -> int:
    """Show how far the cells of the output folder DIR are, until they are finished or their runner is gone."""
    from pathlib import Path

    from holdfast.commands.watch import look_on, look_once

    return look_once(Path(folder)) if once else look_on(Path(folder))
