"""`holdfast diagnose`: sentences, JSON, a folder with a report, and its faults."""

from __future__ import annotations

import json
from pathlib import Path

FEW = "--examples 40 --jobs 1 --repeats 2 --set protocol.steps=20 --set protocol.batches=3 --set net.hidden=10"


def test_it_ends_in_a_sentence_and_a_number(holdfast):
    done = holdfast(f"diagnose split {FEW} --quiet")
    assert (done.code, done.out, done.err) == (0, "", "")
    done = holdfast(f"diagnose split {FEW}")
    assert done.code == 0 and done.out.startswith("Task B ")
    assert "(permuted pixels: 1). ± is one standard deviation over 2 repeats." in done.out.splitlines()[-1]


def test_nothing_is_written_without_a_folder(holdfast, here):
    assert holdfast(f"diagnose rotated {FEW}").code == 0
    assert list(here.iterdir()) == []


def test_a_folder_keeps_the_runs_the_numbers_and_the_figures(holdfast, here):
    done = holdfast(f"diagnose split {FEW} --out out --json")
    found = json.loads(done.out)
    assert done.code == 0 and found == json.loads((here / "out" / "diagnosis.json").read_text())
    assert found["stream"] == "split" and found["repeats"] == 2 and len(found["rows"]) == 2 * 2 * 3
    page = (here / "out" / "report.html").read_text()
    assert "Does the stream pose the problem?" in page and "How hard it pulls against the prior" in page
    again = holdfast(f"diagnose split {FEW} --out out --json")
    assert "finished before" in again.err and json.loads(again.out) == found
    assert holdfast("report out").code == 0
    assert holdfast(f"diagnose split {FEW} --out out --fresh --quiet").code == 0


def test_a_stream_of_ones_own(holdfast):
    own = Path(__file__).parents[2] / "examples" / "own_stream.py"
    done = holdfast(f"diagnose {own}:Fading --set stream.least=0.5 {FEW} --json --quiet")
    assert done.code == 0 and json.loads(done.out)["tasks"] == ["contrast 1.00", "contrast 0.88"]


def test_every_fault_has_its_line(holdfast):
    done = holdfast("diagnose splt --repeats 0 --net mpl --scenario class,task --fresh")
    assert done.code == 2
    assert "unknown stream 'splt'; did you mean 'split'?" in done.complaints
    assert "--repeats must be a whole number >= 1, not '0'" in done.complaints
    assert "diagnose takes one scenario, not 'class,task'" in done.complaints
    assert "--fresh clears a folder; say which: --out DIR" in done.complaints
    assert len(done.complaints) == 5


def test_a_stream_of_one_task_has_nothing_to_resemble(holdfast):
    done = holdfast("diagnose split --tasks 1 --repeats 1")
    assert done.complaints == ["protocol 'early' needs two tasks, and stream 'split' has 1"] and done.code == 2


def test_a_method_whose_terms_are_not_known_is_refused(holdfast):
    done = holdfast("diagnose split --method er --repeats 1")
    assert done.code == 2 and "try 'vcl'" in done.complaints[0]
