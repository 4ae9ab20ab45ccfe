"""The numbers of papers 003 and 004 as they are printed, and which of them are judged."""

from __future__ import annotations

from collections import Counter

import pytest

from holdfast.papers.base import published

SLTS = (*(f"D5-5{c}" for c in "abcdefgh"), *(f"D9-1{c}" for c in "abc"), "DP10-10")
FOUR_MODELS = ("EWC", "fc", "D-fc", "conv", "D-conv", "LWTA")
THREE_MODELS = ("FC", "D-FC", "CONV", "D-CONV", "LWTA", "EWC")
DATA_SETS = (
    "CIFAR10", "Devanagari", "EMNIST", "FashionMNIST", "Fruits 360", "MADBase", "MNIST", "NotMNIST", "SVHN",
)  # fmt: skip


def numbers(paper: str, item: str) -> dict[tuple[str, str, str], float | None]:
    _, cells = published(paper, item)
    found = {(c["row"], c["column"], c["metric"]): c["published"] for c in cells}
    assert len(found) == len(cells)
    return found


def judged(paper: str, item: str) -> dict[tuple[str, str], float]:
    """Places that are judged, with their tolerance."""
    _, cells = published(paper, item)
    return {(c["row"], c["column"]): c["tolerance"] for c in cells if c.get("judged")}


@pytest.mark.parametrize("item", ["table3", "table4"])
def test_paper_004_has_six_models_on_twelve_tasks(item):
    found = numbers("still", item)
    assert [place[:2] for place in found] == [(model, slt) for model in FOUR_MODELS for slt in SLTS]
    assert all(0 < value <= 1 for value in found.values())


def test_paper_004_is_transcribed():
    prescient = {place[:2]: value for place, value in numbers("still", "table3").items()}
    realistic = {place[:2]: value for place, value in numbers("still", "table4").items()}
    row = {name: [found[name, slt] for slt in SLTS] for name, found in (("fc", prescient), ("LWTA", realistic))}
    assert row["fc"] == [0.69, 0.63, 0.58, 0.65, 0.61, 0.58, 0.61, 0.69, 0.87, 0.87, 0.86, 0.97]
    assert row["LWTA"] == [0.47, 0.50, 0.50, 0.50, 0.49, 0.49, 0.51, 0.49, 0.48, 0.29, 0.66, 0.97]
    assert (prescient["EWC", "D5-5g"], realistic["EWC", "D9-1c"], realistic["D-conv", "D9-1b"]) == (0.89, 0.97, 0.22)


def test_paper_004_judges_fc_and_lwta_under_the_authors_procedure():
    five = SLTS[:8]
    assert judged("still", "table3") == {(model, slt): 0.05 for model in ("fc", "LWTA") for slt in five}
    assert judged("still", "table4") == {(model, slt): 0.02 for model in ("fc", "LWTA") for slt in five}
    for item in ("table3", "table4"):
        _, cells = published("still", item)
        assert all(cell["judge"] == "emulated" for cell in cells if "tolerance" in cell)


def test_what_was_printed_from_missing_runs_stands_beside_the_complete_archive_and_is_not_judged():
    """Paper 004's Table 4, D9-1: the authors' second archive has the runs that the first one lacks."""
    _, cells = published("still", "table4")
    found = {(c["row"], c["column"]): (c["published"], c["archive"]) for c in cells if "archive" in c}
    assert found == {
        ("fc", "D9-1a"): (0.15, 0.48), ("fc", "D9-1b"): (0.10, 0.66), ("fc", "D9-1c"): (0.23, 0.56),
        ("LWTA", "D9-1a"): (0.48, 0.55), ("LWTA", "D9-1b"): (0.29, 0.56), ("LWTA", "D9-1c"): (0.66, 0.68),
    }  # fmt: skip
    assert not any(c.get("judged") or "tolerance" in c for c in cells if "archive" in c)


