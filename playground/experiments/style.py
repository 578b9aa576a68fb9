"""How pictures of results look; matplotlib's settings."""

from typing import Any

INK, FAINT = "#22292f", "#9aa5b1"
STYLE: Any = {
    "figure.dpi": 160,
    "savefig.bbox": "tight",
    "savefig.pad_inches": 0.15,
    "font.size": 9,
    "text.color": INK,
    "axes.titlesize": 10,
    "axes.axisbelow": True,
    "axes.edgecolor": FAINT,
    "grid.color": "#e6e9ed",
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
}
