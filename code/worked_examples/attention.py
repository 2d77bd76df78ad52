"""Attention in numpy: softmax, entropy, masks, scaled dot products and their gradients.

Symbols, used by every function here and on every page of the book:

=======  ==============================================================================
L_q      number of queries, one row each
L_k      number of keys, and of values, one row each; in self-attention L_q = L_k = L
d_k      width of a query and of a key
d_v      width of a value
Q        queries, (..., L_q, d_k)
K        keys, (..., L_k, d_k)
V        values, (..., L_k, d_v)
X        what the positions hold, (..., L, d)
h        number of heads, each of width d_k = d / h
S        scores, (..., L_q, L_k): how well query i and key j agree, any real number
A        weights, (..., L_q, L_k): rows are non-negative and sum to 1
...      any leading dimensions, as batch B and heads h: (B, h, L, d_k)
=======  ==============================================================================

In a mask, True means *may look*. Run as a script, this file prints the book's tables::

    python code/worked_examples/attention.py --one
"""

import math
import operator
from typing import NamedTuple

import numpy as np

__all__ = [
    "AttentionParameters",
    "additive_mask",
    "attention_gradients",
    "causal_mask",
    "entropy",
    "key_padding_mask",
    "merge_heads",
    "multi_head_attention",
    "multi_head_attention_by_loop",
    "product",
    "projected_heads",
    "scaled_dot_product_attention",
    "set_product",
    "softmax",
    "softmax_jacobian",
    "split_heads",
]


# ---------------------------------------------------------------------------------- weights


def softmax(scores):
    """Turn scores into weights along the last axis.

    ``exp(s_j) / sum over m of exp(s_m)``, with the largest score of a row subtracted first:
    the result is the same, and nothing overflows.

    Parameters
    ----------
    scores : (..., n) array
        Real numbers; -inf stands for a position that may not be seen.

    Returns
    -------
    (..., n) array
        Weights of the same dtype (integers become float64; float16 is computed in float32).
        A row of nothing but -inf gives zeros: it has nothing to give weight to. A row that
        holds NaN or +inf gives NaN.

    Raises
    ------
    ValueError
        If there is no last axis, or it is empty, or the entries are not real numbers.

    References
    ----------
    Bridle (1990), who named it.

    Examples
    --------
    >>> softmax([0.0, np.log(3.0)])
    array([0.25, 0.75])
    >>> softmax([-np.inf, -np.inf])
    array([0., 0.])
    """
    (scores,), dtype = _as_floats(scores=scores)
    _require_last_axis("scores", scores)
    largest = scores.max(axis=-1, keepdims=True)
    largest = np.where(np.isneginf(largest), 0, largest)  # -inf - -inf would be NaN
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        powers = np.exp(scores - largest)
        total = powers.sum(axis=-1, keepdims=True)
        return (powers / np.where(total == 0, 1, total)).astype(dtype, copy=False)


def entropy(weights):
    """Measure in bits how widely each row of weights is spread.

    ``-sum over j of a_j log2 a_j``, with 0 log 0 = 0: 0 bits where one position has all the
    weight, log2 n bits where n positions share it equally.

    Parameters
    ----------
    weights : (..., n) array
        Rows that are non-negative and sum to 1 (within 0.01, so that printed, rounded weights
        pass), or are all zero, as where there was nothing to see.

    Returns
    -------
    (...) array
        Bits, one number a row; 0 for a row of zeros, NaN for a row that holds NaN.

    Raises
    ------
    ValueError
        If a weight is negative or a row does not sum to 1: entropy is defined for
        distributions only.

    References
    ----------
    Shannon (1948).

    Examples
    --------
    >>> print(entropy([[0.25, 0.25, 0.25, 0.25], [1.0, 0.0, 0.0, 0.0]]))
    [2. 0.]
    """
    (weights,), dtype = _as_floats(weights=weights)
    _require_last_axis("weights", weights)
    if (weights < 0).any():
        raise ValueError(f"weights must not be negative; the least is {np.nanmin(weights):.6g}")
    total = weights.sum(axis=-1)
    if ((np.abs(total - 1) > 0.01) & (total != 0)).any():
        worst = total.flat[np.nanargmax(np.abs(total - 1))]
        raise ValueError(f"each row of weights must sum to 1; one sums to {worst:.6g}")
    bits = weights * np.log2(np.where(weights > 0, weights, 1))
    nan = np.isnan(weights).any(axis=-1)
    return np.where(nan, np.nan, 0 - bits.sum(axis=-1)).astype(dtype, copy=False)[()]


