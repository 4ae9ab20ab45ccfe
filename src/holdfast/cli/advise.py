"""`holdfast advise DATA`: which method to retrain with, under given limits."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option


def advise(
    data: Annotated[str, Argument(metavar="DATA", hidden=True)],
    old: Annotated[
        str | None, Option(metavar="CLASSES", help="Classes that are known already, e.g. 0,1,2.  [default: all others]")
    ] = None,
    new: Annotated[str | None, Option(metavar="CLASSES", help="Classes that come, e.g. 3,4.")] = None,
    stream: Annotated[
        str | None,
        Option(metavar="NAME", help="A stream in place of --old and --new, with its --set stream.NAME=VALUE."),
    ] = None,
    scenario: Annotated[
        str | None, Option(metavar="WORD", help="class, domain or task.  [default: the stream's own]")
    ] = None,
    memory: Annotated[
        str | None, Option(metavar="SIZE", help="What may be left behind in all, e.g. 5MB.  [default: anything]")
    ] = None,
    keep_data: Annotated[
        str, Option("--keep-data", metavar="yes|no", help="Whether rows of old classes may be kept.")
    ] = "yes",
    time: Annotated[str, Option(metavar="TIME", help="What the advice may take, e.g. 90s, 20m or 1h.")] = "20m",
    methods: Annotated[
        str | None, Option(metavar="NAME,...", help="Only these, or your own: file.py:Class.  [default: all]")
    ] = None,
    net: Annotated[
        str | None, Option(metavar="NAME", help="The network.  [default: mlp, bayes where a method needs it]")
    ] = None,
    set_: Annotated[
        list[str] | None,
        Option(
            "--set", metavar="NAME=VALUE", help="Any setting; can be repeated: protocol.steps=500, er.memories=200."
        ),
    ] = None,
    seeds: Annotated[str, Option(metavar="N", help="Rehearsals of those near the best.")] = "3",
    jobs: Annotated[str | None, Option(metavar="N", help="Processes at once.  [default: one per core]")] = None,
    out: Annotated[
        str | None, Option(metavar="DIR", help="Keep the runs, advice.json and a report there.  [default: nowhere]")
    ] = None,
    json: Annotated[bool, Option("--json", help="Print the advice as JSON, and nothing else.")] = False,
    quiet: Annotated[bool, Option("--quiet", help="Print nothing but errors.")] = False,
) -> int:
    """Which method to go on with when new classes come.

    The retraining is rehearsed with every method that the limits allow, cheapest first: the model is chosen on the old
    classes, retraining sees the new ones alone, and what is then known of all of them is measured. DATA is a data set's
    name or folder in HOLDFAST_DATA.
    """
    from holdfast.commands.advise import Wanted, advise_asked
    from holdfast.commands.run import Output

    wanted = Wanted(
        data, old, new, stream, scenario, memory, keep_data, time, methods, net, tuple(set_ or ()), seeds, jobs
    )
    return advise_asked(wanted, Output(out, False, json, quiet))
