"""The rest of a transformer's block: feed-forward, residual path, layer normalisation.

Attention moves information between positions. Everything here but `transformer_block` itself
works at each position alone. Symbols beside those of `attention`:

=======  ==============================================================================
d        width of the model: the numbers that describe one position
H        hidden width of the feed-forward part, often 4 d
X        what the positions hold, (..., L, d)
=======  ==============================================================================
"""

import math
from typing import NamedTuple

import numpy as np

from worked_examples.attention import (
    AttentionParameters,
    _array,
    _as_floats,
    _require_vector,
    multi_head_attention,
    product,
)

__all__ = [
    "ORDERS",
    "ROW",
    "BlockParameters",
    "FeedForwardParameters",
    "NormParameters",
    "feed_forward",
    "gelu",
    "initial_parameters",
    "layer_norm",
    "parameters_from_torch",
    "relu",
    "residual",
    "transformer_block",
]

# One position of four numbers for the hand: mean 4, deviations 5, -3, -1, -1, variance 9.
ROW = (9.0, 1.0, 3.0, 3.0)

# What a block does, in order. "branch" sets a copy aside, "add" adds it back: between the two
# lies one residual path. The figure draws these lists, and a test walks them step by step.
ORDERS = {
    "post": ("branch", "attention", "add", "norm 1", "branch", "feed-forward", "add", "norm 2"),
    "pre": ("branch", "norm 1", "attention", "add", "branch", "norm 2", "feed-forward", "add"),
}


class FeedForwardParameters(NamedTuple):
    """What a feed-forward part learns; the biases may be left out.

    Attributes
    ----------
    W_1 : (d, H) array
    W_2 : (H, d) array
    b_1 : (H,) array, or 0
    b_2 : (d,) array, or 0
    """

    W_1: np.ndarray
    W_2: np.ndarray
    b_1: np.ndarray | float = 0
    b_2: np.ndarray | float = 0


class NormParameters(NamedTuple):
    """What a layer normalisation learns: one factor and one summand a feature.

    Attributes
    ----------
    scale : (d,) array, or a number
        Training starts from 1.
    shift : (d,) array, or a number
        Training starts from 0.
    """

    scale: np.ndarray | float = 1
    shift: np.ndarray | float = 0


class BlockParameters(NamedTuple):
    """What one block learns.

    Attributes
    ----------
    attention : AttentionParameters
    feed_forward : FeedForwardParameters
    norm_1 : NormParameters
        Of the attention's residual path.
    norm_2 : NormParameters
        Of the feed-forward's.
    """

    attention: AttentionParameters
    feed_forward: FeedForwardParameters
    norm_1: NormParameters = NormParameters()
    norm_2: NormParameters = NormParameters()


# -------------------------------------------------------------------------------- one position


def relu(x):
    """Keep what is positive, and put 0 for the rest.

    Examples
    --------
    >>> print(relu(np.array([-2.0, 0.0, 3.0])))
    [0. 0. 3.]
    """
    return np.maximum(x, 0)


def gelu(x):
    """Multiply each number by the share of a standard normal distribution that lies below it.

    ``x Phi(x) = x (1 + erf(x / sqrt 2)) / 2``, to the last digits of the dtype: numpy has no
    error function, so it is expanded here around the nearest of a thousand points. Not the tanh
    approximation of the same paper.

    Parameters
    ----------
    x : array
        float32 stays float32, integers become float64.

    Returns
    -------
    array

    References
    ----------
    Hendrycks and Gimpel (2016), section 2.

    Examples
    --------
    >>> print(gelu(np.array([-1.0, 0.0, 1.0])).round(4))
    [-0.1587  0.      0.8413]
    """
    (x,), dtype = _as_floats(x=x)
    with np.errstate(invalid="ignore"):
        return (x * (0.5 + 0.5 * _erf(x * math.sqrt(0.5)))).astype(dtype, copy=False)


def _expansions():
    """Give erf at points 1/128 apart, and its Taylor coefficients there, one row each.

    The first derivative is ``2 / sqrt(pi) exp(-x^2)``; the next ones are that, times polynomials.
    """
    x = np.arange(-_ERF_REACH * _ERF_POINTS, _ERF_REACH * _ERF_POINTS + 1) / _ERF_POINTS
    slope = 2 / math.sqrt(math.pi) * np.exp(-x * x)
    polynomials = (1, -x, (2 * x**2 - 1) / 3, (3 * x - 2 * x**3) / 6,
                   (4 * x**4 - 12 * x**2 + 3) / 30)  # fmt: skip
    return np.array([[math.erf(point) for point in x], *(slope * part for part in polynomials)])


_ERF_POINTS, _ERF_REACH = 128, 6  # points a unit; beyond 6, erf is 1 to all digits of a float64
_ERF = _expansions()
_ERF_TERMS = {4: 4, 8: 6}  # enough, by the bytes of an entry: a step is at most 1/256


