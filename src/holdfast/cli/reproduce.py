"""`holdfast reproduce [ID]`: a table or figure of a paper, published numbers beside measured ones."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Option

from holdfast.cli._options import Fresh, Quiet


def reproduce(
    id: Annotated[str | None, typer.Argument(metavar="[ID]", help="e.g. gem/table3; without it: the list.")] = None,
    scale: Annotated[str, Option(metavar="NAME", help="smoke, laptop or full.")] = "laptop",
    seeds: Annotated[str | None, Option(metavar="N", help="How many seeds: 0 to N-1.")] = None,
    words: Annotated[
        str | None, Option("--only", metavar="NAMES", help="Of its rows and columns only these, e.g. fc,LWTA,D9-1a.")
    ] = None,
    jobs: Annotated[str | None, Option(metavar="N", help="Processes at once.  [default: one per core]")] = None,
    out: Annotated[str | None, Option(metavar="DIR", help="Where results are kept.  [default: below runs/]")] = None,
    sources: Annotated[
        list[str] | None,
        Option("--from", metavar="DIR", help="Another output folder, whose finished runs are taken over; or several."),
    ] = None,
    keep: Annotated[
        str | None,
        Option(metavar="DIR", help="Also keep the numbers there as a small file, with command, commit and machine."),
    ] = None,
    fresh: Fresh = False,
    json: Annotated[bool, Option("--json", help="Print the cells as JSON, and nothing else.")] = False,
    quiet: Quiet = False,
) -> int:
    """Reproduce a table or figure of a paper, or list them all.

    The numbers are printed as published | measured ± interval | within tolerance?, and kept in reproduction.json.
    """
    from holdfast.commands.reproduce import list_all, reproduce_one
    from holdfast.commands.run import Output

    if id is None:
        return list_all(json)
    return reproduce_one(id, scale, seeds, jobs, Output(out, fresh, json, quiet), sources or (), words, keep)
