"""Table 1 and Figures 1 and 6 of paper 000: all five streams together, and how they are drawn."""

from __future__ import annotations

import pytest

from holdfast import papers
from holdfast.papers.ctrl import figures, overall, rows
from holdfast.papers.ctrl.figures import Axis
from holdfast.papers.ctrl.overall import ALL, RANK, SIGN, STREAMS

ACC = [0.5, 0.6, 0.7, 0.8, 0.4]  # of the five streams


@pytest.fixture
def runs(hand_made):
    """Of a row on every stream, with two seeds: ⟨A⟩ as given and 0.1 more, T(S) as given and 0.02 more."""

    def of(row, accuracies=ACC, gained=(0.04, 0.06, 0.0, -0.04, -0.08), seeds=(0, 1)):
        found = {}
        for stream, acc, gain in zip(STREAMS, accuracies, gained, strict=True):
            whole = [
                hand_made([[0.9, 0], [0.9, 0.3 + gain + 0.02 * s]], seed=s, acc=acc + 0.1 * s, forgetting_ctrl=-0.1)
                for s in seeds
            ]
            alone = [hand_made([[0.3]], seed=s) for s in seeds]
            found |= {(row, stream, False): whole, (row, f"{stream}, {rows.ALONE}", False): alone}
        return found

    return of


def test_means_are_over_streams_seed_by_seed(runs):
    found = runs("ER")
    read = lambda metric, column=ALL: overall.measured(found, "ER", column, metric, False)  # noqa: E731
    assert read("acc") == pytest.approx([0.6, 0.7]) and read("forgetting_ctrl") == pytest.approx([-0.1, -0.1])
    assert read(rows.MEM) == [1.0, 1.0] and read(rows.FLOPS) == [3.0, 3.0]
    assert read(rows.TRANSFER, "S+") == pytest.approx([0.06, 0.08])
    del found["ER", "S_pl", False]
    assert read("acc") is None and read("acc", "S+") == pytest.approx([0.6, 0.7])
    assert overall.measured(found, "ER", ALL, "acc", True) is None


def test_signs_are_of_the_mean_to_one_decimal(runs):
    """0.05 and 0.07 in the mean are 0.1, 0.01 is 0.0; −0.03 is −0.0, −0.07 is −0.1."""
    found = runs("ER", gained=(0.04, 0.06, 0.0, -0.04, -0.08))
    signs = [overall.measured(found, "ER", stream, SIGN, False) for stream in STREAMS]
    assert signs[1:] == [[1.0], [0.0], [0.0], [-1.0]]
    assert overall.measured(found, "PNN", "S-", SIGN, False) is None


def test_ranks_are_per_seed_among_all_rows_of_the_resnet(runs):
    compared = ["Independent", "Finetune", "New-head freeze", "New-leg freeze", "Online EWC", "ER", "PNN", "MNTDP-S"]
    compared.append("MNTDP-D")
    found = {}
    for i, row in enumerate(compared):
        found |= runs(row, accuracies=[0.1 * i] * 5)
    found |= runs("MNTDP-D *", accuracies=[0.99] * 5)
    read = lambda row: overall.measured(found, row, ALL, RANK, False)  # noqa: E731
    assert read("MNTDP-D") == [1.0, 1.0] and read("Independent") == [9.0, 9.0] and read("MNTDP-D *") is None
    found |= runs("PNN", accuracies=[0.8] * 5)  # as good as the best
    assert read("PNN") == read("MNTDP-D") == [1.0, 1.0] and read("MNTDP-S") == [3.0, 3.0]
    del found["Finetune", "S_in", False]
    assert read("MNTDP-D") is None


def test_published_signs_and_ranks_follow_from_the_published_table():
    cells = {(c["row"], c["column"], c["metric"]): c["published"] for c in papers.find("ctrl/table1").published}
    ranks = {row: value for (row, _, metric), value in cells.items() if metric == RANK}
    assert ranks == {
        "MNTDP-D": 1, "MNTDP-S": 2, "Independent": 3, "PNN": 4, "New-head freeze": 5, "ER": 6, "Online EWC": 7,
        "New-leg freeze": 8, "Finetune": 9,
    }  # fmt: skip
    signs = lambda row: [cells[row, stream, SIGN] for stream in STREAMS]  # noqa: E731
    assert signs("MNTDP-D") == [1, 0, 0, 1, 0] and signs("PNN") == [1, -1, 1, 1, -1]
    assert signs("HAT (wide) *") == [1, -1, 1, 1, -1]


def test_figure6_shows_means_of_the_published_tables():
    """⟨A⟩ of MNTDP-D is (.67 + .61 + .60 + .68 + .62) / 5, and so on."""
    cells = {(c["row"], c["column"], c["metric"]): c["published"] for c in overall.averaged()}
    read = lambda row: [cells[row, axis.column, axis.metric] for axis in overall.AXES]  # noqa: E731
    assert read("MNTDP-D") == [0.636, 0.0, 0.36, 0.01, 0.02, 0.33, -0.01, 11.6, 1512.4]
    assert read("EWC") == [0.426, -0.08, 0.35, -0.29, 0.27, 0.31, -0.43, 30.54, 315.3]
    assert read("Independent")[:2] == [0.58, 0.0] and read("Independent")[-1] == 308.4
    printed = {cell["row"] for cell in papers.find("ctrl/table13").published if cell["published"] is not None}
    assert {row for row, _, _ in cells} == printed and len(cells) == 9 * len(printed)


