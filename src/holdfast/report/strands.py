"""Paths through a library of modules as a picture: an SVG of our own, in a page and as a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import accumulate

from holdfast.metrics.library import Module, Path, modules_of, stretches
from holdfast.report.plots import INK, PALETTE, task_ticks

STEP = 96  # from one layer to the next
BLOCK = 30  # a module's width
BEND = (STEP - BLOCK) / 2  # half the way between two modules
HEAD = 30  # above the first row
LETTER = 6.6  # of a name's width, about
LONGEST = 26  # characters of a name
FEW = 12  # tasks whose modules are reached by keyboard one by one; of more, a task is chosen
NAMED = 8  # users of a module that are named
STYLE = (  # only of what is in it: a page has other pictures
    ".strands text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;fill:" + INK + "}"
    ".strands .quiet{fill:#686c72}.strands .many{font-weight:600;fill:#fff;text-anchor:middle}"
    ".strands g{transition:opacity .12s}.strands .strand{fill:none}"
    ".strands:has(.task:hover) .task{opacity:.15}.strands .task:hover{opacity:1}"
)


@dataclass(frozen=True)
class Rows:
    """How tasks are set: as many as there are, each as high as its most used module asks for."""

    pitch: float  # between strands that run side by side
    width: float  # of a strand
    gap: float  # between rows
    rim: float  # of a block, above and below its strands

    @staticmethod
    def of(tasks: int) -> Rows:
        return Rows(9, 4, 20, 2.5) if tasks <= FEW else Rows(5, 2.6, 9, 1) if tasks <= 40 else Rows(3, 1.7, 4, 0)


@dataclass(frozen=True)
class Graph:
    """Where everything lies. A module stands in the row of the task that made it, one column per layer; the paths that
    go through it lie in lanes, its maker's on top.
    """

    paths: Sequence[Path]
    names: Sequence[str]  # of the tasks
    shares: Sequence[float] = ()  # of the weights, per layer, where they are known

    @cached_property
    def modules(self) -> list[Module]:
        return modules_of(self.paths)

    @property
    def layers(self) -> int:
        return len(self.paths[0])

    @property
    def rows(self) -> Rows:
        return Rows.of(len(self.paths))

    @cached_property
    def tops(self) -> list[float]:
        """Of all rows, and where the last one ends."""
        lanes = [1] * len(self.paths)
        for module in self.modules:
            lanes[module.maker] = max(lanes[module.maker], len(module.users))
        heights = [self.rows.pitch * count + self.rows.gap for count in lanes]
        return list(accumulate(heights, initial=HEAD))

    def named(self, task: int) -> str:
        return f"task {task + 1}, {self.names[task]}"


def draw(graph: Graph, background: str = "none") -> str:
    """The graph as an SVG that needs nothing else; `background`: of a file, which lies on no page."""
    tops, left = graph.tops, _left(graph)
    width, height = left + STEP * (graph.layers + 1) + 60, tops[-1] + 6
    lanes = _lanes(graph, tops)
    drawn = [_columns(graph, left)]
    drawn += [_task(graph, task, lanes[task], left) for task in range(len(graph.paths))]
    drawn += [_block(graph, module, lanes, left) for module in graph.modules]
    said = f"Paths of {len(graph.paths)} tasks through {len(graph.modules)} modules"
    return (
        f'<svg class="strands" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="group" aria-label="{said}" style="background:{background}">'
        f"<style>{STYLE}</style>{''.join(drawn)}</svg>"
    )


def _plain(text: str) -> str:
    """A name as XML can have it."""
    return escape("".join(letter if letter.isprintable() else " " for letter in text))


def _left(graph: Graph) -> float:
    """Where the inputs are: behind the tasks' names."""
    longest = max(len(_label(graph, task)) for task in range(len(graph.paths)))
    return 24 + LETTER * longest


def _label(graph: Graph, task: int) -> str:
    """Beside its row; of many tasks a few numbers."""
    if graph.rows.pitch + graph.rows.gap >= 14:
        name = graph.names[task]
        return f"{task + 1} {name if len(name) <= LONGEST else f'{name[: LONGEST - 1]}…'}"
    return str(task + 1) if task + 1 in task_ticks(len(graph.paths)) else ""


