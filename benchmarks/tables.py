"""Print measurements as tables, with their spread."""

import numpy as np


def spread(values, unit):
    """Return the median of some measurements and their quartiles."""
    low, middle, high = np.percentile(values, [25, 50, 75])
    return {f"median {unit}": float(middle), f"quartiles {unit}": f"{low:.1f}-{high:.1f}"}


def print_tables(tables):
    """Print each table of {title: rows}, the columns of its first row's names."""
    for title, rows in tables.items():
        print(f"\n{title}")
        print_table(rows)


def print_table(rows):
    """Print rows of one shape, right-aligned."""
    cells = [list(rows[0])] + [
        [f"{v:.2f}" if isinstance(v, float) else str(v) for v in row.values()] for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
