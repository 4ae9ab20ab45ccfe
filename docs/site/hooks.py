"""What MkDocs calls while it builds: pages made of code and of files outside docs/ join those written there."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import notebooks
import reference
import shelves
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
AT_THE_ROOT = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": "index.md"}
MADE: dict[str, str] = {}  # place in the site -> Markdown


def on_config(config: MkDocsConfig) -> None:
    """All pages that are not in docs/ are made, and folders in `nav` become lists of what is in them."""
    MADE.clear()
    MADE.update(shelves.pages(DOCS))
    MADE["reference.md"] = reference.page()
    for path in sorted((ROOT / "examples").glob("*.ipynb")):
        MADE[f"notebooks/{path.stem}.md"] = notebooks.page(path)
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        MADE[AT_THE_ROOT[name]] = (ROOT / name).read_text()
    config.nav = [item for each in config.nav or [] for item in _whole(each)]


def on_files(files: Files, config: MkDocsConfig) -> None:
    for place, text in MADE.items():
        written = files.get_file_from_path(place)
        if written is not None:  # it is in what was made of it
            files.remove(written)
        files.append(File.generated(config, place, content=text))
    for path in sorted((ROOT / "examples").iterdir()):
        if path.is_file():
            files.append(File.generated(config, f"examples/{path.name}", abs_src_path=str(path)))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to files outside docs/, as they are right in the repository, lead to the same files in the site."""
    place = page.file.src_uri
    source = next((name for name, made in AT_THE_ROOT.items() if made == place and made in MADE), f"docs/{place}")

    def moved(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[1]))
        inside = AT_THE_ROOT.get(target, target.removeprefix("docs/"))
        return f"]({posixpath.relpath(inside, posixpath.dirname(place) or '.')}{link[2] or ''})"

    return re.sub(
        r"\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)", lambda link: moved(link) if link[1] else link[0], markdown
    )


def _whole(item: Any) -> Iterator[Any]:
    """An entry of `nav` with folders replaced; none where a folder is empty."""
    if isinstance(item, str):
        yield from _inside(item) if item.endswith("/") else [item]
        return
    ((title, found),) = item.items()
    if isinstance(found, str) and not found.endswith("/"):
        yield item
        return
    inner = [entry for each in ([found] if isinstance(found, str) else found) for entry in _whole(each)]
    if inner:
        yield {title: inner}


def _inside(folder: str) -> list[str]:
    """The pages of a folder, its index first."""
    written = {f"{folder}{path.relative_to(DOCS / folder).as_posix()}" for path in (DOCS / folder).rglob("*.md")}
    return sorted(
        written | {place for place in MADE if place.startswith(folder)}, key=lambda at: (at[-8:] != "index.md", at)
    )