def softmax_jacobian(weights):
    """Give the derivative of a softmax's weights by its scores, at given weights.

    ``d a_i / d s_j = a_i (1[i = j] - a_j)``, that is ``diag(a) - a a^T``.

    Parameters
    ----------
    weights : (..., n) array

    Returns
    -------
    (..., n, n) array

    Raises
    ------
    ValueError
        If there is no last axis, or it is empty, or the entries are not real numbers.

    Examples
    --------
    >>> print(softmax_jacobian([0.5, 0.5]))
    [[ 0.25 -0.25]
     [-0.25  0.25]]
    """
    (weights,), dtype = _as_floats(weights=weights)
    _require_last_axis("weights", weights)
    with np.errstate(invalid="ignore", over="ignore"):
        outer = weights[..., :, None] * weights[..., None, :]  # (..., n, 1) * (..., 1, n)
        diagonal = weights[..., :, None] * np.eye(weights.shape[-1], dtype=weights.dtype)
        return (diagonal - outer).astype(dtype, copy=False)


# --------------------------------------------------------------------------------- products


def product(A, B):
    """Multiply matrices: every product on the way from X to a model's output is taken here.

    Parameters
    ----------
    A : (..., m, n) array
    B : (..., n, p) array

    Returns
    -------
    (..., m, p) array

    Raises
    ------
    ValueError
        If the shapes do not fit, in the words of the function that `set_product` chose.

    Examples
    --------
    >>> print(product(np.array([[1, 2]]), np.array([[3], [4]])))
    [[11]]
    """
    return _take_product(A, B)


_take_product = np.matmul


def set_product(function):
    """Choose how `product` multiplies, for this process, from now on.

    With BLAS, `numpy.matmul` is the fastest. In a browser numpy has none, and another way may
    be: `numpy.einsum`, for one.

    Parameters
    ----------
    function : callable
        Takes (..., m, n) and (..., n, p), and returns (..., m, p).

    Returns
    -------
    callable
        The one that was used before.

    Raises
    ------
    ValueError
        If what came cannot be called.

    Examples
    --------
    >>> before = set_product(lambda A, B: np.einsum("...ij,...jk->...ik", A, B))
    >>> print(product(np.array([[1, 2]]), np.array([[3], [4]])))
    [[11]]
    >>> _ = set_product(before)
    """
    global _take_product
    if not callable(function):
        raise ValueError(f"a product is taken by a function; got {function!r}")
    before, _take_product = _take_product, function
    return before


# ------------------------------------------------------------------------------------ masks


def causal_mask(L_q, L_k=None):
    """Let each query see its own position and those before it.

    The *last* query is aligned with the *last* key, as when the newest tokens are decoded
    against a cache of older keys: query i sees keys ``j <= i + L_k - L_q``. With L_q > L_k
    the first queries see nothing. (torch's ``is_causal=True`` aligns the first query with the
    first key instead; the two agree where L_q = L_k.)

    Parameters
    ----------
    L_q : int
        Number of queries, at least 1.
    L_k : int, optional
        Number of keys, at least 1; by default as many as queries.

    Returns
    -------
    (L_q, L_k) array of bool
        True where query i may look at key j.

    Raises
    ------
    ValueError
        If a length is not a whole number of at least 1.

    Examples
    --------
    >>> print(causal_mask(2, 4).astype(int))
    [[1 1 1 0]
     [1 1 1 1]]
    """
    L_q = _length("L_q", L_q)
    L_k = L_q if L_k is None else _length("L_k", L_k)
    return np.tri(L_q, L_k, k=L_k - L_q, dtype=bool)


