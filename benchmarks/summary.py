"""Medians of repeats, ratios against the targets, and the table on the terminal."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

Runs = list[dict[str, Any]]  # one measurement per repeat

TO_BARE = {"W1": 0.85, "W2": 1.0, "W3": 0.6, "W4": 1.05, "W5": 0.95}  # at most this times the bare loop's time
TO_AVALANCHE = {"W1": 2.8, "W2": 1.4, "W3": 6.0, "W4": 2.5, "W5": 1.15}  # Avalanche's at least this times Holdfast's
SCORING = 1.2  # all test sets after every task, Holdfast ÷ bare loop
TWO_JOBS = 1.7  # compare in one process ÷ in two
PEAK_W5_MB = 1200
STRAIGHT = 0.98  # R² of GEM's step against past tasks
GEM_SLOPE = 1.15  # Holdfast ÷ floor
EWC_GROWTH = 0.1  # of the step, over 19 past tasks
SAME_ACCURACY = 0.03  # twice the standard error of a difference over five seeds (one run spreads by up to 0.03)
SUFFIX = {"wall": "", "cpu": "_cpu"}  # of a measurement, per clock


def median(runs: Runs, *keys: str) -> float:
    """The median over repeats of the sum of these measurements."""
    return statistics.median(sum(run[key] for key in keys) for run in runs)


def total(runs: Runs, clock: str) -> float:
    """Training and scoring."""
    return median(runs, "train" + SUFFIX[clock], "score" + SUFFIX[clock])


def mean_accuracy(runs: Runs) -> float:
    return statistics.mean(run["acc"] for run in runs)


def per_step(runs: Runs, clock: str) -> np.ndarray:
    """(tasks,) the median over repeats of the seconds per step with 0, 1, ... past tasks."""
    return np.median([run["per_step" + SUFFIX[clock]] for run in runs], axis=0)


def line(seconds: np.ndarray) -> dict[str, float]:
    """Least squares through the points with at least one past task: the first task has no extra work at all."""
    y, x = seconds[1:], np.arange(1, len(seconds))
    slope, start = np.polyfit(x, y, 1)
    rest = ((y - start - slope * x) ** 2).sum() / max(((y - y.mean()) ** 2).sum(), 1e-30)
    return {"slope": float(slope), "start": float(start), "r2": 1 - float(rest)}


def lines(results: dict[str, Any], method: str) -> dict[str, dict[str, float]]:
    clock = results["conditions"]["clock"]
    return {c: line(per_step(runs, clock)) for c, runs in results["growth"][method].items()}


def judge(results: dict[str, Any]) -> list[dict[str, Any]]:
    """One row per target that was measured: its name, the number, the bound, and whether it is met."""
    rows = [row for w, found in results.get("workloads", {}).items() for row in _judge_workload(w, found, results)]
    if "scoring" in results:
        key = "score" + SUFFIX[results["conditions"]["clock"]]
        bare, ours = (median(results["scoring"][c], key) for c in ("bare", "holdfast"))
        rows.append(_at_most("scoring after every task, Holdfast ÷ bare loop", ours / bare, SCORING))
    if "compare" in results:
        one, two = (median(results["compare"][jobs], "seconds") for jobs in ("1", "2"))
        rows.append(_at_least("compare, one process ÷ two", one / two, TWO_JOBS))
    if "growth" in results:
        gem, ewc = lines(results, "gem"), lines(results, "ewc")["holdfast"]
        growth = 19 * ewc["slope"] / (ewc["start"] + ewc["slope"])
        rows += [
            _at_least("GEM's step against past tasks, R² of a line", gem["holdfast"]["r2"], STRAIGHT),
            _at_most("GEM's slope, Holdfast ÷ floor", gem["holdfast"]["slope"] / gem["bare"]["slope"], GEM_SLOPE),
            _at_most("EWC's step, its growth over 19 past tasks", growth, EWC_GROWTH),
        ]
    return rows


def _judge_workload(w: str, found: dict[str, Runs], results: dict[str, Any]) -> list[dict[str, Any]]:
    clock, rows = results["conditions"]["clock"], []
    ours = total(found["holdfast"], clock)
    if w in TO_BARE:
        name = f"{w} Holdfast ÷ {'floor' if w == 'W2' else 'bare loop'}"
        rows.append(_at_most(name, ours / total(found["bare"], clock), TO_BARE[w]))
    if "avalanche" in found:
        rows.append(_at_least(f"{w} Avalanche ÷ Holdfast", total(found["avalanche"], clock) / ours, TO_AVALANCHE[w]))
    for other in [c for c in found if c != "holdfast"]:
        gap = abs(mean_accuracy(found["holdfast"]) - mean_accuracy(found[other]))
        rows.append(_at_most(f"{w} |accuracy of Holdfast − of {other}|", gap, SAME_ACCURACY))
    if w == "W5":
        rows.append(_at_most("W5 peak memory of Holdfast, MB", median(found["holdfast"], "peak_mb"), PEAK_W5_MB))
    return rows


def _at_most(name: str, measured: float, bound: float) -> dict[str, Any]:
    return {"name": name, "measured": measured, "bound": f"≤ {bound:g}", "met": measured <= bound}


def _at_least(name: str, measured: float, bound: float) -> dict[str, Any]:
    return {"name": name, "measured": measured, "bound": f"≥ {bound:g}", "met": measured >= bound}


def table(results: dict[str, Any]) -> str:
    """Everything measured, in a page of text."""
    clock, text = results["conditions"]["clock"], []
    for w, found in results.get("workloads", {}).items():
        text.append(f"{w:<9} {clock:>4} s:   train    score    total  ÷ bare  accuracy        peak MB")
        text += [f"  {c:<16}{_row(runs, found['bare'], clock)}" for c, runs in found.items()]
    for c, runs in results.get("scoring", {}).items():
        text.append(f"scoring after every task of W1  {c:<10} {median(runs, 'score' + SUFFIX[clock]):6.2f} s")
    for jobs, runs in results.get("compare", {}).items():
        text.append(f"compare, 5 seeds × 4 methods, jobs={jobs}  {median(runs, 'seconds'):6.1f} s on the wall")
    for method in results.get("growth", {}):
        for c, fit in lines(results, method).items():
            first, slope = 1e3 * (fit["start"] + fit["slope"]), 1e3 * fit["slope"]
            text.append(f"{method} step  {c:<10} {first:7.2f} ms, {slope:+7.3f} ms per past task, R² {fit['r2']:.3f}")
    verdicts = {True: "met", False: "NOT MET"}
    return "\n".join(
        [*text, ""]
        + [f"{verdicts[t['met']]:>7}  {t['measured']:8.2f} {t['bound']:<7} {t['name']}" for t in results["targets"]]
    )


def _row(runs: Runs, bare: Runs, clock: str) -> str:
    train, score = (median(runs, part + SUFFIX[clock]) for part in ("train", "score"))
    spread = f"± {statistics.stdev(run['acc'] for run in runs):.3f}" if len(runs) > 1 else ""
    return (
        f" {train:8.2f} {score:8.2f} {total(runs, clock):8.2f} {total(runs, clock) / total(bare, clock):7.2f}"
        f"  {mean_accuracy(runs):.3f} {spread:<7} {median(runs, 'peak_mb'):8.0f}"
    )
