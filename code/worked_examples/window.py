"""Fewer pairs: attention in which a position sees itself and the few before it."""

import numpy as np

from worked_examples.attention import _as_floats, _length, _require_matching, softmax

__all__ = ["window_attention", "window_mask", "window_pairs", "window_reach"]


def window_mask(L, w):
    """Let each position see itself and the w - 1 positions before it.

    Parameters
    ----------
    L, w : int
        Length, and width of the window in positions; at least 1.

    Returns
    -------
    (L, L) array of bool

    Raises
    ------
    ValueError
        If L or w is not a whole number of at least 1.

    Examples
    --------
    >>> print(window_mask(4, 2).astype(int))
    [[1 0 0 0]
     [1 1 0 0]
     [0 1 1 0]
     [0 0 1 1]]
    """
    L, w = _length("L", L), _length("w", w)
    return np.tri(L, L, dtype=bool) & ~np.tri(L, L, k=-w, dtype=bool)


def window_pairs(L, w):
    """Count the pairs of a query and a key that a window leaves, without making the mask.

    Examples
    --------
    >>> window_pairs(4, 2), int(window_mask(4, 2).sum())
    (7, 7)
    """
    L, w = _length("L", L), _length("w", w)
    w = min(w, L)
    return w * L - w * (w - 1) // 2


def window_reach(w, layers):
    """Give how many positions back a position can hear, through so many layers of windows.

    Examples
    --------
    >>> window_reach(3, 2)
    4
    """
    return _length("layers", layers) * (_length("w", w) - 1)


def window_attention(Q, K, V, w):
    """Compute causal attention within a window, with w scores a query and no (L, L) matrix.

    Parameters
    ----------
    Q, K : (..., L, d_k) arrays
    V : (..., L, d_v) array
    w : int
        Width of the window.

    Returns
    -------
    (..., L, d_v) array
        Equal to attention with `window_mask`, for finite inputs.

    Raises
    ------
    ValueError
        If shapes do not fit, queries and keys differ in number, or w is not at least 1.

    References
    ----------
    Beltagy, Peters and Cohan (2020).

    Examples
    --------
    >>> window_attention(np.zeros((3, 1)), np.zeros((3, 1)), [[1.0], [3.0], [5.0]], 2)
    array([[1.],
           [2.],
           [4.]])
    """
    (Q, K, V), dtype = _as_floats(Q=Q, K=K, V=V)
    _require_matching(Q, K, V)
    L, d_k = Q.shape[-2:]
    if K.shape[-2] != L:
        raise ValueError(f"a window needs as many keys as queries; got Q {Q.shape}, K {K.shape}")
    w = min(_length("w", w), L)
    K, V = (_windows(X, w) for X in (K, V))  # (..., L, d, w): the last w positions of each
    scores = np.einsum("...ld,...ldw->...lw", Q, K) * (1 / d_k**0.5)
    exists = np.arange(w) >= w - 1 - np.arange(L)[:, None]  # before the start there is nothing
    weights = softmax(np.where(exists, scores, -np.inf))
    return np.einsum("...lw,...ldw->...ld", weights, V).astype(dtype, copy=False)


def _windows(X, w):
    front = [(0, 0)] * (X.ndim - 2) + [(w - 1, 0), (0, 0)]
    return np.lib.stride_tricks.sliding_window_view(np.pad(X, front), w, axis=-2)
