"""The kernels, views and checks behind the book *Self-Attention, Worked*.

Modules stand in floors, and a module imports only from the floors below its own:

ground
    :mod:`~worked_examples.attention`: softmax, entropy, masks, scaled dot-product
    attention, its gradients and its heads, in numpy alone; `claims`, which ties prose to cells;
    `pinned`, which gets files with a known sum.
shared
    What several topics use: `block`, the rest of a layer; `positions`: what tells it the order;
    `costs`, which counts; `wordpiece`, which cuts text into tokens; `fused`, a block of the
    fast kernel that numba compiles.
first
    One module a topic with the worked numbers of its chapter: `recurrence`, `lookup`, `scaling`,
    `masking`, `heads`, `series`; `blocked`, `fast`, `window`, `linear` and `cache` are
    ways to a long sequence; `weights` gets a trained model's files, and `minilm` runs it.
trained
    Experiments, with torch where something is trained, differentiated or measured: `reader`,
    `retrieval`, `leak`, `small_model`, `depth`, `extrapolation`, `measuring`, `forecaster`; `ring`,
    over several processes; `decoder`, which puts the kernels together, and `sentences`: what a
    published model does with some.
second
    `views` (values to HTML, numpy alone) and `figures` (values to matplotlib).
third
    `explorer` and `explorers` (a view with its controls), `exercises` (checks of a reader's
    function), `command_line`.
"""

__version__ = "0.1.0"
