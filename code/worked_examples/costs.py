"""Counting what a transformer holds: its parameters, part by part.

``|V|`` is written `vocabulary`: how many tokens there are. D is the width of the model, h the
number of heads, H the hidden width of the feed-forward part. No count here depends on the length
L of a sequence.
"""

import operator

__all__ = [
    "SIZES",
    "attention_parameters",
    "bias_parameters",
    "embedding_parameters",
    "feed_forward_parameters",
    "head_width",
    "layer_parameters",
    "layer_table",
    "model_table",
    "norm_parameters",
    "stack_parameters",
]

# The base model of Vaswani et al. (2017), with a vocabulary of 50,000 tokens.
SIZES = {"vocabulary": 50_000, "D": 512, "layers": 6, "h": 8, "H": 2048}


def head_width(D, h):
    """Give the width d_k of one of h heads.

    Parameters
    ----------
    D, h : int

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If a size is not a whole number of at least 1, or h does not divide D.

    Examples
    --------
    >>> head_width(512, 8)
    64
    """
    D, h = _size("D", D), _size("h", h)
    if D % h:
        raise ValueError(f"D must be a multiple of h; got D = {D} and h = {h}")
    return D // h


def embedding_parameters(vocabulary, D):
    """Count one vector of width D a token.

    Examples
    --------
    >>> embedding_parameters(50_000, 512)
    25600000
    """
    return _size("vocabulary", vocabulary) * _size("D", D)


def attention_parameters(D, h):
    """Count the matrices of one attention: W^Q, W^K and W^V of each head, and W^O of all.

    Parameters
    ----------
    D, h : int

    Returns
    -------
    int
        4 D^2, whatever h is: h heads of width D / h are as wide together as one of width D.

    Raises
    ------
    ValueError
        As `head_width`.

    Examples
    --------
    >>> attention_parameters(512, 8), attention_parameters(512, 1)
    (1048576, 1048576)
    """
    D, h, d_k = _size("D", D), _size("h", h), head_width(D, h)
    return h * 3 * D * d_k + h * d_k * D


def feed_forward_parameters(D, H):
    """Count the two matrices of one feed-forward part.

    Examples
    --------
    >>> feed_forward_parameters(512, 2048)
    2097152
    """
    D, H = _size("D", D), _size("H", H)
    return D * H + H * D


def bias_parameters(D, H):
    """Count the biases of one layer: of Q, K, V and W^O, and of the two feed-forward matrices.

    Examples
    --------
    >>> bias_parameters(512, 2048)
    4608
    """
    D, H = _size("D", D), _size("H", H)
    return 4 * D + H + D


def norm_parameters(D, norms=2):
    """Count the scales and shifts of the layer norms of one layer.

    Examples
    --------
    >>> norm_parameters(512)
    2048
    """
    return _size("norms", norms) * 2 * _size("D", D)


def layer_parameters(D, h, H, *, biases_and_norms=True):
    """Count what one layer holds.

    Parameters
    ----------
    D, h, H : int
    biases_and_norms : bool, default True
        Count more than the six matrices.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If a size is not a whole number of at least 1, or h does not divide D.

    Examples
    --------
    >>> layer_parameters(512, 8, 2048)
    3152384
    """
    matrices = attention_parameters(D, h) + feed_forward_parameters(D, H)
    return matrices + (bias_parameters(D, H) + norm_parameters(D) if biases_and_norms else 0)


def stack_parameters(layers, D, h, H, *, biases_and_norms=True):
    """Count what so many layers hold.

    Examples
    --------
    >>> stack_parameters(6, 512, 8, 2048)
    18914304
    >>> stack_parameters(6, 512, 8, 2048, biases_and_norms=False)
    18874368
    """
    one = layer_parameters(D, h, H, biases_and_norms=biases_and_norms)
    return _size("layers", layers) * one


def layer_table(D=512, h=8, H=2048):
    """List what each part of one layer holds, and its share of the layer.

    Parameters
    ----------
    D, h, H : int

    Returns
    -------
    list of dict
        Rows `part`, `parameters`, `share`; the last one is the whole layer.

    Raises
    ------
    ValueError
        If a size is not a whole number of at least 1, or h does not divide D.

    Examples
    --------
    >>> [row["parameters"] for row in layer_table()]
    [1048576, 2097152, 4608, 2048, 3152384]
    """
    parts = {
        "attention": attention_parameters(D, h),
        "feed-forward": feed_forward_parameters(D, H),
        "biases": bias_parameters(D, H),
        "layer norms": norm_parameters(D),
    }
    parts["one layer"] = layer_parameters(D, h, H)
    return [
        {"part": part, "parameters": count, "share": count / parts["one layer"]}
        for part, count in parts.items()
    ]


def model_table(vocabulary=50_000, D=512, layers=6, h=8, H=2048):
    """List what a model holds: its embeddings, its layers, and both.

    Parameters
    ----------
    vocabulary, D, layers, h, H : int

    Returns
    -------
    list of dict
        Rows `part`, `parameters`. The layers come twice, the matrices alone and with biases and
        norms; the model counts the second.

    Raises
    ------
    ValueError
        If a size is not a whole number of at least 1, or h does not divide D.

    Examples
    --------
    >>> [row["parameters"] for row in model_table()]
    [25600000, 18874368, 18914304, 44514304]
    """
    embeddings = embedding_parameters(vocabulary, D)
    whole = stack_parameters(layers, D, h, H)
    parts = {
        "embeddings": embeddings,
        "layers, matrices alone": stack_parameters(layers, D, h, H, biases_and_norms=False),
        "layers, biases and norms too": whole,
        "model": embeddings + whole,
    }
    return [{"part": part, "parameters": count} for part, count in parts.items()]


def _size(name, value):
    try:
        size = operator.index(value)
    except TypeError:
        size = 0
    if size < 1:
        raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}")
    return size
