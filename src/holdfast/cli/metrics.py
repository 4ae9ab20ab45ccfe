"""`holdfast metrics DIR --as SOURCE`: the metrics of an output folder by other libraries' formulas."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option


def metrics(
    folder: Annotated[str, Argument(metavar="DIR", hidden=True)],
    source: Annotated[
        str | None,
        Option(
            "--as",
            metavar="SOURCE",
            help="As one source computes them: papers (ours), gem (its authors' code), avalanche, mammoth, pycil, "
            "pilot or continuum.  [default: all, side by side]",
        ),
    ] = None,
    json: Annotated[bool, Option("--json", help="Print them as JSON, with the value of every seed.")] = False,
) -> None:
    """Show the metrics of the output folder DIR as other libraries and papers compute them from the same accuracies.

    They go by the same names and are not the same: docs/formulas.md has the formulas. DIR may also be a store of
    sweeps, or one of its sweeps: STORE/sweeps/NAME.
    """
    from holdfast.commands.metrics import show_metrics

    show_metrics(folder, source, as_json=json)
