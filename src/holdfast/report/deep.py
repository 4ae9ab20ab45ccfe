"""A waterfall in space drawn by matplotlib: ribbons one behind the other, and boxes of all tasks at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.report import ink

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEIGHT, MORE = 2.6, 0.7  # inches, and for depth
LOOK = {"elev": 26, "azim": -72}


def draw_deep(spec: Mapping[str, Any]) -> Figure:
    """Surfaces, lines and boxes; what is behind is drawn first, so that none hides what is before it."""
    import numpy as np
    from matplotlib.figure import Figure
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    scene = spec["layout"]["scene"]
    figure = Figure(figsize=(ink.PAGE, HEIGHT + MORE * scene["aspectratio"]["y"]))
    axes: Any = figure.add_axes((0.0, 0.08, 1.0, 0.92), projection="3d", computed_zorder=False)
    for trace in sorted(spec["data"], key=_depth, reverse=True):
        behind = -_depth(trace)
        if trace["type"] == "surface":
            x, y, z = (np.array(trace[name], dtype=float) for name in "xyz")
            colour = ink.colour(trace["colorscale"][0][1])
            look = {"color": colour, "alpha": 0.75, "shade": False, "linewidth": 0, "rcount": 2, "ccount": 400}
            axes.plot_surface(x, y, z, zorder=behind, **look)
        elif trace["type"] == "scatter3d":
            line = [[ink.number(value) for value in trace[name]] for name in "xyz"]
            colour = ink.colour(trace["line"]["color"])
            axes.plot(*line, color=colour, linewidth=0.2 * trace["line"]["width"], zorder=behind)
        else:
            corners = list(zip(*(trace[name] for name in "xyz"), strict=True))
            faces = [[corners[i] for i in face] for face in zip(*(trace[name] for name in "ijk"), strict=True)]
            axes.add_collection3d(Poly3DCollection(faces, facecolor="white", edgecolor="none", zorder=behind))
    for each in (*axes.collections, *axes.lines):
        each.set_clip_on(False)
    _finish(axes, scene)
    _legend(figure, spec)
    return figure


def _legend(figure: Figure, spec: Mapping[str, Any]) -> None:
    """Each ribbon's name once, in its colour."""
    from matplotlib.patches import Patch

    ribbons = {ink.text(trace["name"]): trace for trace in spec["data"] if trace["type"] == "surface"}
    handles = [Patch(color=ink.colour(each["colorscale"][0][1]), label=name) for name, each in ribbons.items()]
    box = [Patch(facecolor="white", edgecolor=ink.INK, linewidth=0.5, label="all tasks at once")]
    boxes = any(trace["type"] == "mesh3d" for trace in spec["data"])
    figure.legend(handles=handles + (box if boxes else []), loc="lower center", ncols=6, bbox_to_anchor=(0.5, 0))


def _depth(trace: Mapping[str, Any]) -> float:
    """How far behind it begins."""
    y = trace["y"][0] if isinstance(trace["y"][0], list) else trace["y"]
    return min(value for value in y if value is not None)


def _finish(axes: Any, scene: Mapping[str, Any]) -> None:
    for which in "xyz":
        axis = scene[f"{which}axis"]
        names = [ink.text(each) for each in axis.get("ticktext") or (f"{each:g}" for each in axis["tickvals"])]
        getattr(axes, f"set_{which}ticks")(axis["tickvals"], names)
        getattr(axes, f"set_{which}label")(ink.text(axis["title"].get("text") or ""))
        if axis.get("range"):
            getattr(axes, f"set_{which}lim")(*axis["range"])
        getattr(axes, f"{which}axis").set_pane_color((1, 1, 1, 0))
    axes.tick_params("y", pad=-2)
    for label in axes.get_yticklabels():
        label.set(ha="left", va="center", size=6)
    share = scene["aspectratio"]
    axes.set_box_aspect((share["x"], 1.2 * share["y"], share["z"]), zoom=1.3)
    axes.view_init(**LOOK)
    axes.set_proj_type("ortho")