def test_all_streams_together_have_the_cells_of_the_tables():
    """So that --from takes them over."""
    table = {entry.cell(0).name for entry in papers.find("ctrl/table13").entries("smoke")}
    for item in ("table1", "figure6"):
        made = papers.find(f"ctrl/{item}").entries("smoke")
        assert {entry.column.partition(",")[0] for entry in made} == set(STREAMS)
        assert {entry.cell(0).name for entry in made if entry.column.startswith("S-")} <= table


AXES = (Axis("A", ALL, "acc"), Axis("Mem.", ALL, rows.MEM))


def read(values):
    """Row → numbers of the two axes, without intervals."""
    names = {"acc": 0, rows.MEM: 1}
    return lambda row, column, metric: (values.get(row, (None, None))[names[metric]], None, None)


def test_a_radar_is_normalised_among_the_rows_that_have_all_measures():
    """Costs by their logarithm: 10 lies half-way between 1 and 100."""
    values = {"a": (0.2, 1.0), "b": (0.4, 10.0), "c": (0.6, 100.0), "d": (0.9, None)}
    drawn = figures.polygons(read(values), ["a", "b", "c", "d", "e"], AXES, "said")
    assert {s.name: s.mean for s in drawn} == {"a": [0.0, 1.0], "b": [0.5, 0.5], "c": [1.0, 0.0]}
    assert [s.told for s in drawn][1] == ["0.40", "10.00"] and drawn[0].scenario == "said"
    alike = figures.polygons(read({"a": (0.2, 5.0), "b": (0.2, 5.0)}), ["a", "b"], AXES, "said")
    assert [s.mean for s in alike] == [[1.0, 1.0]] * 2
    assert figures.polygons(read({}), ["a"], AXES, "said") == []


def test_radars_are_apart_for_each_network_and_show_what_is_published_as_an_outline(runs):
    found = {**runs("ER"), **runs("PNN", [0.1] * 5), **runs("MNTDP-D *")}
    cells = [
        {"row": row, "column": ALL, "metric": metric, "published": value}
        for row, values in {"ER": (0.4, 13.0), "MNTDP-D": (0.6, 11.0), "HAT *": (0.5, 26.0)}.items()
        for metric, value in zip(("acc", rows.MEM), values, strict=True)
    ]
    names = ["ER", "PNN", "MNTDP-D", "MNTDP-D *", "HAT *"]
    made = {figure.title: figure for figure in figures.radars(found, cells, names, AXES, overall.measured)}
    shown = {title: [(s.name, s.outline) for s in figure.series] for title, figure in made.items()}
    assert shown == {
        "ResNet, measured": [("ER", False), ("PNN", False)],
        "ResNet, published": [("ER", False), ("MNTDP-D", False)],
        "AlexNet, measured": [("MNTDP-D *", False)],
        "AlexNet, published": [("HAT *", False)],
        "ER": [("ER", True), ("ER", False)],
        "PNN": [("PNN", False)],
        "MNTDP-D *": [("MNTDP-D *", False)],
    }
    assert made["ER"].series[0].scenario == figures.PUBLISHED and made["ER"].small
    assert made["ResNet, published"].series[0].mean == [0.0, 0.0]  # the worst on both
    published = [figure.title for figure in figures.radars({}, cells, names, AXES, overall.measured)]
    assert published == ["ResNet, published", "AlexNet, published"]


def test_bars_are_of_what_was_measured_with_what_is_published_in_outline(runs):
    found = runs("PNN")
    cells = [
        {"row": row, "column": column, "metric": metric, "published": value}
        for row, column, metric, value in (
            ("ER", "S-", "acc", 0.44), ("ER", "S-", "lca", 0.1), ("PNN", "S-", "acc", 0.6),
        )
    ]  # fmt: skip
    places = [("S-", "acc"), ("S-", "lca"), ("S-", rows.TRANSFER), ("S_long", "acc")]
    accuracy, gain = figures.bars(found, cells, places, rows.measured)  # nobody measured LCA, or S_long
    assert accuracy.kind == "bars" and accuracy.title.startswith("S-: ⟨A⟩") and gain.quantity == "T(S)"
    assert accuracy.x[:2] == ["ER", "PNN"]
    ours, theirs = accuracy.series
    assert (ours.outline, theirs.outline, theirs.scenario) == (False, True, figures.PUBLISHED)
    assert ours.mean[:2] == [None, pytest.approx(0.55)] and theirs.mean[:2] == [0.44, 0.6]
    assert theirs.low[:2] == [None, None] and ours.low[1] < 0.55 < ours.high[1]
    assert [s.outline for s in gain.series] == [False]  # none is published
    assert figures.bars({}, cells, places, rows.measured) == []
