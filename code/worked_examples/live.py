"""What a page of the website calls: the explorers, asked by name with values written as JSON."""

import json

import numpy as np

from worked_examples import eight_bits, own_sentence
from worked_examples.attention import set_product
from worked_examples.explorers import ALL
from worked_examples.sentences import Model

__all__ = ["answer", "product_without_blas", "rehearse", "take"]

# What the reader types is read by this one, once `take` has given it the model.
OWN = own_sentence.OwnSentence()


def answer(name, values):
    """Return what a page shows for values that its script has read from the controls.

    Parameters
    ----------
    name : str
        An explorer's name, or that of the sentence which the reader types.
    values : str
        JSON: an object with a value for each control.

    Returns
    -------
    str
        HTML: the view's result, or its error.

    Examples
    --------
    >>> answer("select", '{"animal": 99}')
    '<p role="alert">ValueError: animal takes a number from -20.0 to 20.0; got 99</p>'
    """
    values = json.loads(values)
    if name == own_sentence.NAME:
        return OWN.result(**values)
    return ALL[name].shown(values)


def take(file):
    """Take the trained model that the reader has loaded, for the sentences to come.

    Parameters
    ----------
    file : Uint8Array of the page, or bytes
        As `eight_bits.pack` wrote it.

    Returns
    -------
    str
        Nothing to show.

    Raises
    ------
    ValueError
        If it is no such file.
    """
    if hasattr(file, "to_bytes"):  # the page's own kind of array
        file = file.to_bytes()
    OWN.model = Model(*eight_bits.unpack(file))
    set_product(product_without_blas)
    return ""


def product_without_blas(A, B):
    """Multiply matrices where numpy has no BLAS, as in a browser.

    There `numpy.einsum` takes a product with a matrix of parameters in two thirds of the time
    that `numpy.matmul` needs. For stacks of small matrices, as scores are, it is the other way
    round.

    Examples
    --------
    >>> print(product_without_blas(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]])))
    [[11.]]
    """
    return np.einsum("...ij,jk->...ik", A, B) if B.ndim == 2 else np.matmul(A, B)


def rehearse():
    """Let every explorer answer with each control at its ends, so that all it needs is imported."""
    for explorer in ALL.values():
        for control in explorer.controls:
            for value in control.ends():
                explorer.result(**{control.name: value})
    OWN.result("", 0, 0)
