"""Every explorer of the book, by name: each a view and its controls."""

from worked_examples import costs, lookup, masking, minilm, scaling
from worked_examples.controls import Choice, Slider, Steps, Switch
from worked_examples.explorer import Explorer
from worked_examples.views import block as block_views
from worked_examples.views import costs as costs_views
from worked_examples.views import heads as heads_views
from worked_examples.views import lookup as lookup_views
from worked_examples.views import masking as masking_views
from worked_examples.views import positions as positions_views
from worked_examples.views import recurrence as recurrence_views
from worked_examples.views import scaling as scaling_views
from worked_examples.views import sentences as sentences_views
from worked_examples.views import series as series_views

# ------------------------------------------------------------------------- the bottleneck

BOTTLENECK = Explorer(
    "bottleneck",
    "How much of a sequence fits into one state?",
    recurrence_views.bottleneck,
    [
        Slider("L", "length L", 1, 64, 1, 32),
        Slider("width", "width of the state", 1, 32, 1, 16),
        Slider("radius", "spectral radius", 0.1, 1.2, 0.05, 0.9),
    ],
)

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

# ------------------------------------------------------------------- why sqrt(d_k)

SCALING = Explorer(
    "scaling",
    "How large do scores get, and how decided is the softmax?",
    scaling_views.divisor,
    [
        Steps("d_k", "width d_k", tuple(2**i for i in range(13)), 64),
        Slider("keys", "number of keys", 1, 100, 1, scaling.KEYS),
        Switch("divide", "divide the scores by √d_k", False),
    ],
)

# ------------------------------------------------------------------------- the causal mask

MASKING = Explorer(
    "masking",
    "Four scores behind a mask: where does the weight go?",
    masking_views.orderings,
    [
        *(
            Slider(f"score_{j}", f"key {j}", -10.0, 10.0, 0.1, score, group="score of")
            for j, score in enumerate(masking.SCORES)
        ),
        Choice("order", "ordering", tuple(masking.ORDERINGS), "mask first", group="mask"),
        Slider("padded_start", "padded at start", 0, len(masking.SCORES), 1, 0, group="padding"),
        Slider("padded_end", "padded at end", 0, len(masking.SCORES), 1, 0, group="padding"),
    ],
)

# ----------------------------------------------------------------------------------- heads

HEADS = Explorer(
    "heads",
    "One width, more heads: what moves?",
    heads_views.split,
    [
        Steps("d", "width d", (8, 10, 16, 32, 64, 128, 256, 512, 768, 1024, 2048, 4096), 512),
        Slider("h", "heads h", 1, 32, 1, 8),
        Steps("L", "length L", tuple(2**i for i in range(14)), 1024),
        Choice("kind", "weights kept as", ("float32", "float16"), "float32"),
    ],
)

# ------------------------------------------------------------------------------------- all

ALL = {
    explorer.name: explorer for explorer in (BOTTLENECK, ONE_QUERY, SELECT, SCALING, MASKING, HEADS)
}

# ------------------------------------------------------------------- the rest of the block

BLOCK = Explorer(
    "block",
    "Where are a model's parameters?",
    block_views.parameters,
    [
        Steps(
            "vocabulary", "tokens |V|",
            (256, 1000, 5000, 10_000, 20_000, 30_522, 50_000, 100_000, 250_000),
            costs.SIZES["vocabulary"],
        ),
        Steps(
            "d", "width d", (32, 64, 128, 256, 384, 512, 768, 1024, 2048, 4096), costs.SIZES["d"]
        ),
        Slider("layers", "layers", 1, 96, 1, costs.SIZES["layers"]),
        Slider("h", "heads h", 1, 64, 1, costs.SIZES["h"]),
        Steps(
            "H", "hidden width H",
            (32, 128, 256, 512, 1024, 1536, 2048, 3072, 4096, 8192, 16_384), costs.SIZES["H"],
        ),
    ],
)  # fmt: skip

# -------------------------------------------------------------------------------- position

POSITION = Explorer(
    "position",
    "How alike are two positions, so far apart?",
    positions_views.sinusoids,
    [
        Steps("d", "width d", (2, 4, 8, 16, 32, 64), 32),
        Steps("base", "base", (10, 100, 1_000, 10_000, 100_000, 1_000_000), 10_000),
        Slider("L", "positions L", 1, 64, 1, 32),
        Slider("offset", "offset", 0, 64, 1, 5),
    ],
)

# -------------------------------------------------------------------- what the length costs

COSTS = Explorer(
    "costs",
    "What does a length cost?",
    costs_views.length,
    [
        Steps("L", "length L", tuple(2**i for i in range(21)), 8192),
        Steps("d", "width d", (16, 32, 64, 128, 256, 512, 768, 1024, 2048, 4096, 8192), 512),
        Slider("h", "heads h", 1, 64, 1, costs.SIZES["h"]),
        Slider("layers", "layers", 1, 96, 1, costs.SIZES["layers"]),
        Steps("number_bytes", "bytes a number", (1, 2, 4, 8), 4),
    ],
)

# --------------------------------------------------------------------------- a time series

SERIES = Explorer(
    "series",
    "What does one untrained head see in a series?",
    series_views.reader,
    [
        Slider("period", "period", 1, 14, 1, 7),
        Slider("noise", "noise", 0.0, 2.0, 0.1, 0.0),
        Slider("trend", "trend", 0.0, 5.0, 0.5, 0.0),
        Slider("horizon", "steps ahead", 0, 14, 1, 1),
        Choice("head", "head", series_views.HEADS, series_views.HEADS[0]),
    ],
)

# --------------------------------------------------------------------------- a trained model

TRAINED = Explorer(
    "trained",
    "What does each head of a trained model look at?",
    sentences_views.head,
    [
        Choice("sentence", "sentence", tuple(sentences_views.NAMES), "… because it was loud."),
        Slider("layer", "layer", 0, minilm.LAYERS - 1, 1, 0),
        Slider("head", "head", 0, minilm.HEADS - 1, 1, 2),
        Switch("divide", "divide the scores by √32", True),
    ],
)

# ------------------------------------------------------------------------------------- all

# In the order in which they stand above, which is that of the book.
ALL = {value.name: value for value in list(globals().values()) if isinstance(value, Explorer)}
