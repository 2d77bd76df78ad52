"""The kernels, views and checks behind the book *Self-Attention, Worked*.

Modules stand in floors, and a module imports only from the floors below its own:

ground
    :mod:`~worked_examples.attention`: softmax, entropy, masks, scaled dot-product
    attention, its gradients and its heads, in numpy alone; `positions`: what tells it the order;
    `costs`, which counts; `claims`, which ties prose to cells.
first
    One module a topic with the worked numbers of its chapter: `lookup`, `scaling`, `masking`,
    `block`; `blocked`, `window`, `linear` and `cache` are ways to a long sequence; `leak`,
    `depth` and `extrapolation` train or differentiate with torch, `measuring` measures it.
second
    `views` (values to HTML, numpy alone) and `figures` (values to matplotlib).
third
    `explorer` and `explorers` (a view with its controls), `exercises` (checks of a reader's
    function), `command_line`.
"""

__version__ = "0.1.0"
