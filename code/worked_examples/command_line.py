"""The command line: the tables of the chapters, printed by the functions that the chapters call.

``python code/worked_examples/attention.py`` starts it, with numpy alone. A topic's module is
imported when its table is asked for, so that a short answer starts fast.
"""

import argparse
import json
import math
import os
import sys

from worked_examples.attention import entropy

__all__ = ["main"]


def _bottleneck():
    from worked_examples import recurrence

    yield "Paths and steps, for sequences of 64 positions", recurrence.path_table(64)
    yield (
        "What a linear encoder's last state still tells (R squared; width 16, radius 0.9, seed 0)",
        recurrence.recall_table(),
    )


def _one():
    from worked_examples import lookup

    steps = lookup.lookup(lookup.QUERY, list(lookup.KEYS.values()))
    output = {f"output {i}": x for i, x in enumerate(steps.output, 1)}
    n = len(lookup.KEYS)
    most = entropy([1 / n] * n)
    yield "One query, three keys that point the same way", lookup.one_query_table()
    yield (
        "What comes out (entropy in bits)",
        [{**output, "entropy": steps.entropy, "most possible": most}],
    )


def _select():
    from worked_examples import lookup

    yield "Three queries, keys that disagree (entropy in bits)", lookup.select_table()


def _scale():
    from worked_examples import scaling

    rows = scaling.scale_table()
    both = ("entropy", "largest weight", "Jacobian norm")
    yield (
        f"Scores: {scaling.DRAWS} draws, {scaling.KEYS} keys, seed {scaling.SEED}",
        [{name: row[name] for name in ("d_k", "sqrt(d_k)", "spread", "pooled")} for row in rows],
    )
    for kind in ("unscaled", "scaled"):
        yield (
            f"Weights, {kind} (entropy in bits)",
            [{"d_k": row["d_k"], **{name: row[f"{name} {kind}"] for name in both}} for row in rows],
        )


def _mask():
    from worked_examples import masking

    yield "Mask first, then softmax", masking.ordering_table("mask first")
    yield "Softmax first, then mask", masking.ordering_table("softmax first")


def _heads():
    from worked_examples import heads

    yield "Two relations, one row of weights: share on the newest position", heads.blend_table()
    yield "Errors over five series", heads.pattern_table()
    yield "One width, more heads (d = 512, L = 1024)", heads.heads_table()
    yield "Three choices and their costs (d = 512, L = 1024, 8 heads)", heads.choices_table()


def _params():
    from worked_examples import costs

    sizes = costs.SIZES
    yield (
        "Parameters of one layer: d = {d}, h = {h}, H = {H}".format(**sizes),
        costs.layer_table(*(sizes[name] for name in ("d", "h", "H"))),
    )
    yield (
        "Parameters of the model: |V| = {vocabulary}, layers: {layers}".format(**sizes),
        costs.model_table(**sizes),
    )


def _positions():
    from worked_examples import positions

    yield "Sinusoids: four positions, d = 4, base 10000", positions.encoding_table()
    yield "Cosine of two encodings so far apart", positions.similarity_table()
    yield "How far further apart means less alike", positions.monotone_table()
    yield "ALiBi: the slope of each head", positions.slopes_table()


def _cost():
    from worked_examples import costs

    sizes = {name: costs.SIZES[name] for name in ("d", "H")}
    yield (
        "Multiply-adds of one layer: L = 1024, d = {d}, H = {H}".format(**sizes),
        costs.work_table(1024, **sizes),
    )
    yield (
        "Scores and averages cost as much as something else does (d = {d}, H = {H})".format(
            **sizes
        ),
        [
            {"something else": name, "at L": L}
            for name, L in costs.overtaking_lengths(**sizes).items()
        ],
    )
    yield "Multiply-adds of one layer as the length grows", costs.growth_table(**sizes)
    yield (
        "Memory in float32: {h} heads, layers: {layers}, d = {d}".format(**costs.SIZES),
        costs.memory_table(),
    )


def _series():
    from worked_examples import series

    yield "One tied head, period 4: weight of each query on each key", series.map_table()
    yield (
        "Six series, one tied head: share of the weight on whole periods (period 7, seed 0)",
        series.share_table(),
    )


# Each flag, what its help says, and the tables that it prints.
SECTIONS = {
    "bottleneck": (
        "what one state keeps of a sequence, and how far information travels",
        _bottleneck,
    ),
    "one": ("one query over three keys, step by step", _one),
    "select": ("keys that disagree: queries that choose, and one that cannot", _select),
    "scale": ("what dividing by sqrt(d_k) does, for widths from 4 to 1024", _scale),
    "mask": ("the causal mask before the softmax, and after it", _mask),
    "heads": ("two relations at once, and what a layer's heads cost", _heads),
    "params": ("how many parameters each part of a transformer holds", _params),
    "positions": ("sinusoids, how alike they are, and ALiBi's slopes", _positions),
    "cost": ("what a length costs: multiply-adds and memory", _cost),
    "series": ("what one untrained head sees in a time series", _series),
}


def main(arguments=None):
    """Print the tables that are asked for, or all of them.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default the process's own.

    Returns
    -------
    int
        Exit status: 0; argparse ends the process with 2 on an unknown flag.
    """
    parser = argparse.ArgumentParser(
        prog="attention.py", description="Print the tables of the book Self-Attention, Worked."
    )
    for name, (text, _) in SECTIONS.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)
    parser.add_argument("--json", action="store_true", help="print JSON, numbers unrounded")
    chosen = vars(parser.parse_args(arguments))
    names = [name for name in SECTIONS if chosen[name]] or list(SECTIONS)
    tables = {name: list(SECTIONS[name][1]()) for name in names}
    try:
        print(_json(tables) if chosen["json"] else _text(tables), flush=True)
    except BrokenPipeError:  # as in `... | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _json(tables):
    return json.dumps(
        {
            name: [{"title": title, "rows": rows} for title, rows in sections]
            for name, sections in tables.items()
        },
        indent=2,
        ensure_ascii=False,
        default=lambda number: number.item(),
    )


def _text(tables):
    return "\n\n".join(
        f"{title}\n{_table(rows)}" for sections in tables.values() for title, rows in sections
    )


def _table(rows):
    """Set rows in columns: names to the left, numbers to the right, four decimals."""
    cells = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    left = [isinstance(value, str) for value in rows[0].values()]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if to_left else cell.rjust(width)
            for cell, width, to_left in zip(line, widths, left, strict=True)
        ).rstrip()
        for line in cells
    )


def _cell(value):
    if isinstance(value, (str, int)):
        return str(value)
    return f"{value:.4f}" if math.isfinite(value) else str(value)
