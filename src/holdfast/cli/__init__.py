"""The command line. Each command is a file of its own; `main` puts them together."""

from holdfast.cli._app import main

__all__ = ["main"]
