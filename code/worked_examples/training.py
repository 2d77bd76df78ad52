"""What the book's small training runs share, with torch."""

from contextlib import contextmanager

import torch

__all__ = ["one_thread", "train_by_adam"]


@contextmanager
def one_thread():
    """Work on one thread, as matrices this small gain nothing from two; then as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def train_by_adam(parameters, batches, losses_of, rate, *, to_zero=False):
    """Take one step of Adam (Kingma and Ba, 2015) for each batch.

    Parameters
    ----------
    parameters : dict of torch.Tensor
        Each asks for its gradient; they are changed in place.
    batches : sequence
    losses_of : function
        From a batch to its loss, or to one loss a model. The sum is what goes down, so models that
        share no parameter do not meet.
    rate : float
        The size of a step.
    to_zero : bool, default False
        Let the rate fall to 0 in a straight line.

    Returns
    -------
    tensor
        The losses of each step, as they were before it.
    """
    optimiser = torch.optim.Adam(parameters.values(), lr=rate, fused=True)
    losses = []
    for step, batch in enumerate(batches):
        if to_zero:
            for group in optimiser.param_groups:
                group["lr"] = rate * (1 - step / len(batches))
        loss = losses_of(batch)
        optimiser.zero_grad()
        loss.sum().backward()
        optimiser.step()
        losses.append(loss.detach())
    return torch.stack(losses)