def key_padding_mask(lengths, L):
    """Let every query see the real positions of a padded sequence, and no padding.

    The mask does not depend on the query, so it is one vector a sequence. Give it an axis for
    the queries before use: ``mask[:, None, :]`` for scores (B, L_q, L), and
    ``mask[:, None, None, :]`` for scores (B, h, L_q, L).

    Parameters
    ----------
    lengths : (...) array of int
        Number of real positions of each sequence, 0 to L; the padding comes after them.
    L : int
        Length of the padded sequences.

    Returns
    -------
    (..., L) array of bool
        True where there is a real position.

    Raises
    ------
    ValueError
        If a length is not a whole number, is negative, or is larger than L.

    Examples
    --------
    >>> print(key_padding_mask([3, 1], 4).astype(int))
    [[1 1 1 0]
     [1 0 0 0]]
    """
    L = _length("L", L)
    lengths = _array("lengths", lengths)
    if lengths.dtype.kind not in "iu":
        raise ValueError(f"lengths must be whole numbers; got {lengths!r}")
    if ((lengths < 0) | (lengths > L)).any():
        raise ValueError(f"lengths must lie between 0 and L = {L}; got {lengths.tolist()}")
    return np.arange(L) < lengths[..., None]


def additive_mask(mask):
    """Write a boolean mask as numbers to add to scores: 0 to keep, -inf to hide.

    Parameters
    ----------
    mask : array of bool
        True where a query may look.

    Returns
    -------
    array of float64, of the same shape

    Raises
    ------
    ValueError
        If the mask is not boolean.

    Examples
    --------
    >>> print(additive_mask([True, False]))
    [  0. -inf]
    """
    return np.where(_boolean(mask), 0.0, -np.inf)


# -------------------------------------------------------------------------------- attention


def scaled_dot_product_attention(Q, K, V, *, mask=None, causal=False, scale=None, bias=None):
    """Average values by how well their keys match each query.

    ``softmax(Q K^T / sqrt(d_k)) V``, equation 1 of Vaswani et al. (2017).

    Parameters
    ----------
    Q : (..., L_q, d_k) array
    K : (..., L_k, d_k) array
    V : (..., L_k, d_v) array
        Leading dimensions broadcast. float32 stays float32, float16 is computed in float32
        and returned as float16, integers become float64.
    mask : array of bool, optional
        Broadcastable to the scores, (..., L_q, L_k); True means *may look*.
    causal : bool, default False
        Also hide the future, as `causal_mask` does: the last query sees the last key.
    scale : float, optional
        What the scores are multiplied by; by default 1 / sqrt(d_k).
    bias : array of float, optional
        Broadcastable to the scores, and added to them after the scaling and before the masks,
        as a position's distance may be. It does not change the dtype of the result. To hide a
        position, pass a mask: -inf is not taken here.

    Returns
    -------
    output : (..., L_q, d_v) array
    weights : (..., L_q, L_k) array
        A query that may see nothing gets zero weights and a zero output. Whatever stands at a
        position that no mask lets through, NaN included, changes nothing.

    Raises
    ------
    ValueError
        If shapes do not fit, a length or width is 0, the mask is not boolean, the bias
        is boolean or holds an infinity, or the entries are not real numbers; the message shows
        what came.

    Examples
    --------
    >>> identity = np.eye(3)
    >>> output, weights = scaled_dot_product_attention(identity, identity, identity, causal=True)
    >>> print(weights.round(2))
    [[1.   0.   0.  ]
     [0.36 0.64 0.  ]
     [0.26 0.26 0.47]]
    """
    (Q, K, V), dtype = _as_floats(Q=Q, K=K, V=V)
    _require_matching(Q, K, V)
    d_k = Q.shape[-1]
    with np.errstate(invalid="ignore", over="ignore"):  # hidden positions may hold anything
        # (..., L_q, d_k) @ (..., d_k, L_k) -> (..., L_q, L_k)
        scores = product(Q, np.swapaxes(K, -1, -2)) * _scale(scale, d_k)
        if bias is not None:
            scores = scores + _bias(bias, scores.shape, scores.dtype)
        seen = _seen(mask, causal, scores.shape)
        if seen is None:
            weights = softmax(scores)
            output = product(weights, V)  # (..., L_q, L_k) @ (..., L_k, d_v) -> (..., L_q, d_v)
        else:
            weights = softmax(np.where(seen, scores, -np.inf))
            output = _average_of_seen(weights, V, seen)
    return output.astype(dtype, copy=False), weights.astype(dtype, copy=False)