def _erf(x):
    """Sum the expansion around the point nearest to each entry; NaN stays NaN."""
    x = np.clip(x, -_ERF_REACH, _ERF_REACH)
    nearest = np.rint(np.nan_to_num(x) * _ERF_POINTS)
    step = x - nearest / _ERF_POINTS
    place = nearest.astype(np.intp) + _ERF_REACH * _ERF_POINTS
    terms = [row.astype(x.dtype) for row in _ERF[: _ERF_TERMS.get(x.itemsize, len(_ERF))]]
    total = terms.pop().take(place)
    while terms:
        total = total * step + terms.pop().take(place)
    return total


ACTIVATIONS = {"relu": relu, "gelu": gelu}


def feed_forward(X, parameters, *, activation="relu"):
    """Widen each position, bend, and narrow it again.

    ``activation(X W_1 + b_1) W_2 + b_2``, equation 2 of Vaswani et al. (2017). Rows do not mix:
    each position gets the same treatment and sees itself alone.

    Parameters
    ----------
    X : (..., d) array
        float32 stays float32, float16 is computed in float32, integers become float64.
    parameters : FeedForwardParameters
    activation : {"relu", "gelu"}

    Returns
    -------
    (..., d) array
        A row that holds NaN gives NaN in that row alone.

    Raises
    ------
    ValueError
        If the widths do not fit each other, or the activation is not known.

    Examples
    --------
    >>> parameters = FeedForwardParameters(np.array([[1.0, -1.0]]), np.array([[1.0], [1.0]]))
    >>> print(feed_forward([[-3.0], [2.0]], parameters))  # the absolute value, in two units
    [[3.]
     [2.]]
    """
    function = _known("activation", activation, ACTIVATIONS)
    (X, W_1, W_2, b_1, b_2), dtype = _as_floats(X=X, **parameters._asdict())
    shapes = f"got X {X.shape}, W_1 {W_1.shape}, W_2 {W_2.shape}"
    if X.ndim == 0 or W_1.ndim != 2 or W_2.ndim != 2 or 0 in W_1.shape + W_2.shape:
        raise ValueError(f"a feed-forward part needs rows and two matrices; {shapes}")
    if X.shape[-1] != W_1.shape[0] or W_1.shape[1] != W_2.shape[0]:
        raise ValueError(f"widths do not fit each other; {shapes}")
    _require_vector("b_1", b_1, W_1.shape[1])
    _require_vector("b_2", b_2, W_2.shape[1])
    with np.errstate(invalid="ignore", over="ignore"):
        hidden = function(product(X, W_1) + b_1)  # (..., d) @ (d, H) -> (..., H)
        output = product(hidden, W_2) + b_2  # (..., H) @ (H, d) -> (..., d)
        return output.astype(dtype, copy=False)


def layer_norm(X, scale=1.0, shift=0.0, *, eps=1e-5):
    """Bring each position to mean 0 and variance 1 over its features, then scale and shift.

    ``(x - mean) / sqrt(variance + eps) * scale + shift``, with the variance divided by d.

    Parameters
    ----------
    X : (..., d) array
        Each row along the last axis is treated alone. float32 stays float32, float16 is computed
        in float32, integers become float64.
    scale, shift : (d,) arrays or numbers
    eps : float, default 1e-5
        Keeps a row of equal numbers from being divided by 0.

    Returns
    -------
    (..., d) array
        A row of equal numbers gives the shift; a row that holds NaN or infinity gives NaN.

    Raises
    ------
    ValueError
        If there is no last axis, scale or shift have another width, or eps is not positive.

    References
    ----------
    Ba, Kiros and Hinton (2016), equations 3 and 4; eps came later.

    Examples
    --------
    >>> print(layer_norm(ROW).round(4))
    [ 1.6667 -1.     -0.3333 -0.3333]
    """
    (X, scale, shift), dtype = _as_floats(X=X, scale=scale, shift=shift)
    if X.ndim == 0 or X.shape[-1] == 0:
        raise ValueError(f"X needs a last axis with at least one feature; got shape {X.shape}")
    _require_vector("scale", scale, X.shape[-1])
    _require_vector("shift", shift, X.shape[-1])
    try:
        positive = 0 < eps < math.inf
    except TypeError:
        positive = False
    if not positive:
        raise ValueError(f"eps must be a positive number; got {eps!r}")
    with np.errstate(invalid="ignore", over="ignore"):
        deviations = X - X.mean(axis=-1, keepdims=True)
        variance = (deviations**2).mean(axis=-1, keepdims=True)
        normal = deviations / np.sqrt(variance + float(eps))
        return (normal * scale + shift).astype(dtype, copy=False)


# ---------------------------------------------------------------------------------- the block


def residual(X, change):
    """Add to the positions what a part of the block computed from them.

    Parameters
    ----------
    X, change : (..., L, d) arrays

    Returns
    -------
    (..., L, d) array

    Raises
    ------
    ValueError
        If the shapes differ: adding must not broadcast; or the entries are not real numbers.

    References
    ----------
    He et al. (2016), equation 1.

    Examples
    --------
    >>> print(residual([[1.0, 2.0]], [[0.5, 0.0]]))
    [[1.5 2. ]]
    """
    X, change = _array("X", X), _array("the change", change)
    if X.dtype.kind not in "biuf" or change.dtype.kind not in "biuf":
        raise ValueError(f"rows must hold real numbers; got {X.dtype} and {change.dtype}")
    if X.shape != change.shape:
        raise ValueError(f"a residual path adds equal shapes; got {X.shape} and {change.shape}")
    with np.errstate(invalid="ignore", over="ignore"):
        return X + change


