"""`holdfast demo`: five methods on embedded data, in under a minute."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from holdfast.cli._options import Quiet


def demo(
    out: Annotated[str | None, Option(metavar="DIR", help="Where results are kept.  [default: runs/demo]")] = None,
    quiet: Quiet = False,
) -> int:
    """Compare five methods on embedded data and write a report.

    The stream is split digits, in the class and in the task scenario, with three seeds: under a minute on two cores.
    """
    from holdfast.commands.experiment import Asked
    from holdfast.commands.run import Output, run_asked
    from holdfast.errors import BadInput

    asked = Asked(
        methods=("finetune", "ewc", "er", "gem", "joint"),
        scenario="class,task",
        protocol="epochs",
        epochs="5",
        optimiser="momentum",
        lr="0.02",
        settings=("ewc.strength=400", "er.memories=200", "gem.memories=40"),  # both memories end with 200 examples
        seeds="0,1,2",
    )
    if out is not None:
        return run_asked(asked, Output(out, quiet=quiet, announce=print))
    try:
        return run_asked(asked, Output("runs/demo", quiet=quiet, announce=print))
    except BadInput:  # runs/demo is another version's, and stays so; a folder named by the experiment's hash is free
        return run_asked(asked, Output(quiet=quiet, announce=print))
