"""Linear attention: a score that is a product of features, so that the sum over keys comes first.

With features phi(x) that are positive, the weight of key j for query i is
``phi(q_i) . phi(k_j)``, over the sum of those of row i. No softmax stands between the two
products, so they can be done in the other order. What a query needs to know of the past then fits
into a matrix of fixed size, and attention becomes a recurrence.
"""

from typing import NamedTuple

import numpy as np

from worked_examples.attention import (
    _as_floats,
    _require_matching,
    causal_mask,
    scaled_dot_product_attention,
)

__all__ = [
    "State",
    "elu_features",
    "linear_attention",
    "linear_attention_by_recurrence",
    "linear_attention_by_weights",
    "selection_table",
]


class State(NamedTuple):
    """What a recurrence keeps of the past, whatever its length.

    Attributes
    ----------
    summed : (..., d_f, d_v) array
        Sum over the keys of phi(k) v^T, d_f being the number of features.
    total : (..., d_f) array
        Sum over the keys of phi(k).
    """

    summed: np.ndarray
    total: np.ndarray


def elu_features(x):
    """Make every number positive: ``x + 1`` above 0, ``exp(x)`` below, which is elu(x) + 1.

    References
    ----------
    Katharopoulos et al. (2020), equation 7.

    Examples
    --------
    >>> elu_features([10.0, 0.0, -1.0]).round(4)
    array([11.    ,  1.    ,  0.3679])
    """
    (x,), dtype = _as_floats(x=x)
    with np.errstate(under="ignore"):
        return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))).astype(dtype, copy=False)


def linear_attention_by_weights(Q, K, V, *, causal=False, decay=1.0, features=elu_features):
    """Compute linear attention in the parallel form: all weights, then the averages.

    Parameters
    ----------
    Q : (..., L_q, d_k) array
    K : (..., L_k, d_k) array
    V : (..., L_k, d_v) array
    causal : bool, default False
        Hide the future; the last query sees the last key.
    decay : float, default 1.0
        In causal attention, how much of a key's weight is left a position later, above 0 and at
        most 1.
    features : callable
        From (..., d_k) to (..., d_f), nowhere negative.

    Returns
    -------
    output : (..., L_q, d_v) array
    weights : (..., L_q, L_k) array
        A row whose every weight is 0 stays 0, and so does its output.

    Raises
    ------
    ValueError
        If shapes do not fit, a length is 0, or decay is not in (0, 1], or is used without causal.

    Examples
    --------
    >>> identity = np.eye(2)
    >>> linear_attention_by_weights(identity, identity, identity, causal=True)[1].round(4)
    array([[1.    , 0.    ],
           [0.4444, 0.5556]])
    """
    Q, K, V, dtype = _featured(Q, K, V, features)
    _require_decay(decay, causal)
    weights = Q @ np.swapaxes(K, -1, -2)  # (..., L_q, d_f) @ (..., d_f, L_k) -> (..., L_q, L_k)
    if causal:
        L_q, L_k = weights.shape[-2:]
        age = np.arange(L_q)[:, None] + L_k - L_q - np.arange(L_k)
        left = np.where(causal_mask(L_q, L_k), float(decay) ** np.maximum(age, 0), 0)
        weights = weights * left.astype(weights.dtype)
    weights = weights / _not_zero(weights.sum(axis=-1, keepdims=True))
    return (weights @ V).astype(dtype, copy=False), weights.astype(dtype, copy=False)


def linear_attention(Q, K, V, *, features=elu_features):
    """Compute linear attention over all keys without any weights: ``phi(Q) (phi(K)^T V)``.

    Parameters
    ----------
    Q, K, V, features
        As for `linear_attention_by_weights`.

    Returns
    -------
    (..., L_q, d_v) array

    Raises
    ------
    ValueError
        If shapes do not fit or a length is 0.

    References
    ----------
    Katharopoulos et al. (2020), equation 5.

    Examples
    --------
    >>> identity = np.eye(2)
    >>> linear_attention(identity, identity, [[1.0], [1.0]])
    array([[1.],
           [1.]])
    """
    Q, K, V, dtype = _featured(Q, K, V, features)
    summed = np.swapaxes(K, -1, -2) @ V  # (..., d_f, L_k) @ (..., L_k, d_v) -> (..., d_f, d_v)
    total = K.sum(axis=-2)[..., None]  # (..., d_f, 1)
    return (Q @ summed / _not_zero(Q @ total)).astype(dtype, copy=False)


