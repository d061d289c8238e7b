"""Figures: pictures as data, drawn by matplotlib as SVG for the page and as SVG and PNG files.

A picture has one or more panels. In the page each panel is a separate drawing, so that a phone
shows one below the other; in a file they are side by side. Equal pictures give equal bytes.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from itertools import pairwise
from math import log10
from typing import Any, Final

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from qns.report.statistics import Estimate

INK: Final = "#1a1c20"
FAINT: Final = "#d5d9df"
COLOURS: Final = ("#005f9e", "#b84a00", "#00735c", "#9c3d78", "#7a6200", "#5b6470")
"""Blue, vermilion, green, purple, ochre, grey. Colour-blind readers can distinguish them (after
Okabe and Ito), and they are dark enough for white paper. In the page they are the variables
`--line-1` and so on, which are lighter in dark mode."""
MARKERS: Final = ("o", "s", "^", "D", "v", "P")
DASHES: Final = ("-", (0, (5, 2)), (0, (1, 1.5)), "-.", (0, (6, 1, 1, 1, 1, 1)), (0, (3, 3)))
PANEL_INCHES: Final = (3.7, 3.1)
_SETTINGS: Final[dict[Any, Any]] = {
    "svg.hashsalt": "qns",
    "svg.fonttype": "none",
    "text.parse_math": False,  # a name may contain a $
    "font.family": ["DejaVu Sans"],
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "figure.dpi": 100,
}
_FEW_DECADES: Final = 1.75
"""A logarithmic axis over fewer decades has ticks at 1, 2 and 5."""
_FEW_TICKS: Final = 7
_PAGE_FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


@dataclass(frozen=True, slots=True)
class Line:
    label: str
    points: tuple[tuple[float, Estimate], ...]
    look: int
    """Index of colour, marker and dash. The same thing has the same look in all pictures."""
    at_end: str = ""
    """Text at the end of the line; several lines may then share a label."""
    faint: bool = False
    """True for a thin line without markers, as one of many."""


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    across: str
    up: str
    lines: tuple[Line, ...]
    mark: tuple[float, str] | None = None
    """A level to compare with, and its label."""
    logarithmic: tuple[bool, bool] = (True, False)
    percent: bool = False
    whole: bool = True
    """True if an axis of percentages goes up to 100."""
    joined: bool = True
    """True if the points of a line are connected."""
    bars: bool = False
    """True for one horizontal bar for the only point of each line, with its value in `unit`."""
    unit: str = " %"


@dataclass(frozen=True, slots=True)
class Picture:
    name: str
    """The name of its files: letters, digits, dots and dashes."""
    title: str
    description: str
    panels: tuple[Panel, ...]


def svg_file(picture: Picture) -> bytes:
    drawn = _svg(picture.panels, _columns(picture))
    return _named(drawn, f"file-{picture.name}", picture.title, picture.description).encode()


def png_file(picture: Picture) -> bytes:
    options = {"format": "png", "dpi": 200, "facecolor": "white", "metadata": {"Software": None}}
    return _saved(picture.panels, _columns(picture), FigureCanvasAgg, options)


def page_drawings(picture: Picture) -> tuple[str, ...]:
    """Returns each panel as SVG for a page, with the colours and the font of the page."""
    return tuple(
        _themed(
            _named(
                _svg((panel,), 1),
                f"drawing-{picture.name}-{nth}".replace(".", "-"),
                f"{picture.title}: {panel.title}",
                picture.description,
            )
        )
        for nth, panel in enumerate(picture.panels, start=1)
    )


def short_number(value: float) -> str:
    """Returns a short form that fits below an axis: 1,000 as 1k, a million as 1M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _columns(picture: Picture) -> int:
    return 2 if len(picture.panels) == 4 else min(len(picture.panels), 3)


def _svg(panels: Sequence[Panel], columns: int) -> str:
    no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    options = {"format": "svg", "transparent": True, "metadata": no_metadata}
    return _saved(panels, columns, FigureCanvasSVG, options).decode()


