"""Numbers and conditions as people read them, the same in every table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.metrics import METRICS, Group, Interval

UNDEFINED = "–"
SAID = ("name", "data", "tasks")  # of a stream, default or not
SILENT = ("name", "fingerprint", "weights", "module")  # for machines; a name says enough to people
MINUS = "−"  # a true minus sign lines up with digits


def number(value: float | None, metric: str) -> str:
    """One value in the metric's unit: '0.831', '1.2 MB', '3.1 G', '12.3 s'."""
    if value is None:
        return UNDEFINED
    unit = METRICS[metric].unit
    if unit == "accuracy":
        text = f"{value:.3f}"
        return "0.000" if text == "-0.000" else text.replace("-", MINUS)
    return {"bytes": in_bytes, "FLOPs": in_flops, "s": in_seconds}[unit](value)


def spread(found: Interval, metric: str) -> str:
    """'0.831 ± 0.012', or the mean alone where there is no interval."""
    mean = number(found.mean, metric)
    return mean if found.half is None else f"{mean} ± {number(found.half, metric)}"


def in_bytes(value: float) -> str:
    """
    >>> in_bytes(89610)
    '89.6 kB'
    """
    return _scaled(value, ["B", "kB", "MB", "GB", "TB"])


def in_flops(value: float) -> str:
    """
    >>> in_flops(3.14e12)
    '3.14 T'
    """
    return _scaled(value, ["", "k", "M", "G", "T", "P", "E"]).strip()


def in_seconds(value: float) -> str:
    """
    >>> in_seconds(0.034), in_seconds(12.34), in_seconds(600)
    ('34 ms', '12.3 s', '10 min')
    """
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if abs(value) >= 2 * size:
            return f"{_digits(value / size)} {unit}"
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(value) >= size:
            return f"{_digits(value / size)} {unit}"
    return "0 s"


def optimal(cost: str, labels: Sequence[str]) -> str:
    """Which results are on a front, with the numbers that stand beside them; nothing where there are none.

    >>> optimal("Memory", ["finetune", "er"])
    'Memory, Pareto-optimal from the cheapest to the most accurate: 1 finetune, 2 er.'
    """
    apart = "; " if any("," in label for label in labels) else ", "
    named = apart.join(f"{number} {label}" for number, label in enumerate(labels, 1))
    return f"{cost}, Pareto-optimal from the cheapest to the most accurate: {named}." if labels else ""


def _scaled(value: float, units: list[str]) -> str:
    size = 0
    while abs(value) >= 999.5 and size < len(units) - 1:
        value, size = value / 1000, size + 1
    return f"{_digits(value)} {units[size]}"


def _digits(value: float) -> str:
    """Three significant digits, never an exponent; the dust of a floating-point sum is 0."""
    if abs(value) < 1e-3:
        return "0"
    return (f"{value:.0f}" if abs(value) >= 99.95 else f"{value:.3g}").replace("-", MINUS)


def finished(done: int, asked: int) -> str:
    """
    >>> finished(1, 3)
    '1 of 3 seeds finished'
    """
    return f"{done} of {asked} seed{'s' if asked > 1 else ''} finished"


def label_given(group: Group) -> str:
    """Whether the task label was given at test: the word that stands beside every scenario."""
    return "given" if group.task_label_given else "hidden"


def described(mapping: Mapping[str, Any]) -> str:
    """A stream, protocol or net in one line: 'split: data digits, tasks 5'."""
    rest = [f"{k} {value(v)}" for k, v in mapping.items() if k not in SILENT and v is not None]
    name = str(mapping.get("name", ""))
    return f"{name}: {', '.join(rest)}" if name and rest else name or ", ".join(rest)


def told(group: Group, place: str) -> dict[str, Any]:
    """The stream, net or protocol of a group as captions have it: without settings at their defaults, and without the
    scenario, which stands beside it."""
    settings = group.first.settings
    return {
        name: each
        for name, each in group.conditions(place).items()
        if name in SAID or (settings.get(f"{place}.{name}", {}).get("chosen_by") != "default" and name != "scenario")
    }


def all_described(mappings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Streams, protocols or nets, a line each; more than two in one line that names all values of each setting.

    >>> all_described([{"name": "online", "lr": lr, "batch": 10} for lr in (0.1, 0.01, 0.003)])
    ['online: lr 0.1 or 0.01 or 0.003, batch 10']
    """
    lines = list(dict.fromkeys(map(described, mappings)))
    if len(lines) <= 2:
        return lines
    together: dict[str, dict[str, None]] = {}
    for mapping in mappings:
        for name, found in mapping.items():
            if found is not None:
                together.setdefault(name, {})[value(found)] = None
    joined = {name: " or ".join(found) for name, found in together.items() if name not in SILENT}
    return [f"{', '.join(together.get('name', ()))}: {', '.join(f'{name} {found}' for name, found in joined.items())}"]


def value(given: Any) -> str:
    """Any JSON value in one line; what cannot be read at a glance is shortened."""
    if given is None:
        return UNDEFINED
    if isinstance(given, bool):
        return "yes" if given else "no"
    if isinstance(given, float):
        return f"{given:.4g}".replace("-", MINUS)
    if isinstance(given, Mapping):
        return ", ".join(f"{k}: {value(v)}" for k, v in given.items())
    if isinstance(given, list | tuple):
        if len(given) > 12:
            return f"{', '.join(map(value, given[:5]))}, …, {value(given[-1])} ({len(given)} values)"
        return ", ".join(map(value, given)) or UNDEFINED
    text = " ".join(str(given).split())
    return text if len(text) <= 80 else f"{text[:79]}…"