def linear_attention_by_recurrence(Q, K, V, *, state=None, decay=1.0, features=elu_features):
    """Compute causal linear attention as a recurrence, one position after the other.

    ``S_t = decay S_(t-1) + phi(k_t) v_t^T``, ``z_t = decay z_(t-1) + phi(k_t)``, and the output
    is ``phi(q_t)^T S_t / phi(q_t)^T z_t``.

    Parameters
    ----------
    Q : (..., L, d_k) array
    K : (..., L, d_k) array
    V : (..., L, d_v) array
        Equal leading dimensions.
    state : State, optional
        Where an earlier call ended; by default nothing has been seen.
    decay : float, default 1.0
        Above 0 and at most 1.
    features : callable
        From (..., d_k) to (..., d_f), nowhere negative.

    Returns
    -------
    output : (..., L, d_v) array
    state : State
        From which the next positions can go on.

    Raises
    ------
    ValueError
        If shapes do not fit, lengths differ or are 0, or decay is not in (0, 1].

    References
    ----------
    Katharopoulos et al. (2020), equations 16 to 20.

    Examples
    --------
    >>> identity = np.eye(2)
    >>> linear_attention_by_recurrence(identity, identity, identity)[0].round(4)
    array([[1.    , 0.    ],
           [0.4444, 0.5556]])
    """
    Q, K, V, dtype = _featured(Q, K, V, features)
    _require_decay(decay, causal=True)
    if not Q.shape[:-1] == K.shape[:-1] == V.shape[:-1]:
        raise ValueError(
            "a recurrence needs a query, a key and a value at each position; got "
            f"Q {Q.shape}, K {K.shape}, V {V.shape}"
        )
    *batch, L, d_f = K.shape
    d_v = V.shape[-1]
    if state is None:
        state = State(np.zeros((*batch, d_f, d_v), V.dtype), np.zeros((*batch, d_f), K.dtype))
    summed, total = state
    if summed.shape != (*batch, d_f, d_v) or total.shape != (*batch, d_f):
        raise ValueError(
            f"the state {summed.shape}, {total.shape} does not fit Q {Q.shape} and V {V.shape}"
        )
    output = np.empty((*batch, L, d_v), dtype=dtype)
    for t in range(L):
        q, k, v = Q[..., t, :], K[..., t, :], V[..., t, :]
        summed = decay * summed + k[..., :, None] * v[..., None, :]
        total = decay * total + k
        average = (q[..., None, :] @ summed)[..., 0, :]  # (..., 1, d_f) @ (..., d_f, d_v)
        output[..., t, :] = average / _not_zero((q * total).sum(axis=-1, keepdims=True))
    return output, State(summed, total)


def selection_table(query, keys):
    """Compare the weights that a query gives by softmax and by features.

    Parameters
    ----------
    query : (d_k,) array
    keys : dict of str to (d_k,) array

    Returns
    -------
    list of dict
        One row a key: its product of features, and its two weights.

    Examples
    --------
    >>> rows = selection_table((10, 0, 0), {"dog": (0.9, 0, 0.1), "truck": (0, 0.9, 0.1)})
    >>> print(*(row["linear"].round(4) for row in rows))
    0.6216 0.3784
    """
    K = np.array(list(keys.values()), dtype=float)
    Q = np.asarray(query, dtype=float)[None]
    products = (elu_features(Q) @ elu_features(K).T)[0]
    soft = scaled_dot_product_attention(Q, K, K)[1][0]
    linear = linear_attention_by_weights(Q, K, K)[1][0]
    return [
        {"key": key, "features": product, "linear": flat, "softmax": sharp}
        for key, product, flat, sharp in zip(keys, products, linear, soft, strict=True)
    ]


# ---------------------------------------------------------------------------------- helpers


def _featured(Q, K, V, features):
    (Q, K, V), dtype = _as_floats(Q=Q, K=K, V=V)
    _require_matching(Q, K, V)
    Q, K = features(Q), features(K)
    for name, X in (("queries", Q), ("keys", K)):
        if (X < 0).any():
            raise ValueError(f"features must not be negative; one of the {name}' is {X.min():.6g}")
    return Q, K, V, dtype


def _require_decay(decay, causal):
    if not 0 < decay <= 1 or (decay != 1 and not causal):
        raise ValueError(f"decay must lie in (0, 1], and be 1 if not causal; got {decay!r}")


def _not_zero(total):
    return np.where(total == 0, 1, total)
