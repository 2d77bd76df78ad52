"""What the book's small training runs share, with torch."""

from contextlib import contextmanager

import torch

__all__ = ["one_thread"]


@contextmanager
def one_thread():
    """Work on one thread, as matrices this small gain nothing from two; then as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
