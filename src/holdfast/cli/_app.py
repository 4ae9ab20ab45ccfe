"""All commands put together, and the one place where errors leave: a line each on standard error, and an exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from holdfast.cli import (
    advise,
    audit,
    data,
    demo,
    diagnose,
    doctor,
    export,
    metrics,
    model,
    report,
    reproduce,
    run,
    sweep,
    watch,
)
from holdfast.cli import list as listing
from holdfast.cli._usage import Command, Group
from holdfast.commands.terminal import BAD_INPUT, FAILED, INTERRUPTED, Stopped, complain
from holdfast.errors import BadInput, RunFailed
from holdfast.process import called, keep_memory, take_one_thread


def _version(wanted: bool) -> None:
    if wanted:
        from holdfast import __version__

        print(f"holdfast {__version__}")
        raise typer.Exit


def _start(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A workbench for continual learning: learn new things; hold fast to the old ones."""


def _group(completion: bool = False) -> typer.Typer:
    """Help and errors are plain text: no boxes, no tracebacks with local variables."""
    return typer.Typer(
        cls=Group,
        no_args_is_help=False,
        add_completion=completion,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )


def _app() -> typer.Typer:
    app, files = _group(completion=True), _group()
    app.callback(invoke_without_command=True)(_start)
    app.command("demo", cls=Command)(demo.demo)
    app.command("run", cls=Command, help=run.RUN, context_settings=run.LENIENT)(run.run)
    app.command("compare", cls=Command, help=run.COMPARE, context_settings=run.LENIENT)(run.run)
    app.command("sweep", cls=Command)(sweep.sweep)
    app.command("watch", cls=Command)(watch.watch)
    app.command("diagnose", cls=Command)(diagnose.diagnose)
    app.command("advise", cls=Command)(advise.advise)
    app.command("learn", cls=Command)(model.learn)
    app.command("predict", cls=Command)(model.predict)
    app.command("score", cls=Command)(model.score)
    app.command("reproduce", cls=Command)(reproduce.reproduce)
    app.command("doctor", cls=Command)(doctor.doctor)
    app.command("list", cls=Command)(listing.list_)
    app.command("report", cls=Command)(report.report)
    app.command("export", cls=Command)(export.export)
    app.command("audit", cls=Command)(audit.audit)
    app.command("metrics", cls=Command)(metrics.metrics)
    files.command("status", cls=Command)(data.status)
    files.command("fetch", cls=Command)(data.fetch)
    files.command("verify", cls=Command)(data.verify)
    files.callback(invoke_without_command=True)(data.data)
    app.add_typer(files, name="data")
    return app


def main(args: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code: 0 done, 1 a run failed, 2 bad input, 130 interrupted."""
    if "torch" not in sys.modules:  # then the process may be somebody else's
        take_one_thread()
        keep_memory()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character shows another one
    called(sys.argv[1:] if args is None else args)
    try:
        code = typer.main.get_command(_app()).main(args, prog_name="holdfast", standalone_mode=False)
        sys.stdout.flush()
    except BadInput as error:
        complain(*error.faults)
        return BAD_INPUT
    except RunFailed as error:
        complain(str(error))
        return FAILED
    except Stopped as error:
        complain(str(error))
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        complain(f"{where}{error.strerror or error}")
        return FAILED
    return code if isinstance(code, int) else 0
