"""Which modules each task made, and which it took from others: paths through a library (paper 000, figures 7 and 8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from holdfast.metrics import Group, library
from holdfast.report import parts, strands
from holdfast.types import Record

LEAD = (
    "Each path leads from a task’s input, a dot, through one module per layer to its output, a square. A module is a "
    "block in the row and the colour of the task that made it; a path that leaves its own row reuses what another task "
    "made, and a block is as high as there are paths through it, whose number stands in it."
)
FILES = '<p class="note"><code>holdfast export DIR --svg FOLDER</code> writes the pictures as files.</p>'
HINT = "Point at a path or a module, or choose a task, to see who made what and who uses it."


def section(groups: Sequence[Group]) -> str:
    """A picture and a sentence for each label whose method has a library; nothing where none has."""
    drawn = [_drawn(g) for g in groups if graph_of(g.first)]
    return parts.section("Paths through the library", LEAD, [*drawn, FILES] if drawn else [])


def graph_of(record: Record) -> strands.Graph | None:
    """None where there is no path, or one task alone, whose path says nothing."""
    paths = library.paths_of(record)
    if len(paths) < 2:
        return None
    return strands.Graph(paths, [str(task["name"]) for task in record.tasks], library.shares(record))


def sentence(label: str, graph: strands.Graph) -> str:
    """'mntdp: 23 modules for 6 tasks of 7 layers (42 without reuse); the last task reuses 6 modules of task 1, ...'"""
    tasks = len(graph.paths)
    makers = Counter(graph.paths[-1])
    new = makers.pop(tasks - 1, 0)
    taken = [f"{count} {'module' if count == 1 else 'modules'} of {graph.named(maker)}"
             for maker, count in makers.items()]  # fmt: skip
    last = f"reuses {' and '.join(taken)}, and makes {new or 'none'}" if taken else "reuses none"
    return (
        f"{label}: {len(graph.modules)} modules for {tasks} tasks of {graph.layers} layers "
        f"({tasks * graph.layers} without reuse); the last task {last}."
    )


def _drawn(g: Group) -> str:
    graph = graph_of(g.first)
    assert graph is not None
    label = escape(g.label)
    options = "".join(
        f'<option value="{task}">{task + 1} {escape(name)}</option>' for task, name in enumerate(graph.names)
    )
    return (
        f'<p class="finding">{escape(" ".join([sentence(g.label, graph), *_others(g)]))}</p><div class="paths">'
        f'<label>Show <select><option value="">all tasks</option>{options}</select></label>'
        f'<div class="wide" tabindex="0" role="region" aria-label="{label}: paths">{strands.draw(graph)}</div>'
        f'<output class="quiet">{HINT}</output></div>'
    )


def _others(g: Group) -> list[str]:
    """How many modules there are with the seeds that are not drawn."""
    counts = [
        f"{len(library.modules_of(library.paths_of(record)))} with seed {record.seed}" for record in g.records[1:]
    ]
    return [f"That is seed {g.first.seed}, which is drawn; {', '.join(counts)}."] if counts else []
