"""What an experiment asked for: which of its cells belong together, and what they are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.errors import BadInput
from holdfast.metrics.groups import bracketed, canonical, telling, without_fingerprints
from holdfast.sweeps.cell import hash_of


def together(experiment: Mapping[str, Any]) -> list[tuple[str, dict[int, str]]]:
    """Of the content of experiment.json, for each of its settings: what they are called, and their cells by seed."""
    try:
        names = {name.rpartition("-")[2]: name for name in experiment.get("cells", [])}
        runs, seeds = experiment.get("runs", []), experiment.get("seeds", [])
        cells = [{seed: names.get(hash_of(run, seed)[:8]) for seed in seeds} for run in runs]
        return [(title, {s: n for s, n in mine.items() if n}) for title, mine in zip(titles(runs), cells, strict=True)]
    except (KeyError, TypeError, AttributeError) as error:
        raise BadInput("experiment.json does not say what was asked for; it is not as Holdfast wrote it") from error


def titles(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """'ewc/task[strength=10]' for each of these settings: the method, and what tells it from its other runs."""
    flat = without_fingerprints([_flat(run) for run in runs])
    texts = [{name: canonical(value) for name, value in found.items()} for found in flat]
    names = [run["method"]["name"] for run in runs]
    apart = {
        method: telling([text for text, name in zip(texts, names, strict=True) if name == method], lambda name: True)
        for method in dict.fromkeys(names)
    }
    bases = [_base(run, [other for other in runs if other["method"]["name"] == run["method"]["name"]]) for run in runs]
    return [base + bracketed(found, apart[name]) for base, name, found in zip(bases, names, flat, strict=True)]


def _base(run: Mapping[str, Any], alike: Sequence[Mapping[str, Any]]) -> str:
    """The method, and its scenario where it is run in several."""
    several = len({other["stream"].get("scenario") for other in alike}) > 1
    return f"{run['method']['name']}/{run['stream'].get('scenario')}" if several else str(run["method"]["name"])


def _flat(run: Mapping[str, Any]) -> dict[str, Any]:
    found = {f"{p}.{n}": v for p in ("net", "stream", "protocol") for n, v in run[p].items()}
    found["stream.fingerprint"] = run["data"]
    return found | {name: value for name, value in run["method"].items() if name not in ("name", "source")}