def _lanes(graph: Graph, tops: Sequence[float]) -> list[list[float]]:
    """(tasks, layers) how low each path runs through each module."""
    lanes = [[0.0] * graph.layers for _ in graph.paths]
    for module in graph.modules:
        for i, task in enumerate(module.users):
            lanes[task][module.layer] = tops[module.maker] + graph.rows.pitch * (i + 0.5)
    return lanes


def _columns(graph: Graph, left: float) -> str:
    heads = ["in", *map(str, range(1, graph.layers + 1)), "out"]
    return "".join(
        f'<text class="quiet" x="{left + STEP * i:g}" y="16" text-anchor="middle">{head}</text>'
        for i, head in enumerate(heads)
    )


def _task(graph: Graph, task: int, lane: Sequence[float], left: float) -> str:
    """A path from its input, a dot, to its output, a square, both in the task's own row."""
    own = graph.tops[task] + graph.rows.pitch / 2
    colour, size = PALETTE[task % len(PALETTE)], graph.rows.width
    end = left + STEP * (graph.layers + 1)
    line, y = f"M{left:g} {own:g}", own
    for i, to in enumerate([*lane, own], 1):  # an S between two columns, then straight through the module
        x = left + STEP * i - BLOCK / 2
        line += f"C{x - BEND:g} {y:g} {x - BEND:g} {to:g} {x:g} {to:g}H{min(x + BLOCK, end):g}"
        y = to
    name = _label(graph, task)
    label = f'<text x="{left - 12:g}" y="{own + 4:g}" text-anchor="end">{_plain(name)}</text>' if name else ""
    return (
        f'<g class="task" data-tasks="{task}"><title>{_plain(_told(graph, task))}</title>{label}'
        f'<path class="strand" d="{line}" stroke="{colour}" stroke-width="{size:g}"/>'
        f'<circle cx="{left:g}" cy="{own:g}" r="{size:g}" fill="{colour}"/>'
        f'<rect x="{end - size:g}" y="{own - size:g}" width="{2 * size:g}" height="{2 * size:g}" fill="{colour}"/></g>'
    )


def _block(graph: Graph, module: Module, lanes: Sequence[Sequence[float]], left: float) -> str:
    """A module, as high as paths go through it; beside many of them their number."""
    rows, many = graph.rows, len(module.users)
    x, y = left + STEP * (module.layer + 1), lanes[module.maker][module.layer] - rows.pitch / 2 - rows.rim
    height = rows.pitch * many + 2 * rows.rim
    count = f'<text class="many" x="{x:g}" y="{y + height / 2 + 4:g}">{many}</text>'
    reached = ' tabindex="0"' if len(graph.paths) <= FEW else ""
    return (
        f'<g class="module" data-tasks="{" ".join(map(str, module.users))}"{reached}>'
        f"<title>{_plain(_made(graph, module))}</title>"
        f'<rect x="{x - BLOCK / 2:g}" y="{y:g}" width="{BLOCK}" height="{height:g}" rx="{min(4, rows.pitch / 3):g}" '
        f'fill="{PALETTE[module.maker % len(PALETTE)]}"/>{count if module.reused and height > 14 else ""}</g>'
    )


def _told(graph: Graph, task: int) -> str:
    """'Task 6, CIFAR-10: layers 1 to 6 of task 1, CIFAR-10; layer 7 new.'"""
    made = [
        f"{_layers(each.first, each.last)} {'new' if each.maker == task else f'of {graph.named(each.maker)}'}"
        for each in stretches(graph.paths[task])
    ]
    said = graph.named(task)
    return f"{said[0].upper()}{said[1:]}: {'; '.join(made)}."


def _layers(first: int, last: int) -> str:
    return f"layer {first + 1}" if first == last else f"layers {first + 1} to {last + 1}"


def _made(graph: Graph, module: Module) -> str:
    """Who made a module and who uses it: 'Layer 1, made by task 1, CIFAR-10, ...; used by task 6, CIFAR-10, too.'"""
    others = [graph.named(task) for task in module.users[1:]]
    more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
    users = f"used by {'; '.join(others[:NAMED])}{more}, too" if others else "used by no other"
    share = f", {100 * graph.shares[module.layer]:.2g}% of a network’s weights" if graph.shares else ""
    return f"Layer {module.layer + 1}, made by {graph.named(module.maker)}{share}; {users}."
