"""Where a report comes from: command, day, version, environment, and the data that were read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from holdfast.metrics import Group
from holdfast.report import parts, words


def section(groups: Sequence[Group], experiment: Mapping[str, Any]) -> str:
    """What experiment.json and the records say; of records that came from no folder, the data alone."""
    made, versions = experiment.get("made", {}), experiment.get("versions", {})
    code = f" (code {versions['holdfast']})" if "holdfast" in versions else ""
    others = [f"{name} {version}" for name, version in versions.items() if name != "holdfast"]
    said = {
        "Command": _code(made.get("command", "")),
        "Version": escape(f"Holdfast {made.get('version', '')}{code}") if versions else "",
        "Date": escape(str(made.get("date", ""))),
        "Environment": escape(", ".join([*others, *([str(made["machine"])] if "machine" in made else [])])),
        "Data": "<br>".join(f"{escape(name)} {_code(mark)}" for name, mark in fingerprints(groups)),
    }
    items = "".join(f"<div><dt>{name}</dt><dd>{text}</dd></div>" for name, text in said.items() if text)
    return parts.section("Origin", "", [f'<dl class="origin">{items}</dl>' if items else ""])


def fingerprints(groups: Sequence[Group]) -> list[tuple[str, str]]:
    """(name, sha256) of all data that were run, each once."""
    streams = (g.first.stream for g in groups)
    return list(
        dict.fromkeys((words.value(s.get("data")), str(s["fingerprint"])) for s in streams if "fingerprint" in s)
    )


def data(groups: Sequence[Group]) -> list[str]:
    """The names of all data that were run."""
    return list(dict.fromkeys(words.value(g.first.stream["data"]) for g in groups if g.first.stream.get("data")))


def _code(text: str) -> str:
    return f"<code>{escape(str(text))}</code>" if text else ""
