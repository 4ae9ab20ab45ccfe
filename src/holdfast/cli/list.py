"""`holdfast list methods|streams|nets|protocols|data [NAME]`: what there is, and its settings."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option


def list_(
    kind: Annotated[str | None, Argument(metavar="[KIND]", hidden=True)] = None,
    name: Annotated[str | None, Argument(metavar="[NAME]", hidden=True)] = None,
    settings: Annotated[bool, Option("--settings", help="Show the settings of all of them.")] = False,
    json: Annotated[bool, Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List what there is to choose from.

    KIND is methods, streams, nets, protocols or data. With the NAME of one, its settings are shown too.
    """
    from holdfast.commands.list import list_things

    list_things(kind, name, in_full=settings or name is not None, as_json=json)
