"""What a page of the website calls: the explorers, asked by name with values written as JSON."""

import json

from worked_examples.explorers import ALL

__all__ = ["answer", "rehearse"]


def answer(name, values):
    """Return what a page shows for values that its script has read from the controls.

    Parameters
    ----------
    name : str
        An explorer's name.
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
    return ALL[name].shown(json.loads(values))


def rehearse():
    """Let every explorer answer with each control at its ends, so that all it needs is imported."""
    for explorer in ALL.values():
        for control in explorer.controls:
            for value in control.ends():
                explorer.result(**{control.name: value})