def _saved(panels: Sequence[Panel], columns: int, canvas: Any, options: dict[str, Any]) -> bytes:
    """Draws the panels on a canvas of that class and encodes them with these options."""
    with matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
        # The font of the page may have glyphs that the drawing's font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        figure = _figure(panels, columns)
        canvas(figure)
        out = BytesIO()
        figure.savefig(out, **options)
    return out.getvalue()


def _figure(panels: Sequence[Panel], columns: int) -> Figure:
    rows = -(-len(panels) // columns)
    width, height = PANEL_INCHES
    if all(panel.bars for panel in panels):
        height = 0.75 + 0.27 * max(len(panel.lines) for panel in panels)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    for nth, panel in enumerate(panels, start=1):
        axes = figure.add_subplot(rows, columns, nth)
        if panel.bars:
            _draw_bars(axes, panel)
        else:
            _draw_lines(axes, panel)
        axes.set_title(panel.title, loc="left")
    return figure


def _draw_lines(axes: Any, panel: Panel) -> None:
    axes.grid(visible=True, axis="y")
    labelled: set[str] = set()
    for line in panel.lines:
        _draw_line(axes, panel, line, shown=line.label not in labelled)
        labelled.add(line.label)
    if panel.mark:
        level, words = panel.mark
        axes.axhline(level, color=COLOURS[5], linewidth=0.9, linestyle=(0, (2, 2)), zorder=1)
        axes.annotate(
            words, (0.01, level), xycoords=("axes fraction", "data"), xytext=(0, 2),
            textcoords="offset points", fontsize=7, color=COLOURS[5],
        )  # fmt: skip
    _set_scales(axes, panel)
    axes.set_xlabel(panel.across)
    axes.set_ylabel(panel.up)
    if any(line.at_end for line in panel.lines):
        _write_ends(axes, panel)
    if labelled - {""}:
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, frameon=False, fontsize=7.5,
            handlelength=2.6, columnspacing=1.4, borderaxespad=0,
        )  # fmt: skip


def _draw_line(axes: Any, panel: Panel, line: Line, *, shown: bool) -> None:
    xs = [x for x, _ in line.points]
    means = [each.mean for _, each in line.points]
    colour = COLOURS[line.look]
    if line.faint:
        axes.plot(
            xs, means, color=colour, linewidth=0.5, alpha=0.6,
            label=line.label if shown and line.label else "_", zorder=3,
        )  # fmt: skip
        return
    axes.plot(
        xs, means, color=colour, marker=MARKERS[line.look], markersize=3.6, linewidth=1.5,
        linestyle=DASHES[line.look] if panel.joined else "none",
        label=line.label if shown and line.label else "_", zorder=3,
    )  # fmt: skip
    if any(each.half for _, each in line.points):
        lows = [each.low for _, each in line.points]
        highs = [each.high for _, each in line.points]
        if panel.joined and len(xs) > 1:
            axes.fill_between(xs, lows, highs, color=colour, alpha=0.18, linewidth=0, zorder=2)
        else:
            axes.vlines(xs, lows, highs, color=colour, linewidth=1.2, zorder=2)


def _set_scales(axes: Any, panel: Panel) -> None:
    spots = [point for line in panel.lines for point in line.points]
    across = sorted({x for x, _ in spots})
    for number, axis in enumerate((axes.xaxis, axes.yaxis)):
        values = across if not number else [each.mean for _, each in spots]
        if panel.logarithmic[number] and min(values, default=0) > 0:
            (axes.set_xscale, axes.set_yscale)[number]("log")
            narrow = log10(max(values) / min(values)) < _FEW_DECADES
            axis.set_major_locator(LogLocator(subs=(1, 2, 5) if narrow else (1,)))
            axis.set_minor_formatter(NullFormatter())
        elif not number and len(across) <= _FEW_TICKS:
            axis.set_ticks(across)
        axis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))
    heights = [each.mean for _, each in spots]
    if panel.percent:
        lowest = min((each.low for _, each in spots), default=0.0)
        if panel.whole:
            axes.set_ylim(min(0.0, lowest * 1.05), 100)
        axes.yaxis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value:g} %".replace("-", "−"))
        )
    elif axes.get_yscale() == "log":
        # An interval may reach below zero, which a logarithmic axis cannot show.
        axes.set_ylim(min(heights) / 1.5, max(each.high for _, each in spots) * 1.3)
    else:
        axes.set_ylim(bottom=0)
    if not panel.joined:
        axes.margins(x=0.15)