def attention_gradients(
    Q, K, V, output_gradient, *, mask=None, causal=False, scale=None, bias=None
):
    """Carry the gradient of a loss from attention's output back to Q, K and V.

    With G the gradient by the output: by V it is ``A^T G``; by the weights ``G V^T``; by the
    scores, through the softmax, ``A * (G V^T - rowsum(A * G V^T))``; by Q and K that times the
    other one and the scale.

    Parameters
    ----------
    Q, K, V, mask, causal, scale, bias
        As for `scaled_dot_product_attention`, with equal leading dimensions and finite entries
        (of the bias, where a query may look).
    output_gradient : (..., L_q, d_v) array
        Derivative of the loss by each entry of the output.

    Returns
    -------
    Q_gradient, K_gradient, V_gradient : arrays
        Of the shapes of Q, K and V.

    Raises
    ------
    ValueError
        If shapes do not fit or an entry is not finite.

    Examples
    --------
    >>> Q = K = V = np.eye(2)
    >>> print(attention_gradients(Q, K, V, np.ones((2, 2)))[2].round(3))
    [[1. 1.]
     [1. 1.]]
    """
    (Q, K, V, G), dtype = _as_floats(Q=Q, K=K, V=V, output_gradient=output_gradient)
    output, A = scaled_dot_product_attention(
        Q, K, V, mask=mask, causal=causal, scale=scale, bias=bias
    )
    if G.shape != output.shape or not Q.shape[:-2] == K.shape[:-2] == V.shape[:-2]:
        raise ValueError(
            "gradients need equal leading dimensions and one number an output; got "
            f"Q {Q.shape}, K {K.shape}, V {V.shape}, output_gradient {G.shape}"
        )
    for name, array in (("Q", Q), ("K", K), ("V", V), ("output_gradient", G)):
        if not np.isfinite(array).all():
            raise ValueError(f"gradients need finite numbers; {name} holds NaN or infinity")
    if bias is not None and np.isnan(A).any():
        raise ValueError("gradients need finite numbers; bias holds NaN where a query may look")
    with np.errstate(invalid="ignore", over="ignore"):
        A_gradient = G @ np.swapaxes(V, -1, -2)  # (..., L_q, d_v) @ (..., d_v, L_k)
        S_gradient = A * (A_gradient - (A * A_gradient).sum(axis=-1, keepdims=True))
        S_gradient = S_gradient * _scale(scale, Q.shape[-1])
        by_Q, by_K = S_gradient @ K, np.swapaxes(S_gradient, -1, -2) @ Q
        by_V = np.swapaxes(A, -1, -2) @ G
        return tuple(gradient.astype(dtype, copy=False) for gradient in (by_Q, by_K, by_V))


# ------------------------------------------------------------------------------------ heads


