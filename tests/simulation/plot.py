"""Draws how long people wait, for light and for dark pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.simulation.results import IN_LINE, Results

_TICKS = {60: "1 min", 600: "10 min", 3600: "1 h", 14400: "4 h", 86400: "1 day", 345600: "4 days"}
_SHORTEST = 60
"""In seconds; who waits for less is drawn here."""


@dataclass(frozen=True)
class _Theme:
    """Colours that stand out from the page, and the line's from the others, by lightness too."""

    suffix: str
    text: str
    grid: str
    ours: str
    others: str


# The blues of Okabe and Ito, "Color Universal Design" (2008).
_THEMES = (
    _Theme("", "#24292f", "#d0d7de", "#0072b2", "#57606a"),
    _Theme("-dark", "#e6edf3", "#3d444d", "#56b4e9", "#a9b1ba"),
)


def draw(found: Mapping[str, Results], to: Path) -> None:
    """Draw the results of each workload beside each other."""
    # So that the same results give the same files.
    mpl.rcParams.update({"svg.hashsalt": "gpuspawner", "font.size": 9})
    for theme in _THEMES:
        figure = Figure(figsize=(9, 6.4), layout="constrained")
        panels = figure.subplots(1, len(found), sharex=True, sharey=True, squeeze=False)
        figure.get_layout_engine().set(wspace=0.08)
        for axes, (name, results) in zip(panels[0], found.items(), strict=True):
            _draw(axes, results, theme)
            axes.set_title(name[0].upper() + name[1:], color=theme.text, loc="left")
        figure.supxlabel("nine of ten people wait no longer", color=theme.text, fontsize=9)
        path = to.with_name(f"{to.name}{theme.suffix}.svg")
        figure.savefig(path, transparent=True, metadata={"Date": None})


def _draw(axes: Axes, results: Results, theme: _Theme) -> None:
    """Draw a row for each size and way: a dot for the plays' median, a bar from least to most."""
    labels: dict[float, str] = {}
    top = 0.0
    for gpus in next(iter(results.values())).sizes():
        axes.text(_SHORTEST, top, f"{gpus} GPU{'s' if gpus > 1 else ''}", **_bold(theme))
        for row, (name, result) in enumerate(results.items(), start=1):
            color = theme.ours if name.startswith(IN_LINE) else theme.others
            waits = [max(_SHORTEST, it) for it in result.nine_of_ten(gpus)]
            axes.hlines(top + row, min(waits), max(waits), color=color, linewidth=2)
            axes.plot(median(waits), top + row, "o", color=color, markersize=6, clip_on=False)
            labels[top + row] = name
        top += len(results) + 1.5
    axes.set_ylim(top - 1, -0.8)
    axes.set_yticks(list(labels), list(labels.values()), color=theme.text)
    axes.set_xscale("log")
    axes.set_xticks(list(_TICKS), list(_TICKS.values()), color=theme.text)
    axes.set_xlim(_SHORTEST, 1.5 * max(_TICKS))
    axes.minorticks_off()
    axes.grid(axis="x", color=theme.grid, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _bold(theme: _Theme) -> dict[str, str]:
    return {"color": theme.text, "fontweight": "bold", "va": "center"}