def _write_ends(axes: Any, panel: Panel) -> None:
    """Writes names beside the ends of the lines, and moves them apart where they overlap."""
    bottom, top = axes.get_ylim()
    ends = sorted(
        ((line.points[-1][1].mean - bottom) / (top - bottom), line.at_end, line)
        for line in panel.lines
        if line.at_end
    )
    heights = [height for height, _, _ in ends]
    gap = min(0.062, 1 / max(len(ends), 1))
    for nth in range(1, len(heights)):
        heights[nth] = max(heights[nth], heights[nth - 1] + gap)
    over = max(0.0, heights[-1] - 1.0)
    heights = [height - over for height in heights]
    for nth, (upper, lower) in enumerate(pairwise(reversed(heights)), start=2):
        heights[-nth] = min(lower, upper - gap)
    for height, (_, name, line) in zip(heights, ends, strict=True):
        x, last = line.points[-1]
        axes.annotate(
            name, (x, last.mean), xytext=(1.04, height), textcoords="axes fraction", va="center",
            fontsize=7, color=COLOURS[line.look], annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": FAINT, "linewidth": 0.6, "shrinkB": 3},
        )  # fmt: skip


def _draw_bars(axes: Any, panel: Panel) -> None:
    values = [line.points[0][1] for line in panel.lines]
    for nth, (line, value) in enumerate(zip(panel.lines, values, strict=True)):
        axes.barh(nth, value.mean, color=COLOURS[line.look], height=0.62, zorder=3)
        if value.half:
            axes.hlines(nth, value.low, value.high, color=INK, linewidth=1.2, zorder=4)
        axes.annotate(
            f"{round(value.mean, 1) or 0.0:.1f}{panel.unit}".replace("-", "−"),
            (max(value.high, 0.0), nth),
            xytext=(4, 0), textcoords="offset points", va="center", fontsize=7.5,
        )  # fmt: skip
    axes.set_yticks(range(len(values)), [line.label for line in panel.lines])
    axes.set_ylim(len(values) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    highest = max((each.high for each in values), default=0.0)
    lowest = min([0.0, *(each.low for each in values)])
    if panel.unit == " %":
        axes.set_xlim(lowest * 1.05, max(100.0, highest) * 1.18)
        axes.set_xticks([0, 25, 50, 75, 100])
    else:
        width = max(highest, 0.0) - lowest or 1.0
        axes.set_xlim(lowest - 0.03 * width, max(highest, 0.0) + 0.25 * width)
        axes.axvline(0, color=INK, linewidth=0.7, zorder=4)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:g}{panel.unit}".replace("-", "−"))
    )
    axes.set_xlabel(panel.across)
    axes.grid(visible=True, axis="x")


def _named(svg: str, name: str, title: str, description: str) -> str:
    """Returns the svg element with unique ids, a title and a description."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # matplotlib's only style rule is for `*`, which would apply to the whole page.
    svg = re.sub(r"\s*<defs>\s*<style.*?</style>\s*</defs>", "", svg, count=1, flags=re.DOTALL)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
    words = (
        f'<title id="{name}-title">{escape(title)}</title>\n'
        f' <desc id="{name}-desc">{escape(description)}</desc>'
    )
    return re.sub(
        r"<svg ([^>]*)>",
        lambda found: (
            f'<svg role="img" aria-labelledby="{name}-title {name}-desc" stroke-linejoin="round" '
            f"{found[1]}>\n {words}"
        ),
        svg,
        count=1,
    )


def _themed(svg: str) -> str:
    """Replaces the colours and the font of an SVG by those of the page, and removes its size."""
    svg = re.sub(r'(<svg [^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg [^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = svg.replace("'DejaVu Sans'", _PAGE_FONT)
    for number, colour in enumerate(COLOURS, start=1):
        svg = svg.replace(colour, f"var(--line-{number})")
    return svg.replace(INK, "currentColor").replace(FAINT, "var(--faint)")
