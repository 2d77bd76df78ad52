"""Every explorer of the book, by name: each a view and its controls."""

from worked_examples import lookup
from worked_examples.controls import Choice, Slider
from worked_examples.explorer import Explorer
from worked_examples.views import lookup as lookup_views

# -------------------------------------------------------------------- queries, keys, values


def _components(name, vector, reach, group):
    """Make one slider a component of a vector."""
    return [
        Slider(f"{name}_{i}", f"{name} {i}", -reach, reach, 0.1, x, group=group)
        for i, x in enumerate(vector, 1)
    ]


ONE_QUERY = Explorer(
    "one_query",
    "One query, three keys: what does it find?",
    lookup_views.one_query,
    [
        *_components("query", lookup.QUERY, 10.0, "query"),
        *(
            slider
            for word, key in lookup.KEYS.items()
            for slider in _components(word, key, 1.0, f"key of “{word}”")
        ),
        Choice("values", "values", ("the keys", "one-hot"), "the keys"),
    ],
)

SELECT = Explorer(
    "select",
    "What does a query over (animal, vehicle, verb) select?",
    lookup_views.select,
    [
        Slider(name, name, -20.0, 20.0, 0.5, x)
        for name, x in zip(("animal", "vehicle", "verb"), (10.0, 0.0, 0.0), strict=True)
    ],
)

# ------------------------------------------------------------------------------------- all

ALL = {explorer.name: explorer for explorer in (ONE_QUERY, SELECT)}
