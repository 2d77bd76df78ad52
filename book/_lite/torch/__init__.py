"""What stands in for torch in the browser, which cannot have it.

Importing it, or a part of it, succeeds, so that a chapter's modules load and what they do in numpy
works. The first use of a part is a `NeedsTorch`. In a notebook the cell then says so in one line
and shows what it gave when the book was built.
"""

import sys

from torch import _parts
from torch._parts import NeedsTorch

__all__ = ["NeedsTorch"]


def __getattr__(name):
    if name == "__version__":
        raise NeedsTorch("torch.__version__")
    if name.startswith("_"):
        raise AttributeError(name)
    return _parts.Part(f"torch.{name}")


_parts.offer_submodules()

if "IPython" in sys.modules:
    from torch import _notebook

    _notebook.watch(sys.modules["IPython"].get_ipython())
