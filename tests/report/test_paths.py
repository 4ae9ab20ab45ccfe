"""Paths through a library: what the picture shows, as a part of the page and as a file."""

from __future__ import annotations

import dataclasses
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from holdfast import report
from holdfast.metrics import library
from holdfast.report import paths, strands

SVG = "{http://www.w3.org/2000/svg}"
# Seven layers; the last task is the first again, the fifth begins as the first does, the third as the second.
SIX = [[0] * 7, [1] * 7, [1, 1] + [2] * 5, [3] * 7, [0] + [4] * 6, [0] * 6 + [5]]
NAMES = ("CIFAR-10", "MNIST", "DTD", "F-MNIST", "SVHN", "CIFAR-10")
SIZES = [2, 10, 10, 10, 10, 7, 1]


def graph(found=SIX, names=NAMES):
    return strands.Graph(found, names, [size / 50 for size in SIZES])


@pytest.fixture
def modular(fake):
    """Records of a method with a library."""

    def make(found=SIX, names=NAMES, **fields):
        made = fake("mntdp", "task", tasks=len(found), **fields)
        tasks = tuple({**task, "name": name} for task, name in zip(made.tasks, names, strict=True))
        rows = [{"task": t, "path": path, "sizes": SIZES} for t, path in enumerate(found)]
        return dataclasses.replace(made, tasks=tasks, study={"paths": rows})

    return make


def parsed(text):
    root = ElementTree.fromstring(text)
    groups = root.findall(f"{SVG}g")
    return root, *([g for g in groups if g.get("class") == kind] for kind in ("task", "module"))


def told(group):
    return group.find(f"{SVG}title").text


def test_a_picture_has_a_path_per_task_and_a_block_per_module_that_says_who_uses_it():
    _, tasks, modules = parsed(strands.draw(graph()))
    assert len(tasks) == 6 and len(modules) == 7 + 7 + 5 + 7 + 6 + 1
    used = [[int(task) for task in module.get("data-tasks").split()] for module in modules]
    assert used.count([0, 4, 5]) == 1 and used.count([0, 5]) == 5 and used.count([1, 2]) == 2
    assert told(modules[0]) == (
        "Layer 1, made by task 1, CIFAR-10, 4% of a network’s weights; "
        "used by task 5, SVHN; task 6, CIFAR-10, too."
    )  # fmt: skip
    assert told(tasks[-1]) == "Task 6, CIFAR-10: layers 1 to 6 of task 1, CIFAR-10; layer 7 new."
    assert told(tasks[1]) == "Task 2, MNIST: layers 1 to 7 new."


def test_a_block_stands_in_its_makers_row_as_high_as_there_are_paths_through_it():
    drawn = graph()
    _, tasks, modules = parsed(strands.draw(drawn))
    inputs = [float(task.find(f"{SVG}circle").get("cy")) for task in tasks]
    for group, module in zip(modules, drawn.modules, strict=True):
        block = group.find(f"{SVG}rect")
        top, height = float(block.get("y")), float(block.get("height"))
        assert top < inputs[module.maker] < top + height
        assert height == drawn.rows.pitch * len(module.users) + 2 * drawn.rows.rim
        number = group.find(f"{SVG}text")
        assert (number is not None and number.text == str(len(module.users))) == module.reused


def test_no_two_paths_share_a_lane_and_rows_do_not_overlap():
    found = [[0, 0, 0], *([0, 0, t] for t in range(1, 30)), [30, 30, 30], [30, 30, 31]]
    _, tasks, modules = parsed(strands.draw(strands.Graph(found, [str(t) for t in range(32)])))
    places = [re.findall(r" ([\d.]+) ([\d.]+)H", task.find(f"{SVG}path").get("d"))[:3] for task in tasks]
    assert len({place for mine in places for place in mine}) == 32 * 3
    spans = sorted(
        (float(block.get("y")), float(block.get("y")) + float(block.get("height")))
        for module in modules
        if (block := module.find(f"{SVG}rect")).get("x") == modules[0].find(f"{SVG}rect").get("x")
    )
    assert all(above < below for (_, above), (below, _) in pairwise(spans))


def test_a_hundred_tasks_have_few_words_and_fit_a_screen_or_two():
    found = [[0] * 7, *([0] * (t % 8) + [t] * (7 - t % 8) for t in range(1, 100))]
    root, tasks, _ = parsed(strands.draw(graph(found, [f"a long name of task {t}" for t in range(100)])))
    labels = [text.text for task in tasks for text in task.findall(f"{SVG}text")]
    assert labels == ["1", "20", "40", "60", "80", "100"]
    assert float(root.get("height")) < 1500 and len(list(root.iter(f"{SVG}text"))) < 30
    assert not any(group.get("tabindex") for group in root.iter(f"{SVG}g"))  # chosen in the list, not one by one


def test_names_cannot_inject_and_any_name_is_xml():
    names = ["</title><script>alert(1)</script>", "a\x00b\x1b&", *NAMES[2:]]
    text = strands.draw(graph(names=names))
    root, tasks, _ = parsed(text)
    assert "<script" not in text and told(tasks[0]).startswith("Task 1, </title><script>")
    assert root.findall(f".//{SVG}script") == []


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (SIX, "33 modules for 6 tasks of 7 layers (42 without reuse); the last task reuses 6 modules of "
              "task 1, CIFAR-10, and makes 1."),
        (SIX[:4], "26 modules for 4 tasks of 7 layers (28 without reuse); the last task reuses none."),
        ([[0, 0], [0, 1], [0, 1]], "3 modules for 3 tasks of 2 layers (6 without reuse); the last task reuses 1 module "
                                   "of task 1, CIFAR-10 and 1 module of task 2, MNIST, and makes none."),
    ],
)  # fmt: skip
def test_a_sentence_says_how_many_modules_were_made_and_what_the_last_task_took(found, said):
    assert paths.sentence("mntdp", graph(found)) == f"mntdp: {said}"


def test_the_report_draws_the_first_seed_and_names_the_others(modular):
    page = report.html([modular(), modular([[0] * 7, *([t] * 7 for t in range(1, 6))], seed=1)])
    assert page.count('<svg class="strands"') == 1
    assert "mntdp: 33 modules for 6 tasks" in page
    assert "That is seed 0, which is drawn; 42 with seed 1." in page


def test_there_is_nothing_to_draw_without_a_library_or_with_one_task(fake, modular):
    assert "Paths through the library" not in report.html([fake("gem"), modular([[0] * 7], ["alone"])])


def test_records_that_do_not_say_how_large_modules_are_can_be_drawn(modular):
    record = modular()
    rows = [{name: value for name, value in row.items() if name != "sizes"} for row in record.study["paths"]]
    old = dataclasses.replace(record, study={"paths": rows})
    assert library.shares(old) == [] and "weights; used" not in report.html([old])


@pytest.mark.browser
def test_a_chosen_task_and_a_module_under_the_pointer_stand_out(browser, modular, tmp_path):
    browser.open(report.write([modular()], tmp_path / "report.html"))
    lit = "return [...document.querySelectorAll('.task.lit')].map((task) => task.dataset.tasks)"
    told = "return document.querySelector('output').textContent"
    browser.find("select option[value='5']").click()
    assert browser.run(lit) == ["5"] and browser.run(told).startswith("Task 6, CIFAR-10: layers 1")
    browser.run("document.querySelector('.module').dispatchEvent(new Event('pointerenter'))")
    assert browser.run(lit) == ["0", "4", "5"] and browser.run(told).startswith("Layer 1, made by task 1, C")
    assert browser.complaints() == []
