"""`holdfast sweep FILE.toml`: methods × streams × nets × protocols × seeds × grids of settings."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from holdfast.cli._options import Quiet


def sweep(
    file: Annotated[str, Argument(metavar="FILE.toml", hidden=True)],
    jobs: Annotated[str | None, Option(metavar="N", help="Processes at once.  [default: one per core]")] = None,
    on: Annotated[
        str | None, Option(metavar="WHERE", help="ray: a Ray cluster on this machine; ray://HOST:PORT: join one.")
    ] = None,
    checkpoint_every: Annotated[
        str | None, Option(metavar="N", help="Also save a run every N steps, not only after each task.")
    ] = None,
    out: Annotated[
        str | None, Option(metavar="DIR", help="The store; sweeps in one share finished cells.  [default: runs/<name>]")
    ] = None,
    track: Annotated[
        list[str] | None,
        Option(metavar="NAME[:DIR]", help="Tell tensorboard, wandb (offline) or mlflow what is measured, meanwhile."),
    ] = None,
    fresh: Annotated[bool, Option("--fresh", help="Throw away what DIR holds of this sweep's cells.")] = False,
    json: Annotated[bool, Option("--json", help="Print the sweep's summary.json, and nothing else.")] = False,
    quiet: Quiet = False,
) -> int:
    """Run all cells of the sweep that FILE.toml describes; see docs/sweeps.md.

    Finished cells are never run twice, whichever sweep of the same store asked for them first.
    """
    from holdfast.commands.run import Output
    from holdfast.commands.sweep import perform_sweep

    given = {"jobs": jobs, "on": on, "checkpoint_every": checkpoint_every}
    return perform_sweep(file, given, Output(out, fresh, json, quiet, track=tuple(track or ())))
