"""`holdfast audit DIR`: the audit cards of an output folder."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option


def audit(
    folder: Annotated[str, Argument(metavar="DIR", hidden=True)],
    json: Annotated[bool, Option("--json", help="Print the cards as JSON.")] = False,
) -> None:
    """Show the audit cards of the output folder DIR.

    They say which conditions of an honest evaluation each result met, as measured in its runs.
    """
    from holdfast.commands.audit import show_cards

    show_cards(folder, as_json=json)