def transformer_block(
    X,
    parameters,
    h,
    *,
    norm="post",
    mask=None,
    causal=False,
    scale=None,
    kept=None,
    activation="relu",
    eps=1e-5,
):
    """Run one block: attention and feed-forward, each on a residual path with a layer norm.

    Post-norm normalises the sum, as in 2017; pre-norm normalises what goes into the part, and
    leaves the path itself alone::

        post:  Y = norm_1(X + attention(X))     output = norm_2(Y + feed_forward(Y))
        pre:   Y = X + attention(norm_1(X))     output = Y + feed_forward(norm_2(Y))

    Parameters
    ----------
    X : (..., L, d) array
    parameters : BlockParameters
    h : int
        Number of heads.
    norm : {"post", "pre"}
    mask, causal, scale, kept
        As in `multi_head_attention`.
    activation : {"relu", "gelu"}
    eps : float, default 1e-5
        As in `layer_norm`.

    Returns
    -------
    output : (..., L, d) array
    weights : (..., h, L, L) array
        The attention's.

    Raises
    ------
    ValueError
        If widths do not fit each other or the number of heads, or an option is not known.

    References
    ----------
    Vaswani et al. (2017), section 3.1, for post-norm; Xiong et al. (2020) for both.

    Examples
    --------
    >>> parameters = initial_parameters(8, 32, np.random.default_rng(0))
    >>> output, weights = transformer_block(np.eye(8)[:5], parameters, 2)
    >>> output.shape, weights.shape
    ((5, 8), (2, 5, 5))
    """
    order = _known("norm", norm, ORDERS)

    def norm_1(X):
        return layer_norm(X, *parameters.norm_1, eps=eps)

    def norm_2(X):
        return layer_norm(X, *parameters.norm_2, eps=eps)

    def attention(X):
        return multi_head_attention(
            X, parameters.attention, h, mask=mask, causal=causal, scale=scale, kept=kept
        )

    def widened(X):
        return feed_forward(X, parameters.feed_forward, activation=activation)

    if order is ORDERS["post"]:
        attended, weights = attention(X)
        Y = norm_1(residual(X, attended))
        return norm_2(residual(Y, widened(Y))), weights
    attended, weights = attention(norm_1(X))
    Y = residual(X, attended)
    return residual(Y, widened(norm_2(Y))), weights


# --------------------------------------------------------------------------------- parameters


def initial_parameters(d, H, rng):
    """Draw a block's parameters as they are before training.

    Every entry of a matrix is normal with variance 2 / (rows + columns) (Glorot and Bengio
    2010); there are no biases, and the norms start from scale 1 and shift 0.

    Parameters
    ----------
    d, H : int
        Width of the model, and the hidden width.
    rng : numpy.random.Generator

    Returns
    -------
    BlockParameters
    """

    def drawn(rows, columns):
        return rng.normal(size=(rows, columns)) * math.sqrt(2 / (rows + columns))

    attention = AttentionParameters(*(drawn(d, d) for _ in range(4)))
    return BlockParameters(attention, FeedForwardParameters(drawn(d, H), drawn(H, d)))


def parameters_from_torch(layer):
    """Copy what a ``torch.nn.TransformerEncoderLayer`` holds.

    torch keeps W^Q, W^K and W^V stacked in one array, and every matrix the other way round:
    (columns, rows), for ``x @ W.T``. Biases that are switched off become 0.

    Parameters
    ----------
    layer : torch.nn.TransformerEncoderLayer

    Returns
    -------
    BlockParameters
    """
    held = layer.self_attn
    stacked, biases = _copy(held.in_proj_weight), _copy(held.in_proj_bias)
    attention = AttentionParameters(
        *(part.T for part in np.split(stacked, 3)),  # (3 d, d) -> three of (d, d)
        _copy(held.out_proj.weight).T,
        *([0.0] * 3 if np.ndim(biases) == 0 else np.split(biases, 3)),
        _copy(held.out_proj.bias),
    )
    widen, narrow = layer.linear1, layer.linear2
    return BlockParameters(
        attention,
        FeedForwardParameters(
            _copy(widen.weight).T, _copy(narrow.weight).T, _copy(widen.bias), _copy(narrow.bias)
        ),
        *(NormParameters(_copy(n.weight), _copy(n.bias)) for n in (layer.norm1, layer.norm2)),
    )


def _copy(tensor):
    return 0.0 if tensor is None else tensor.detach().cpu().numpy().copy()


# ------------------------------------------------------------------------------------ helpers


def _known(name, value, allowed):
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be {' or '.join(map(repr, allowed))}; got {value!r}")
    return allowed[value]