class AttentionParameters(NamedTuple):
    """What an attention layer learns; the biases may be left out.

    Attributes
    ----------
    W_Q : (d, h d_k) array
    W_K : (d_context, h d_k) array
    W_V : (d_context, h d_v) array
    W_O : (h d_v, d) array
        Columns of W_Q, W_K and W_V, and rows of W_O, belong to head 0 first, then to head 1 ...
    b_Q : (h d_k,) array, or 0
    b_K : (h d_k,) array, or 0
    b_V : (h d_v,) array, or 0
    b_O : (d,) array, or 0
    """

    W_Q: np.ndarray
    W_K: np.ndarray
    W_V: np.ndarray
    W_O: np.ndarray
    b_Q: np.ndarray | float = 0
    b_K: np.ndarray | float = 0
    b_V: np.ndarray | float = 0
    b_O: np.ndarray | float = 0


def split_heads(X, h):
    """Cut the columns into h equal parts and give each head its own leading dimension.

    Parameters
    ----------
    X : (..., L, d) array
    h : int
        Number of heads; d must be a multiple of it.

    Returns
    -------
    (..., h, L, d / h) array
        Head i holds columns i d/h to (i+1) d/h. A view where numpy can give one: nothing is
        computed.

    Raises
    ------
    ValueError
        If h is not a whole number of at least 1, or does not divide d.

    Examples
    --------
    >>> print(split_heads(np.array([[1, 2, 3, 4]]), 2))
    [[[1 2]]
    <BLANKLINE>
     [[3 4]]]
    """
    X, h = _array("X", X), _length("the number of heads", h)
    if X.ndim < 2:
        raise ValueError(f"heads need rows and columns to split; got shape {X.shape}")
    *batch, L, d = X.shape
    if d % h:
        raise ValueError(f"the width must be a multiple of the number of heads; got {d} and {h}")
    return np.swapaxes(
        X.reshape(*batch, L, h, d // h), -2, -3
    )  # (..., L, h, d/h) -> (..., h, L, d/h)


def merge_heads(X):
    """Undo `split_heads`: put the heads' columns side by side again.

    Parameters
    ----------
    X : (..., h, L, d_v) array

    Returns
    -------
    (..., L, h d_v) array

    Raises
    ------
    ValueError
        If there is no head's dimension.

    Examples
    --------
    >>> print(merge_heads([[[1, 2]], [[3, 4]]]))
    [[1 2 3 4]]
    """
    X = _array("X", X)
    if X.ndim < 3:
        raise ValueError(f"merging needs heads, rows and columns; got shape {X.shape}")
    *batch, h, L, d_v = X.shape
    return np.swapaxes(X, -2, -3).reshape(*batch, L, h * d_v)  # (..., L, h, d_v) -> (..., L, h d_v)


def projected_heads(X, parameters, h, *, context=None):
    """Give each head its queries, keys and values.

    Parameters
    ----------
    X, parameters, h, context
        As in `multi_head_attention`.

    Returns
    -------
    Q : (..., h, L_q, d_k) array
    K : (..., h, L_k, d_k) array
    V : (..., h, L_k, d_v) array

    Raises
    ------
    ValueError
        If the widths do not fit each other or the number of heads; the message shows them.

    Examples
    --------
    >>> identity = np.eye(4)
    >>> Q, K, V = projected_heads(identity, AttentionParameters(*[identity] * 4), 2)
    >>> Q.shape
    (2, 4, 2)
    """
    *projections, _, _, dtype = _projected(X, parameters, context)
    return tuple(split_heads(part.astype(dtype, copy=False), h) for part in projections)


def multi_head_attention(
    X,
    parameters,
    h,
    *,
    context=None,
    mask=None,
    causal=False,
    scale=None,
    bias=None,
    kept=None,
):
    """Let h heads attend side by side, and mix what they return.

    ``concat(head_0 ... head_h-1) W^O`` with ``head_i = Attention(X W_i^Q, C W_i^K, C W_i^V)``
    (Vaswani et al. 2017, section 3.2.2), all heads in one product.

    Parameters
    ----------
    X : (..., L_q, d) array
        What asks.
    parameters : AttentionParameters
    h : int
        Number of heads.
    context : (..., L_k, d_context) array, optional
        What is asked, in cross-attention; by default X itself, which is self-attention.
    mask, causal, scale, bias
        As in `scaled_dot_product_attention`, for scores of shape (..., h, L_q, L_k).
    kept : (h,) array of bool, optional
        False for a head that is switched off: what it returns is replaced by 0 before W_O
        mixes the heads. Its weights are returned as if it were there.

    Returns
    -------
    output : (..., L_q, d) array
    weights : (..., h, L_q, L_k) array

    Raises
    ------
    ValueError
        If the widths do not fit each other or the number of heads, or kept does not hold one
        truth value a head; the message shows them.

    References
    ----------
    Michel et al. (2019), section 2.3, for heads that are switched off.

    Examples
    --------
    >>> identity = np.eye(4)
    >>> output, weights = multi_head_attention(identity, AttentionParameters(*[identity] * 4), 2)
    >>> output.shape, weights.shape
    ((4, 4), (2, 4, 4))
    """
    Q, K, V, W_O, b_O, dtype = _projected(X, parameters, context)
    Q, K, V = split_heads(Q, h), split_heads(K, h), split_heads(V, h)
    heads, weights = scaled_dot_product_attention(
        Q, K, V, mask=mask, causal=causal, scale=scale, bias=bias
    )
    if kept is not None:
        heads = np.where(_kept(kept, h)[:, None, None], heads, heads.dtype.type(0))
    return _mixed(merge_heads(heads), W_O, b_O, dtype), weights.astype(dtype, copy=False)


def multi_head_attention_by_loop(
    X, parameters, h, *, context=None, mask=None, causal=False, scale=None, bias=None
):
    """Compute `multi_head_attention` one head at a time, as its formula is written.

    Parameters, results and errors are the same; all heads are kept. A mask or a bias that
    differs from head to head is taken apart: head i uses its own.

    Raises
    ------
    ValueError
        As `multi_head_attention`.

    Examples
    --------
    >>> identity = np.eye(4)
    >>> parameters = AttentionParameters(*[identity] * 4)
    >>> one = multi_head_attention(identity, parameters, 2, causal=True)[0]
    >>> two = multi_head_attention_by_loop(identity, parameters, 2, causal=True)[0]
    >>> bool(np.allclose(one, two))
    True
    """
    Q, K, V, W_O, b_O, dtype = _projected(X, parameters, context)
    heads, weights = [], []
    for i in range(_length("the number of heads", h)):
        parts = [split_heads(matrix, h)[..., i, :, :] for matrix in (Q, K, V)]
        own = {
            name: None if array is None else _of_head(f"a {name}", array, h, i)
            for name, array in (("mask", mask), ("bias", bias))
        }
        output, A = scaled_dot_product_attention(*parts, causal=causal, scale=scale, **own)
        heads.append(output)
        weights.append(A)
    output = _mixed(np.concatenate(heads, axis=-1), W_O, b_O, dtype)
    return output, np.stack(weights, axis=-3).astype(dtype, copy=False)


# ---------------------------------------------------------------------------------- helpers


def _projected(X, parameters, context):
    """Make Q, K and V from the rows, and check that the widths fit before matmul complains."""
    if not isinstance(parameters, AttentionParameters):
        raise ValueError(f"parameters must be AttentionParameters; got {type(parameters).__name__}")
    names = ["X", "context", *parameters._fields]
    arrays = [X, X if context is None else context, *parameters]
    floats, dtype = _as_floats(**dict(zip(names, arrays, strict=True)))
    X, context, W_Q, W_K, W_V, W_O, b_Q, b_K, b_V, b_O = floats
    shapes = ", ".join(f"{n} {a.shape}" for n, a in zip(names[:6], floats[:6], strict=True))
    if min(X.ndim, context.ndim) < 2 or any(W.ndim != 2 for W in (W_Q, W_K, W_V, W_O)):
        raise ValueError(f"rows of X and matrices of two axes are needed; got {shapes}")
    fits = (
        X.shape[-1] == W_Q.shape[0]
        and context.shape[-1] == W_K.shape[0] == W_V.shape[0]
        and W_Q.shape[1] == W_K.shape[1]
        and W_V.shape[1] == W_O.shape[0]
    )
    if not fits:
        raise ValueError(f"widths do not fit each other; got {shapes}")
    for name, b, W in zip(names[6:], (b_Q, b_K, b_V, b_O), (W_Q, W_K, W_V, W_O), strict=True):
        _require_vector(name, b, W.shape[1])
    with np.errstate(invalid="ignore", over="ignore"):  # hidden positions may hold anything
        Q, K, V = product(X, W_Q) + b_Q, product(context, W_K) + b_K, product(context, W_V) + b_V
    return Q, K, V, W_O, b_O, dtype


def _mixed(heads, W_O, b_O, dtype):
    """Mix heads that stand side by side: (..., L_q, h d_v) @ (h d_v, d) -> (..., L_q, d)."""
    with np.errstate(invalid="ignore", over="ignore"):
        return (product(heads, W_O) + b_O).astype(dtype, copy=False)


def _array(name, value):
    """Give the value as an array; numpy does not say which one has rows of several lengths."""
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must have rows of one length; got {str(value)[:60]}") from None


def _as_floats(**named):
    """Return the arrays as one float dtype that is safe to compute in, and the dtype to return."""
    arrays = {name: _array(name, value) for name, value in named.items()}
    dtypes = {array.dtype for array in arrays.values()}
    if len(dtypes) == 1 and (dtype := dtypes.pop()) in (np.float32, np.float64):
        return list(arrays.values()), dtype
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise ValueError(f"{name} must hold real numbers; got dtype {array.dtype}")
    # A plain number, as a bias of 0, has no width of its own: it follows the arrays.
    own = [a for name, a in arrays.items() if not isinstance(named[name], (int, float))]
    floats = [a.dtype if a.dtype.kind == "f" else np.dtype(float) for a in own]
    dtype = np.result_type(*floats or [float])
    compute = np.result_type(dtype, np.float32)  # float16 would overflow past 65504
    return [array.astype(compute, copy=False) for array in arrays.values()], dtype


def _require_last_axis(name, array):
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError(f"{name} need a last axis with at least one entry; got {array.shape}")


def _require_vector(name, array, width):
    if array.shape not in ((), (width,)):
        raise ValueError(
            f"{name} must be one number, or one a feature: ({width},); got {array.shape}"
        )


def _require_matching(Q, K, V):
    """Check everything about three shapes that matmul would report in other words or not at all."""

    def wrong(what):
        return ValueError(f"{what}; got Q {Q.shape}, K {K.shape}, V {V.shape}")

    if min(Q.ndim, K.ndim, V.ndim) < 2:
        raise wrong("Q, K and V need a row a position, so two axes at least")
    if Q.shape[-1] != K.shape[-1]:
        raise wrong("queries and keys must have one width d_k")
    if K.shape[-2] != V.shape[-2]:
        raise wrong("each key needs one value, so K and V one length L_k")
    if 0 in Q.shape[-2:] + K.shape[-2:] + V.shape[-2:]:
        raise wrong("lengths and widths must be at least 1")
    try:
        _broadcast(Q.shape[:-2], K.shape[:-2], V.shape[:-2])
    except ValueError:
        raise wrong("leading dimensions do not broadcast") from None


def _broadcast(first, *others):
    """Give the shape of several together, as `numpy.broadcast_shapes`, which takes its time."""
    return np.broadcast_shapes(first, *others) if any(o != first for o in others) else first


def _length(name, value, least=1):
    try:
        length = operator.index(value)
    except TypeError:
        length = least - 1
    if length < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}")
    return length


