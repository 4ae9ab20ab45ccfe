"""Mistakes in the command itself, an unknown command or option, are told as all other mistakes are."""

from __future__ import annotations

import re
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from holdfast.errors import BadInput, unknown


class Group(TyperGroup):
    """Commands by name; alone, it prints its help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args or ["--help"])
        except typer.TyperException as error:
            raise BadInput(told(error, ctx)) from error

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands and ctx.resilient_parsing:  # a shell asks how it might go on
            return None
        if cmd_name not in self.commands:
            raise BadInput(unknown("command", cmd_name, [*self.commands, "--help"]))
        return self.commands[cmd_name]


class Command(TyperCommand):
    """One command; its arguments are written as they are typed, and explained in its docstring."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [*(p.metavar for p in self.params if p.param_type_name == "argument" and p.metavar), "[OPTIONS]"]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            raise BadInput(told(error, ctx)) from error


def options_of(ctx: Any) -> list[str]:
    """The options a command has."""
    return [name for param in ctx.command.get_params(ctx) for name in param.opts if name.startswith("-")]


def told(error: typer.TyperException, ctx: Any) -> str:
    """The sentence for a usage error."""
    text = error.format_message().rstrip(".")
    option = re.match(r"No such option: (\S+)", text)
    if option:
        return unknown("option", option[1], options_of(ctx))
    return f"{text[0].lower()}{text[1:]}; `{ctx.command_path} --help` shows how to use it"
