"""Draws how costs grow with the cluster, for light and for dark pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from tests.benchmarks.growth import Costs


@dataclass(frozen=True)
class _Theme:
    """Colours that stand out from the page, and lines from each other, by lightness too."""

    suffix: str
    text: str
    grid: str
    lines: tuple[str, ...]


# The palette of Okabe and Ito, "Color Universal Design" (2008).
_THEMES = (
    _Theme("", "#24292f", "#d0d7de", ("#0072b2", "#d55e00", "#009e73", "#7f4f9b")),
    _Theme("-dark", "#e6edf3", "#3d444d", ("#56b4e9", "#e69f00", "#2cc79b", "#cc9fe0")),
)
_MARKS = "os^D"

_PANELS = {
    "Reading the cluster": ("plain transfer of the list", "first list", "memory of the view"),
    "First verdict of its kind": (
        "first verdict: one model",
        "first verdict: any model",
        "first verdict: spread and affinities",
    ),
    "Later verdicts and changes": (
        "later verdict: one model",
        "later verdict: any model",
        "later verdict: spread and affinities",
        "a pod comes",
    ),
}


def draw(found: Mapping[int, Costs], to: Path) -> None:
    """Draw each cost as a multiple of that of the smallest cluster."""
    # So that the same figures give the same files.
    mpl.rcParams.update({"svg.hashsalt": "gpuspawner", "font.size": 9})
    for theme in _THEMES:
        figure = Figure(figsize=(10, 3.8), layout="constrained")
        panels = figure.subplots(1, len(_PANELS), sharex=True, sharey=True)
        for axes, (title, names) in zip(panels, _PANELS.items(), strict=True):
            _draw(axes, found, names, theme)
            axes.set_title(title, color=theme.text, loc="left")
        figure.supxlabel("nodes; each has 30 pods", color=theme.text, fontsize=9)
        path = to.with_name(f"{to.name}{theme.suffix}.svg")
        figure.savefig(path, transparent=True, metadata={"Date": None})


def _draw(axes: Axes, found: Mapping[int, Costs], names: tuple[str, ...], theme: _Theme) -> None:
    sizes = sorted(found)
    even = [nodes / sizes[0] for nodes in sizes]
    axes.plot(sizes, even, "--", color=theme.text, linewidth=1, label="as the cluster")
    for name, color, mark in zip(names, theme.lines, _MARKS, strict=False):
        least = found[sizes[0]][name].amount
        times = [found[nodes][name].amount / least for nodes in sizes]
        label = name.rpartition(": ")[2]
        axes.plot(sizes, times, marker=mark, markersize=4, color=color, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(sizes, [f"{nodes:,}" for nodes in sizes], color=theme.text)
    ticks = (1, 2, 4, 8, 16)
    axes.set_yticks(ticks, [f"× {it}" for it in ticks], color=theme.text)
    axes.minorticks_off()
    axes.grid(color=theme.grid, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.legend(frameon=False, labelcolor=theme.text, loc="upper left")
