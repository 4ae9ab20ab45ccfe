"""`holdfast export DIR --csv|--parquet|--latex|--tensorboard LOGDIR|--svg FOLDER|--onnx`: for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option


def export(
    folder: Annotated[str, Argument(metavar="DIR", hidden=True)],
    csv: Annotated[bool, Option("--csv", help="One line per run, every setting and metric a column.")] = False,
    parquet: Annotated[bool, Option("--parquet", help="The same table as a Parquet file; needs --out.")] = False,
    latex: Annotated[
        bool, Option("--latex", help="The summary as a LaTeX table, and a paper's numbers beside ours.")
    ] = False,
    tensorboard: Annotated[
        str | None, Option(metavar="LOGDIR", help="Curves as TensorBoard events below LOGDIR.")
    ] = None,
    svg: Annotated[
        str | None, Option(metavar="FOLDER", help="Paths through a library of modules as pictures in FOLDER.")
    ] = None,
    onnx: Annotated[bool, Option("--onnx", help="The network of a model as an ONNX file; needs --out.")] = False,
    scores: Annotated[bool, Option("--scores", help="One line per scoring and task instead of per run.")] = False,
    out: Annotated[str | None, Option(metavar="FILE", help="Where to write it.  [default: standard output]")] = None,
) -> None:
    """Export the results of the output folder DIR for other programs.

    DIR may also be a store of sweeps, or one of its sweeps: STORE/sweeps/NAME; with --onnx it is the folder of a model.
    """
    from holdfast.commands.export import Wanted, perform_export

    folders = {"tensorboard": tensorboard, "svg": svg}
    files = {"csv": csv, "parquet": parquet, "latex": latex, "onnx": onnx}
    formats = files | {name: to is not None for name, to in folders.items()}
    chosen = [name for name, wanted in formats.items() if wanted]
    perform_export(Path(folder), Wanted(chosen, scores, out, tensorboard if svg is None else svg))
