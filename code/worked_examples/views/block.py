"""View of the count of parameters."""

import math

from worked_examples.costs import embedding_parameters, head_width, layer_table, model_table
from worked_examples.views.markup import bars, paragraph, table

__all__ = ["parameters"]


def parameters(*, vocabulary, d, layers, h, H):
    """Show what each part of a model holds.

    Parameters
    ----------
    vocabulary, d, layers, h, H : int
        Whole numbers of at least 1. Where h does not divide d there is no such model, and a
        sentence says so.

    Returns
    -------
    str
        HTML: a bar a part, tables of a layer and of the model, and a sentence.
    """
    if d % h:
        return _impossible(vocabulary, d, h)
    layer, model = layer_table(d, h, H), model_table(vocabulary, d, layers, h, H)
    parts = {row["part"]: layers * row["parameters"] for row in layer[:-1]}
    parts = {"embeddings": model[0]["parameters"]} | parts
    share = model[0]["parameters"] / model[-1]["parameters"]
    return (
        # A bar ends at four fifths of the picture, so that its number has room behind it.
        bars(list(parts), list(parts.values()), f"Parameters of the model, layers: {layers}",
             largest=1.25 * max(parts.values()), left=104)
        + table(("one layer", "parameters", "share"),
                [(row["part"], row["parameters"], f"{row['share']:.2%}") for row in layer])
        + table((f"layers: {layers}", "parameters"), [tuple(row.values()) for row in model])
        + paragraph(
            f"Heads: {h}, each {head_width(d, h):,} wide; one head would hold as much. The "
            f"feed-forward part has {layer[1]['share']:.1%} of a layer, the embeddings "
            f"{share:.1%} of the model."
        )
    )  # fmt: skip


def _impossible(vocabulary, d, h):
    """Say which numbers of heads d can be cut into, with the parts that do not need heads."""
    near = sorted((n for n in range(1, d + 1) if d % n == 0), key=lambda n: (abs(n - h), n))[:2]
    return (
        bars(["embeddings", "a layer"], [embedding_parameters(vocabulary, d), math.nan],
             "No layer to count", largest=1.25 * vocabulary * d, left=104)
        + paragraph(
            f"d = {d} cannot be cut into {h} heads of one width: {d} / {h} is {d / h:.2f}. "
            f"Nearest that can: {' and '.join(map(str, sorted(near)))}."
        )
    )  # fmt: skip
