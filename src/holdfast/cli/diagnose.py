"""`holdfast diagnose STREAM`: does this stream pose the problem at all?"""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from holdfast.cli._options import Fresh, Quiet


def diagnose(
    stream: Annotated[str, Argument(metavar="STREAM", hidden=True)],
    data: Annotated[
        str | None, Option(metavar="NAME,...", help="The data set, or data sets, it is cut from.  [default: digits]")
    ] = None,
    tasks: Annotated[
        str | None, Option(metavar="N", help="Number of tasks, of which the first two are shown.  [default: 5]")
    ] = None,
    examples: Annotated[str | None, Option(metavar="N", help="Training rows per task.  [default: all]")] = None,
    scenario: Annotated[
        str | None, Option(metavar="WORD", help="class, domain or task.  [default: the stream's own]")
    ] = None,
    net: Annotated[str, Option(metavar="NAME", help="The network, or your own: file.py:function_or_class.")] = "bayes",
    method: Annotated[
        str, Option(metavar="NAME", help="Who learns: vcl (perceptrons alone), ewc or finetune (any network).")
    ] = "vcl",
    set_: Annotated[
        list[str] | None,
        Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any setting; can be repeated: stream.angles=0,90, net.hidden=256,256, protocol.steps=2000.",
        ),
    ] = None,
    repeats: Annotated[str, Option(metavar="N", help="Repeats, each with another seed.")] = "20",
    device: Annotated[str, Option(metavar="NAME", help="auto, cpu, cuda or mps.")] = "auto",
    jobs: Annotated[str | None, Option(metavar="N", help="Processes at once.  [default: one per core]")] = None,
    out: Annotated[
        str | None, Option(metavar="DIR", help="Keep the runs, diagnosis.json and a report there.  [default: nowhere]")
    ] = None,
    fresh: Fresh = False,
    json: Annotated[bool, Option("--json", help="Print the diagnosis as JSON, and nothing else.")] = False,
    quiet: Quiet = False,
) -> int:
    """Does STREAM pose the problem at all?

    A learner that has learned its first task, A, is looked at before each of the first batches of its second, B. How
    sure is it of B, how hard does B pull at its output layer, and how hard does the prior pull back? The same is asked
    of permuted pixels, which resemble nothing that was learned (paper 001, figures 2 to 4). STREAM is a name from
    `holdfast list streams`, or your own: path/to/file.py:ClassName.
    """
    from holdfast.commands.diagnose import diagnose_asked
    from holdfast.commands.experiment import Asked
    from holdfast.commands.run import Output

    asked = Asked(
        methods=(method,),
        stream=stream,
        data=data,
        tasks=tasks,
        examples=examples,
        scenario=scenario,
        first=2,
        net=net,
        protocol="early",
        settings=tuple(set_ or ()),
        device=device,
        jobs=jobs,
    )
    return diagnose_asked(asked, repeats, Output(out, fresh, json, quiet))
