"""`holdfast audit DIR`: the audit cards of an output folder."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option


def audit(
    folder: Annotated[str, Argument(metavar="DIR", hidden=True)],
    require: Annotated[
        str | None,
        Option(
            metavar="NAME,...",
            help="Exit with 1 unless every result meets these lines: resemblance, shared-head, no-task-label, "
            "no-old-data, more-than-two-tasks; no-boundaries, continuous-tasks, overlapping-tasks, long-sequence, "
            "update-flops, memory; no-generator, class-frequencies, causal-selection, single-pass, uncertainty. "
            "Short: causal, continuous, hidden-boundaries, long, overlapping, time.",
        ),
    ] = None,
    json: Annotated[bool, Option("--json", help="Print the cards as JSON.")] = False,
) -> int:
    """Show the audit cards of the output folder DIR.

    They say which conditions of an honest evaluation each result met, as measured in its runs: the five that paper 001
    asks of every evaluation, its six harder ones, and others. A line that was not measured is not met.
    """
    from holdfast.commands.audit import show_cards

    return show_cards(folder, as_json=json, require=require)
