"""`holdfast run METHOD` and `holdfast compare METHOD,METHOD,...`: one command, but for how many methods it takes."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Option

from holdfast.cli._options import Columns, Features, Fresh, Label, Quiet, Test
from holdfast.cli._usage import options_of

RUN = """Run one method on one stream.

METHOD is a name from `holdfast list methods`, or a Learner of your own: path/to/file.py:ClassName.
"""
COMPARE = """Run several methods on the same streams and seeds.

METHOD,METHOD,... are names from `holdfast list methods`, or Learners of your own: path/to/file.py:ClassName.
"""
# Unknown options come as words, so that they are told together with all other faults.
LENIENT = {"ignore_unknown_options": True}


def run(
    ctx: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="METHOD", hidden=True)] = None,
    stream: Annotated[str, Option(metavar="NAME", help="How tasks are made, or your own: file.py:Class.")] = "split",
    data: Annotated[
        str | None,
        Option(
            metavar="NAME,...",
            help="The data set, or data sets, they are cut from: names, or paths of .csv, .parquet, .npz or folders of "
            "images.  [default: digits]",
        ),
    ] = None,
    label: Label = None,
    test: Test = None,
    columns: Columns = None,
    features: Features = None,
    tasks: Annotated[str | None, Option(metavar="N", help="Number of tasks.  [default: 5]")] = None,
    examples: Annotated[str | None, Option(metavar="N", help="Training rows per task.  [default: all]")] = None,
    scenario: Annotated[
        str | None,
        Option(metavar="WORD,...", help="class, domain or task, or several.  [default: the stream's own]"),
    ] = None,
    alone: Annotated[
        bool, Option("--alone", help="Also learn the last task with nothing before it, and tell what the past gave.")
    ] = False,
    net: Annotated[str, Option(metavar="NAME", help="The network, or your own: file.py:function_or_class.")] = "mlp",
    protocol: Annotated[
        str, Option(metavar="NAME", help="How the stream is shown, or your own: file.py:Class.")
    ] = "online",
    lr: Annotated[str | None, Option(metavar="RATE", help="Learning rate.  [default: 0.1]")] = None,
    batch: Annotated[str | None, Option(metavar="N", help="Examples per mini-batch.  [default: 10]")] = None,
    epochs: Annotated[
        str | None, Option(metavar="N", help="Passes over each task; more than one: --protocol epochs.")
    ] = None,
    optimiser: Annotated[
        str | None, Option(metavar="NAME", help="sgd, momentum, adam or adamw.  [default: sgd]")
    ] = None,
    set_: Annotated[
        list[str] | None,
        Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any setting; can be repeated: memories=256, gem.memories=256, net.hidden=400,400, "
            "stream.angles=0,90, stream.seed=3 (in place of each run's), protocol.schedule=cosine.",
        ),
    ] = None,
    seeds: Annotated[str, Option(metavar="N,...", help="Seeds to run; three are 0,1,2.")] = "0",
    device: Annotated[str, Option(metavar="NAME", help="auto, cpu, cuda or mps.")] = "auto",
    jobs: Annotated[str | None, Option(metavar="N", help="Processes at once.  [default: cores / threads]")] = None,
    threads: Annotated[
        str | None, Option(metavar="N", help="Threads of each process; large networks gain from more.  [default: 1]")
    ] = None,
    checkpoint_every: Annotated[
        str | None, Option(metavar="N", help="Also save a run every N steps, not only after each task.")
    ] = None,
    keep_model: Annotated[
        bool, Option("--keep-model", help="Leave each run's model in its folder, to predict and to learn more.")
    ] = False,
    out: Annotated[str | None, Option(metavar="DIR", help="Where results are kept.  [default: below runs/]")] = None,
    track: Annotated[
        list[str] | None,
        Option(metavar="NAME[:DIR]", help="Tell tensorboard, wandb (offline) or mlflow what is measured, meanwhile."),
    ] = None,
    fresh: Fresh = False,
    json: Annotated[bool, Option("--json", help="Print summary.json, and nothing else.")] = False,
    quiet: Quiet = False,
) -> int:
    from holdfast.commands.experiment import Asked
    from holdfast.commands.run import Output, run_asked

    methods, faults = _sorted_out(words or [], options_of(ctx))
    if ctx.info_name == "run" and len(methods) > 1:
        faults.append(f"run takes one method; for several write `holdfast compare {','.join(methods)}`")
    elif not methods and not faults:
        faults.append(f"no method is given; write e.g. `holdfast {ctx.info_name} ewc`; see `holdfast list methods`")
    asked = Asked(
        methods=tuple(methods),
        stream=stream,
        data=data,
        label=label,
        test=test,
        columns=columns,
        features=features,
        tasks=tasks,
        examples=examples,
        scenario=scenario,
        alone=alone,
        net=net,
        protocol=protocol,
        lr=lr,
        batch=batch,
        epochs=epochs,
        optimiser=optimiser,
        settings=tuple(set_ or ()),
        seeds=seeds,
        device=device,
        jobs=jobs,
        threads=threads,
        checkpoint_every=checkpoint_every,
        keep_model=keep_model,
    )
    return run_asked(asked, Output(out, fresh, json, quiet, track=tuple(track or ())), faults)


def _sorted_out(words: list[str], options: list[str]) -> tuple[list[str], list[str]]:
    """The methods among the words, and the faults of the rest; a word behind an unknown option is its value."""
    from holdfast.errors import unknown

    methods: list[str] = []
    faults: list[str] = []
    is_value = False
    for word in words:
        if word.startswith("-"):
            faults.append(unknown("option", word.partition("=")[0], options))
            is_value = "=" not in word
        elif is_value:
            is_value = False
        else:
            methods += [name.strip() for name in word.split(",") if name.strip()]
    return methods, faults
