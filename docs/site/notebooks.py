"""A notebook as a page."""

from __future__ import annotations

import json
from pathlib import Path


def page(path: Path) -> str:
    """Its cells one after the other; the file itself is beside it, to be downloaded."""
    cells = json.loads(path.read_text())["cells"]
    parts = ["".join(cell["source"]) for cell in cells]
    shown = [
        f"```python\n{part}\n```" if cell["cell_type"] == "code" else part
        for cell, part in zip(cells, parts, strict=True)
    ]
    title, *rest = shown
    return "\n\n".join([title, f"This page is the notebook [{path.name}](../../examples/{path.name}).", *rest]) + "\n"
