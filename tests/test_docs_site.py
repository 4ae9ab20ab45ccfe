"""The site builds without a warning, asks nobody else for anything, and has what the code says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.commands.list import KINDS, shelf_of

pytest.importorskip("material", reason="needs the extra `docs`")

ROOT = Path(__file__).parents[1]
FETCHED = re.compile(r'<(?:link|script|img|iframe|source|object)[^>]*?\b(?:href|src|data)="?([^"\s>]+)')

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, in a copy of the repository in which numbers have been kept."""
    root = tmp_path_factory.mktemp("docs")
    for name in ("docs", "examples"):
        shutil.copytree(ROOT / name, root / name)
    for name in ("mkdocs.yml", "CONTRIBUTING.md", "CHANGELOG.md", "README.md"):
        shutil.copy(ROOT / name, root)
    cell = {
        "row": "GEM", "column": "1 epoch", "metric": "acc", "setting": "", "scenario": "domain", "published": 0.86,
        "tolerance": 0.02, "judged": True, "measured": 0.849, "low": 0.78, "high": 0.918, "emulated": None,
        "within": True, "verdict": "", "run": 0,
    }  # fmt: skip
    kept = root / "docs" / "papers" / "gem" / "table3.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps({"schema": 1, "id": "gem/table3", "title": "", "runs": [{}], "cells": [cell]}))
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet"],
        cwd=root, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return root / "build" / "site"


def test_every_thing_has_a_page_that_is_in_the_index(site):
    for kind in KINDS:
        for name in shelf_of(kind).names() if kind != "data" else ():
            assert f'href="{name}.html"' in (site / kind / "index.html").read_text()
            assert (site / kind / f"{name}.html").is_file()


def test_a_page_has_the_docstring_the_settings_the_written_part_and_the_measured_numbers(site):
    text = re.sub(r"<[^>]+>", "", (site / "methods" / "gem.html").read_text())
    assert "g̃ = argmin_z ½‖g − z‖²" in text
    assert "stored examples per task" in text and "a whole number &gt;= 1" in text
    assert "The signs of eq. 8 are slipped in the paper" in text
    assert "0.849 ± 0.069" in text
    assert "Departure: with" not in (site / "methods" / "hat.html").read_text()  # it is in the section of departures


def test_the_reference_has_all_public_names(site):
    import holdfast as hf

    text = (site / "reference.html").read_text()
    assert [name for name in hf.__all__ if f"hf.{name}" not in text] == []


def test_nothing_is_fetched_from_elsewhere(site):
    for page in site.rglob("*.html"):
        assert [link for link in FETCHED.findall(page.read_text()) if re.match(r"(\w+:)?//", link)] == [], page
    for sheet in site.rglob("*.css"):
        assert re.findall(r"url\(\s*['\"]?(?:https?:)?//", sheet.read_text()) == []


def test_links_that_leave_docs_lead_to_the_same_file_in_the_site(site):
    text = (site / "sweeps.html").read_text()
    assert 'href="examples/strengths.toml"' in text and (site / "examples" / "strengths.toml").is_file()


@pytest.mark.browser
def test_the_search_works_without_a_server(site, tmp_path):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no chromium here")
    done = subprocess.run(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr", "--virtual-time-budget=15000",
         "--dump-dom", f"{(site / 'index.html').as_uri()}?q=elastic"],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    assert re.search(r"\d+ matching documents", done.stdout)
    assert "ewc.html" in done.stdout