def _finite(name, value):
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number; got {value!r}")
    return number


def _scale(scale, d_k):
    """Give the factor as a Python float: a numpy float64 would turn float32 scores to float64."""
    return 1 / math.sqrt(d_k) if scale is None else _finite("scale", scale)


def _kept(kept, h):
    kept = _array("kept", kept)
    if kept.dtype != bool or kept.shape != (h,):
        raise ValueError(
            f"kept must hold True or False for each of {h} heads; got {kept.dtype} {kept.shape}"
        )
    return kept


def _boolean(mask):
    mask = _array("a mask", mask)
    if mask.dtype != bool:
        raise ValueError(
            f"a mask must be boolean, True where a query may look; got dtype {mask.dtype} "
            "(from an additive mask of 0 and -inf, pass mask == 0)"
        )
    return mask


def _seen(mask, causal, shape):
    """Combine the masks into one that broadcasts to scores of this shape, or None."""
    seen = causal_mask(*shape[-2:]) if _whether("causal", causal) else None
    if mask is None:
        return seen
    mask = _boolean(mask)
    try:
        fits = np.broadcast_shapes(mask.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"a mask must broadcast to the scores {shape}; got {mask.shape}")
    return mask if seen is None else mask & seen


def _whether(name, value):
    """Check for True or False: an array, or a word such as "no", would count as one of them."""
    if not isinstance(value, bool | np.bool_):
        said = f"{type(value).__name__} {value!r}" if np.ndim(value) == 0 else "an array"
        raise ValueError(f"{name} must be True or False; got {said} (a mask goes into mask)")
    return value


