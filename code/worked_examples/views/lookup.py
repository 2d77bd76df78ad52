"""Views of one query among three keys."""

import numpy as np

from worked_examples.lookup import KEYS, SELECT_KEYS, lookup
from worked_examples.views.markup import bars, number, paragraph, table

__all__ = ["one_query", "select"]


def one_query(*, values="the keys", **components):
    """Show the four steps for a query and three keys of three components.

    Parameters
    ----------
    values : {"the keys", "one-hot"}
        What the keys hand over: themselves, or a vector that names them, so that the output is
        the weights.
    **components : float
        ``query_1`` to ``query_3``, and ``is_1`` and so on for each word of `lookup.KEYS`.

    Returns
    -------
    str
        HTML: a picture of the weights, the steps as a table, the output and its entropy.
    """
    query = _vector("query", components)
    keys = {word: _vector(word, components) for word in KEYS}
    handed = None if values == "the keys" else np.eye(len(keys))
    steps = lookup(query, list(keys.values()), handed)
    return _shown(steps, keys)


def select(*, animal, vehicle, verb):
    """Show which of the words *dog*, *truck* and *barked* a query of these components finds.

    Parameters
    ----------
    animal, vehicle, verb : float
        The query's components.

    Returns
    -------
    str
        HTML.
    """
    return _shown(lookup((animal, vehicle, verb), list(SELECT_KEYS.values())), SELECT_KEYS)


def _vector(name, components):
    return tuple(components[f"{name}_{i}"] for i in (1, 2, 3))


def _shown(steps, keys):
    rows = [
        (word, ", ".join(f"{x:g}" for x in key), *numbers)
        for (word, key), *numbers in zip(keys.items(), *steps[:3], strict=True)
    ]
    output = ", ".join(number(x) for x in steps.output)
    chose = max(zip(steps.weights, keys, strict=True))
    return (
        bars(list(keys), steps.weights, "Weight of each key")
        + table(("key", "components", "score", "scaled", "weight"), rows)
        + paragraph(f"Output: ({output}).")
        + paragraph(
            f"Entropy {steps.entropy:.4f} of a possible {np.log2(len(keys)):.4f} bits; "
            f"the largest weight, {chose[0]:.4f}, is on {chose[1]}."
        )
    )