def test_paper_003_has_six_models_on_nine_data_sets():
    places = [(f"{d}, {slt}", m) for d in DATA_SETS for slt in ("D5-5", "D9-1", "DP10-10") for m in THREE_MODELS]
    for item, metrics in (("table3", ("best", "last")), ("table5", ("baseline", "Ω_all"))):
        assert list(numbers("apps", item)) == [(*place, metric) for place in places for metric in metrics]


def test_paper_003_is_transcribed():
    found = numbers("apps", "table3")
    assert [found["MNIST, D5-5", m, "best"] for m in THREE_MODELS] == [0.49, 0.49, 0.48, 0.48, 0.10, 0.50]
    assert [found["MNIST, D9-1", m, "last"] for m in THREE_MODELS] == [0.10, 0.10, 0.10, 0.10, 0.10, 0.71]
    assert [found["FashionMNIST, D9-1", m, "best"] for m in THREE_MODELS] == [0.78, 0.77, 0.81, 0.81, 0.78, 0.85]
    assert found["CIFAR10, D5-5", "D-CONV", "last"] == 0.18 and found["SVHN, DP10-10", "EWC", "last"] == 0.29
    assert found["Fruits 360, DP10-10", "LWTA", "last"] == 0.12
    assert numbers("apps", "table5")["SVHN, DP10-10", "D-CONV", "Ω_all"] == 4.25


def test_the_cell_that_cannot_be_read_is_left_out_and_says_so():
    _, cells = published("apps", "table3")
    unread = [cell for cell in cells if cell["published"] is None]
    assert [(c["row"], c["column"]) for c in unread] == [("Devanagari, D9-1", "D-CONV")] * 2
    assert all("not legible" in cell["note"] for cell in unread)


def test_omega_all_is_best_over_the_baseline_within_rounding():
    best, other = numbers("apps", "table3"), numbers("apps", "table5")
    checked = 0
    for (row, model, metric), value in best.items():
        if metric == "best" and value is not None:
            baseline, omega = other[row, model, "baseline"], other[row, model, "Ω_all"]
            low, high = (value - 0.005) / (baseline + 0.005), (value + 0.005) / (baseline - 0.005)
            assert low - 0.006 < omega < high + 0.006, (row, model)
            checked += 1
    assert checked == 161


def test_paper_003_judges_the_rows_that_can_be_run():
    _, cells = published("apps", "table3")
    places = judged("apps", "table3")
    assert places == {
        **{(f"{d}, {slt}", "FC"): 0.03 for d in ("FashionMNIST", "MNIST") for slt in ("D5-5", "D9-1")},
        ("MNIST, D9-1", "CONV"): 0.02,
        ("MNIST, DP10-10", "FC"): 0.02,
    }
    unpermuted = [c for c in cells if c.get("judge") == "emulated"]
    assert {(c["row"], c["column"]) for c in unpermuted} == {("MNIST, DP10-10", "FC")}  # their DP10-10 is not permuted
    assert judged("apps", "table4") == {
        (f"wtIMM {merge}", f"MNIST, {slt}"): 0.05 for merge in ("mode", "mean") for slt in ("D5-5", "D9-1")
    }


def test_imm_is_judged_as_the_authors_trained_it():
    _, cells = published("apps", "table4")
    assert {c["column"] for c in cells if c.get("judge") == "emulated"} == {"MNIST, D5-5", "MNIST, D9-1"}


def test_imm_is_transcribed():
    found = numbers("apps", "table4")
    assert len(found) == 24
    assert [found["wtIMM mode", f"MNIST, {slt}", "best"] for slt in ("D5-5", "D9-1")] == [0.84, 0.87]
    assert [found["wtIMM mean", f"SVHN, {slt}", "best"] for slt in ("D5-5", "D9-1")] == [0.50, 0.59]


def test_the_properties_of_nine_data_sets():
    found = numbers("apps", "table1")
    assert Counter(row for row, _, _ in found) == dict.fromkeys(DATA_SETS, 7)
    assert found["MNIST", "train", "elements"] == 55000 and found["MNIST", "test", "imbalance (%)"] == 2.4
    assert found["Fruits 360", "image", "width"] == 100 and found["NotMNIST", "train", "elements"] == 529114