def _bias(bias, shape, dtype):
    """Give the bias in the dtype of the scores, checked to broadcast to their shape."""
    bias = _array("a bias", bias)
    if bias.dtype.kind not in "iuf":
        raise ValueError(
            f"a bias must hold real numbers to add to the scores; got dtype {bias.dtype} "
            "(what is boolean is a mask: pass it as mask)"
        )
    bias = bias.astype(dtype, copy=False)
    if np.isinf(bias).any():
        raise ValueError(
            f"a bias must be finite in {dtype}; it holds infinities (to hide a position, pass a "
            "boolean mask)"
        )
    try:
        fits = np.broadcast_shapes(bias.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"a bias must broadcast to the scores {shape}; got {bias.shape}")
    return bias


def _of_head(name, array, h, i):
    """Take head i's part of a mask or a bias for scores (..., h, L_q, L_k)."""
    array = _array(name, array)
    if array.ndim < 3:
        return array  # the same for every head
    if array.shape[-3] not in (1, h):
        raise ValueError(f"{name} must broadcast to {h} heads; got shape {array.shape}")
    return array[..., i if array.shape[-3] > 1 else 0, :, :]


def _average_of_seen(weights, V, seen):
    """Average the values so that a hidden one cannot spoil the result: 0 * NaN would be NaN."""
    finite = np.isfinite(V)
    if finite.all():
        return product(weights, V)
    output = product(weights, np.where(finite, V, 0))
    seen = np.broadcast_to(seen, weights.shape).astype(weights.dtype)

    def sees(kind):
        return seen @ kind.astype(weights.dtype) > 0

    nan, up, down = sees(np.isnan(V)), sees(np.isposinf(V)), sees(np.isneginf(V))
    output = np.where(up, np.inf, np.where(down, -np.inf, output))
    return np.where(nan | (up & down), np.nan, output)


if __name__ == "__main__":
    # Only the door stands here: the command line uses the modules above this one, which a
    # script started by its path does not find by itself.
    import os
    import sys

    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    from worked_examples.command_line import main

    sys.exit(main())
