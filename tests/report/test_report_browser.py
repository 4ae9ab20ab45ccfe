"""Reports in a real browser: what they draw, what they do, and how they look in every size."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import report

pytestmark = pytest.mark.browser

DESK, PHONE, SHEET = (1280, 900), (390, 844), (711, 1000)  # a sheet: A4 less our margins, at 96 dots per inch
EVIL = "<script>alert(1)</script>"
METHODS = ("finetune", "ewc", "gem", "er", "iid")
PAGES = ("several", "crowd", "paper")

COLUMN = """
const [name, table] = [arguments[0], document.querySelector("#summary table")];
const at = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent.startsWith(name));
return [...table.tBodies[0].rows].map((row) => row.cells[at].textContent);
"""
CONTRAST = """
const channel = (value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
const light = (colour) => {
  const [r, g, b] = colour.match(/[\\d.]+/g).map((part) => channel(part / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const back = getComputedStyle(document.body).backgroundColor;
return [...document.querySelectorAll(arguments[0])].map((each) => {
  const [dark, bright] = [light(getComputedStyle(each).color), light(back)].sort((a, b) => a - b);
  return (bright + 0.05) / (dark + 0.05);
});
"""
TOO_WIDE = """
return [...document.querySelectorAll("h1, table, figure, .plot, svg, p, dl")].filter((each) => {
  const box = each.getBoundingClientRect();
  return box.width && box.right > document.documentElement.clientWidth + 1;
}).map((each) => each.outerHTML.slice(0, 80));
"""


@pytest.fixture(scope="module")
def pages(fake, crowd, tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    several = [fake(m, s, seed) for s in ("class", "task") for m in (*METHODS, EVIL) for seed in range(3)]
    named = {"row": "GEM", "column": "1 epoch", "published": 0.86, "measured": 0.35, "low": None, "high": None,
             "tolerance": 0.02, "within": None, "emulated": 0.33, "judged": False,
             "scenario": "class, task label hidden"}  # fmt: skip
    cells = [{**named, "row": row, "metric": metric} for row in ("GEM", "EWC") for metric in ("acc", "bwt", "fwt")]
    points = {"scenario": named["scenario"], "mean": [0.9, 0.8, 0.7], "low": [None] * 3, "high": [None] * 3}
    lines = {"kind": "lines", "title": "First task of MNIST", "axis": "after task", "x": [1, 2, 3],
             "series": [{"name": row, **points} for row in ("GEM", "EWC")]}  # fmt: skip
    paper = report.Reproduction("gem/figure1", "ACC on MNIST", "smoke", cells, ["A note."], figures=[lines])
    made = {"command": "holdfast compare finetune,ewc", "version": "0", "date": "2026-01-01", "machine": "2 cores"}
    return {
        "several": report.write(several, folder / "several.html", experiment={"made": made}),
        "crowd": report.write(crowd(24, 3, 10, every=2), folder / "crowd.html", "Two dozen methods"),
        "paper": report.write([fake("gem"), fake("ewc")], folder / "paper.html", "gem/figure1", reproduction=paper),
        "large": report.write(crowd(20, 5, 100), folder / "large.html"),
    }


@pytest.mark.parametrize("name", PAGES)
def test_every_figure_is_drawn_and_nothing_is_complained_of(browser, pages, name):
    browser.open(pages[name])
    there, drawn = browser.draw_all()
    assert there == drawn > 3 and browser.complaints() == []
    browser.shoot(f"{name}-light")


def test_a_page_of_a_hundred_runs_of_a_hundred_tasks_is_small_and_draws_what_is_seen(browser, pages):
    assert pages["large"].stat().st_size < 15_000_000
    browser.open(pages["large"])
    drawn = "return [...document.querySelectorAll('.plot')].filter((place) => place.data).length"
    before = browser.run(drawn)
    assert before < browser.run("return document.querySelectorAll('.plot').length") / 2
    browser.run("document.querySelector('#cost-against-accuracy').scrollIntoView()")
    browser.wait(f"{drawn} > {before}")
    assert browser.complaints() == []


def test_pointing_at_a_mark_shows_its_numbers(browser, pages):
    browser.open(pages["several"])
    browser.draw_all()
    for title, said in (("Mean accuracy over", "after task"), ("ACC of every seed", "mean 0."), ("Training time", "s")):
        browser.point_at(f"[aria-label^='{title}'] .points .point")
        told = browser.find(".hovertext").text
        assert said in told and "0." in told, title


def test_a_heading_sorts_its_table_by_pointer_and_by_keyboard(browser, pages):
    browser.open(pages["several"])
    before = browser.run(COLUMN, "ACC")
    head = browser.find("#summary thead th:nth-child(2) button")
    head.click()
    assert browser.run(COLUMN, "ACC") == sorted(before, reverse=True)
    head.send_keys("\ue007")  # Enter
    assert browser.run(COLUMN, "ACC") == sorted(before)
    assert browser.find("#summary thead th:nth-child(2)").get_attribute("aria-sort") == "ascending"
    browser.find("#summary thead th:nth-child(4) button").click()
    assert browser.run(COLUMN, "BWT")[-1] == "–"  # what saw all at once has none, whichever way it is sorted
    browser.find("#summary thead th:nth-child(4) button").click()
    assert browser.run(COLUMN, "BWT")[-1] == "–"


@pytest.mark.parametrize("dark", [False, True])
def test_the_theme_follows_the_system_until_it_is_switched_and_is_readable(browser, pages, dark):
    browser.open(pages["several"], dark=dark)
    theme = "return document.documentElement.dataset.theme"
    back = "return getComputedStyle(document.body).backgroundColor"
    for wanted in ("dark", "light") if dark else ("light", "dark"):
        assert browser.run(theme) == wanted
        assert min(browser.run(CONTRAST, "h1, p, th, td, a, .half, .met, dt, figcaption")) > 4.5
        seen = browser.run(back)
        browser.find("#theme").click()
        assert browser.run(back) != seen
    assert browser.complaints() == []


@pytest.mark.parametrize("name", PAGES)
def test_on_a_phone_numbers_come_first_and_nothing_but_tables_scrolls_sideways(browser, pages, name):
    browser.open(pages[name], PHONE)
    browser.draw_all()
    browser.shoot(f"{name}-phone")
    assert browser.run("return document.documentElement.scrollWidth") == PHONE[0]
    assert [each for each in browser.run(TOO_WIDE) if not each.startswith(("<table", "<svg"))] == []
    box = browser.run("return document.querySelector('td.number').getBoundingClientRect()")
    assert 0 < box["left"] < box["right"] <= PHONE[0] and 0 < box["top"] < PHONE[1]


@pytest.mark.parametrize("name", PAGES)
def test_on_paper_all_columns_and_figures_are_whole_and_light(browser, pages, name):
    browser.open(pages[name], SHEET, dark=True)
    browser.shoot(f"{name}-dark")
    browser.print()
    browser.shoot(f"{name}-print")
    assert browser.run(TOO_WIDE) == []
    assert browser.run("return document.documentElement.dataset.theme") == "light"
    assert browser.run(
        "return [...document.querySelectorAll('.plot')].every((place) => place.data || !place.offsetParent)"
    )
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert browser.run("return document.documentElement.dataset.theme") == "dark"


def test_a_name_in_a_legend_hides_its_method_in_every_figure(browser, pages):
    seen = """
    const all = [...document.querySelectorAll(".plot")].filter((place) => place.data).flatMap((place) => place.data);
    return all.filter((trace) => trace.legendgroup === arguments[0] && trace.visible !== false).length;
    """
    matrix = "return getComputedStyle(document.querySelector(`figure[data-of='er/class']`)).display"
    browser.open(pages["several"])
    browser.draw_all()
    before, other = browser.run(seen, "er/class"), browser.run(seen, "gem/class")
    button = browser.find(".legend button[data-of='er/class']")
    button.send_keys(" ")
    assert browser.run(seen, "er/class") == 0 < before and browser.run(seen, "gem/class") == other
    assert browser.run(matrix) == "none" and button.get_attribute("aria-pressed") == "false"
    browser.open(pages["several"])
    browser.find(".legend button[data-of='er/class']").click()  # before most figures are drawn
    browser.draw_all()
    assert browser.run(seen, "er/class") == 0
    browser.find(".legend button[data-of='er/class']").click()
    assert browser.run(seen, "er/class") == before and browser.run(matrix) != "none"
    assert browser.complaints() == []
