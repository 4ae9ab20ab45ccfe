"""`holdfast learn`, `predict` and `score`: a model that stays, and new data."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from holdfast.cli._options import Columns, Features, Label, Quiet

DATA = "A file (.csv, .parquet, .npz), a folder with a folder of images per class, or a data set's name."
Model = Annotated[str, Option("--model", metavar="DIR", help="Where the model is kept.")]
Data = Annotated[str, Argument(metavar="DATA", hidden=True)]
Task = Annotated[str | None, Option(metavar="N", help="Which task, from 0, where the model is told it.")]
OWN = "Where the model is of code of your own: what it was begun with."
Method = Annotated[str | None, Option(metavar="FILE.py:NAME", help=OWN)]
Net = Annotated[str | None, Option(metavar="FILE.py:NAME", help=OWN)]
Protocol = Annotated[str | None, Option(metavar="FILE.py:NAME", help=OWN)]
Set = Annotated[list[str] | None, Option("--set", metavar="NAME=VALUE", help="Settings of that code.")]
Json = Annotated[bool, Option("--json", help="Print it as JSON, and nothing else.")]


def learn(
    data: Data,
    model: Model,
    method: Annotated[str | None, Option(metavar="NAME", help="Of a new model.  [default: er]")] = None,
    net: Annotated[str | None, Option(metavar="NAME", help="Of a new model.  [default: mlp]")] = None,
    protocol: Annotated[str | None, Option(metavar="NAME", help="Of a new model.  [default: epochs]")] = None,
    scenario: Annotated[
        str | None, Option(metavar="WORD", help="Of a new model: class, domain or task.  [default: class]")
    ] = None,
    classes: Annotated[
        str | None, Option(metavar="N", help="Of a new model: how many will come at most.  [default: 100]")
    ] = None,
    lr: Annotated[str | None, Option(metavar="NUMBER", help="Learning rate.  [default: the protocol's]")] = None,
    batch: Annotated[str | None, Option(metavar="N", help="Rows per step.  [default: the protocol's]")] = None,
    epochs: Annotated[str | None, Option(metavar="N", help="Passes over each task.  [default: the protocol's]")] = None,
    set_: Annotated[
        list[str] | None,
        Option("--set", metavar="NAME=VALUE", help="Any setting of a new model: memories=200, net.hidden=256,256."),
    ] = None,
    seed: Annotated[str | None, Option(metavar="N", help="Of a new model.  [default: 0]")] = None,
    label: Label = None,
    columns: Columns = None,
    features: Features = None,
    test: Annotated[
        str | None, Option(metavar="SHARE", help="Of each class, kept apart to score the task.  [default: 0]")
    ] = None,
    val: Annotated[
        str | None, Option(metavar="SHARE", help="Of each class, kept apart for protocols that choose.  [default: 0]")
    ] = None,
    name: Annotated[str | None, Option(metavar="WORDS", help="What the task is called.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Teach a model one more task; the first call makes it.

    DATA has the rows to learn from, with labels. What the model keeps of them is what its method says; the same
    command with other data goes on later, and needs none of the old ones. A model that is there says its own settings.
    """
    from holdfast.commands.model import Asked, learn_asked

    started = {"method": method, "net": net, "protocol": protocol, "scenario": scenario, "classes": classes}
    tuned = {"lr": lr, "batch": batch, "epochs": epochs, "seed": seed}
    source = {"label": label, "columns": columns, "features": features}
    asked = Asked(data, model, {**started, **tuned}, tuple(set_ or ()), source, {"test": test, "val": val}, name)
    return learn_asked(asked, json, quiet)


def predict(
    data: Data,
    model: Model,
    out: Annotated[str | None, Option(metavar="FILE", help="A .csv to write.  [default: standard output]")] = None,
    task: Task = None,
    features: Features = None,
    method: Method = None,
    net: Net = None,
    protocol: Protocol = None,
    set_: Set = None,
    quiet: Quiet = False,
) -> int:
    """What a model says of each row of DATA: its class, and how probable it is.

    Labels are not needed. Rows are numbered from 1, in their order.
    """
    from holdfast.commands.model import Asked, predict_asked

    own = {"method": method, "net": net, "protocol": protocol}
    asked = Asked(data, model, own, tuple(set_ or ()), {"features": features})
    return predict_asked(asked, out, task, quiet)


def score(
    data: Data,
    model: Model,
    task: Task = None,
    label: Label = None,
    features: Features = None,
    method: Method = None,
    net: Net = None,
    protocol: Protocol = None,
    set_: Set = None,
    json: Json = False,
    quiet: Quiet = False,
) -> int:
    """What a model still knows of each class, on the rows of DATA, which has labels."""
    from holdfast.commands.model import Asked, score_asked

    own = {"method": method, "net": net, "protocol": protocol}
    asked = Asked(data, model, own, tuple(set_ or ()), {"label": label, "features": features})
    return score_asked(asked, task, json, quiet)
