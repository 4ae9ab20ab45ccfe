"""`holdfast advise DATA`: which method to retrain with, under given limits."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from holdfast.cli._options import Columns, Features, Label, Quiet, Test


def advise(
    data: Annotated[str | None, Argument(metavar="DATA", hidden=True)] = None,
    old: Annotated[
        str | None, Option(metavar="CLASSES", help="Classes that are known already, e.g. 0,1,2.  [default: all others]")
    ] = None,
    new: Annotated[
        str | None, Option(metavar="CLASSES", help="Classes that come, e.g. 3,4.  [default: all others]")
    ] = None,
    label: Label = None,
    test: Test = None,
    columns: Columns = None,
    features: Features = None,
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
        str | None,
        Option(
            metavar="NAME",
            help="The network, or your own: file.py:function_or_class.  [default: mlp, bayes where a method needs it]",
        ),
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
    quiet: Quiet = False,
) -> int:
    """Which method to go on with when new classes come, what it would forget, and how to train it.

    The retraining is rehearsed with every method that the limits allow, cheapest first: the model is chosen on the old
    classes, retraining sees the new ones alone, and what is then known of all of them is measured. DATA is a file
    (.csv, .parquet, .npz), a folder with a folder of images per class, or a data set's name; a --stream has its own
    where none is given. Replay keeps as many rows as fit into --memory.
    """
    from holdfast.commands.advise import Wanted, advise_asked
    from holdfast.commands.run import Output

    wanted = Wanted(
        data=data,
        label=label,
        test=test,
        columns=columns,
        features=features,
        old=old,
        new=new,
        stream=stream,
        scenario=scenario,
        memory=memory,
        keep_data=keep_data,
        time=time,
        methods=methods,
        net=net,
        settings=tuple(set_ or ()),
        seeds=seeds,
        jobs=jobs,
    )
    return advise_asked(wanted, Output(out, False, json, quiet))
