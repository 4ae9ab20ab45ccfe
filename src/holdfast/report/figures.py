"""Every figure of a report as a file for a paper, in the order of the page, and a LaTeX file that holds them all."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
import tempfile
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from holdfast.disk import keeping
from holdfast.errors import unknown
from holdfast.report import ink
from holdfast.report.drawing import draw
from holdfast.report.latex import escape

FORMS = ("pdf", "svg", "png")
INDEX, TABLES = "figures.tex", "tables.tex"
DOTS = 300  # in an inch, of png
MARGIN = 0.03  # inches
LONGEST = 60  # characters of a file's name
BESIDE = ("aside", "half")  # parts of a heading that the page sets apart
VOID = ("br", "wbr", "meta", "img", "input", "hr")
HEADINGS = ("h2", "h3", "figcaption")
SHAPES = ("path", "circle", "rect", "text")


@dataclass(frozen=True)
class Drawn:
    """A figure of a page, with the words above it."""

    section: str
    heading: str  # the scenario and stream, where the section has several
    caption: str
    title: str  # what those hear who do not see it
    spec: dict[str, Any]  # data and layout as plotly is told, or the shapes of a picture of ours


def drawn_in(page: str) -> list[Drawn]:
    """The figures of a report, which carries all that it draws."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader.found


def write(page: str, tables: str, folder: Path, form: str) -> None:
    """A file for each figure of a page and one in LaTeX with their captions; the tables in another.

    The folder is new, or holds what was written here before, which is gone then.
    """
    found = {**files(page, form), TABLES: tables.encode()}
    with keeping(folder):
        folder.absolute().parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.absolute().parent, prefix=f".{folder.name}.") as part:
            new, old = Path(part) / "new", Path(part) / "old"
            new.mkdir()
            for name, content in found.items():
                (new / name).write_bytes(content)
            if folder.exists():
                os.replace(folder, old)
            os.replace(new, folder)


def faults(folder: Path, form: str) -> list[str]:
    """Why no figures can be written there, as far as can be known before they are drawn."""
    found = [] if form in FORMS else [unknown("format of figures", form, FORMS)]
    if importlib.util.find_spec("matplotlib") is None:
        found.append("figures need matplotlib; install it with: pip install 'holdfast[figures]'")
    if folder.exists() and not folder.is_dir():
        found.append(f"{folder} is a file, not a folder; move it away")
    foreign = sorted(path.name for path in folder.iterdir() if not is_ours(path.name)) if folder.is_dir() else []
    if foreign:
        found.append(f"{folder} also holds {', '.join(foreign[:3])}, so it is not written anew; move that away")
    return found


def files(page: str, form: str) -> dict[str, bytes]:
    """The figures by the names of their files, and the file with their captions."""
    import matplotlib

    made, captions = {}, []
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **ink.SETTINGS, "backend": "agg"}):
        for i, each in enumerate(drawn_in(page), 1):
            figure, file, name = draw(each.spec), io.BytesIO(), f"{i:02d}-{_word(each)}.{form}"
            undated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(form)
            figure.savefig(file, format=form, dpi=DOTS, metadata=undated, bbox_inches="tight", pad_inches=MARGIN)
            made[name] = file.getvalue()
            captions.append(_tex(name, each, wide=figure.get_figwidth() > ink.COLUMN))
    return {**made, INDEX: "\n".join([r"% \usepackage{graphicx}", *captions]).encode()}


def is_ours(name: str) -> bool:
    """Whether a file's name is one that we give.

    >>> is_ours("03-cost-against-accuracy-memory.pdf"), is_ours("notes.txt")
    (True, False)
    """
    return name in (INDEX, TABLES) or re.fullmatch(rf"\d\d+-[\w-]*\.({'|'.join(FORMS)})", name) is not None


def _word(drawn: Drawn) -> str:
    """Section and title as a file's name."""
    words = re.sub(r"[^a-z0-9]+", "-", f"{drawn.section} {drawn.title}".lower()).strip("-")
    return words if len(words) <= LONGEST else words[: LONGEST + 1].rpartition("-")[0] or words[:LONGEST]


def _tex(name: str, drawn: Drawn, wide: bool) -> str:
    caption = ". ".join(escape(part) for part in (drawn.section, drawn.heading, drawn.caption or drawn.title) if part)
    kind = "figure*" if wide else "figure"
    return (
        f"\\begin{{{kind}}}\n  \\centering\n  \\includegraphics[width=\\linewidth]{{{name}}}\n"
        f"  \\caption{{{caption}.}}\n\\end{{{kind}}}\n"
    )


class _Reader(HTMLParser):
    """Walks through a page and keeps what each kind of heading said last."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Drawn] = []
        self.said: dict[str, str] = {}
        self.inside: list[tuple[str, dict[str, str | None]]] = []
        self.picture: dict[str, Any] | None = None  # one of ours, as far as it was read

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in VOID:
            return
        given = dict(attrs)
        self.inside.append((tag, given))
        if tag in HEADINGS:
            self.said = {above: self.said.get(above, "") for above in HEADINGS[: HEADINGS.index(tag)]} | {tag: ""}
        elif given.get("class") in BESIDE and (heading := self._heading()):
            self.said[heading] += " · "
        elif tag == "svg" and given.get("class") == "strands":
            self.picture = {"width": given["width"], "height": given["height"], "shapes": []}
        elif self.picture and tag in SHAPES:
            self.picture["shapes"].append({**given, "tag": tag, "text": ""})

    def handle_endtag(self, tag: str) -> None:
        if tag == "svg" and self.picture:
            self._keep(self.picture)
            self.picture = None
        while self.inside and self.inside.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        tags, heading = [tag for tag, _ in self.inside], self._heading()
        if heading and not any(given.get("aria-hidden") for _, given in self.inside):
            self.said[heading] += data
        if self.picture and tags[-1:] == ["text"]:
            self.picture["shapes"][-1]["text"] += data
        if tags[-1:] == ["script"] and self.inside[-1][1].get("type") == "application/json":
            self._keep(json.loads(data))

    def _heading(self) -> str | None:
        """The one whose words are read just now."""
        tags = [tag for tag, _ in self.inside]
        return next((tag for tag in HEADINGS if tag in tags), None)

    def _keep(self, spec: dict[str, Any]) -> None:
        said = [" ".join(self.said.get(tag, "").split()) for tag in HEADINGS]
        labels = [given["aria-label"] for tag, given in self.inside if tag != "section" and given.get("aria-label")]
        section, heading, caption = said
        self.found.append(Drawn(section, heading, caption, ". ".join(map(str, labels)), spec))
        self.said.pop("figcaption", None)
