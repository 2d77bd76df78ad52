"""The recurrent encoder that attention replaced, what its state keeps, and the first repair.

Symbols: L length, n width of the state, x_t (d) the input at step t, h_t (n) the state after it,
rho the spectral radius of the matrix that carries the state on.
"""

from typing import NamedTuple

import numpy as np

from worked_examples.attention import _length, softmax

__all__ = [
    "AdditiveParameters",
    "EncoderParameters",
    "additive_attention",
    "draw_encoder",
    "encode",
    "gradient_norms",
    "linear_recall",
    "path_table",
    "recall",
    "recall_table",
]


class EncoderParameters(NamedTuple):
    """What an encoder learns, or here draws.

    Attributes
    ----------
    W : (n, n) array
        Carries the state on.
    U : (n, d) array
        Takes the input in.
    """

    W: np.ndarray
    U: np.ndarray


class AdditiveParameters(NamedTuple):
    """The score network of additive attention, of hidden width m.

    Attributes
    ----------
    W : (m, d_s) array
        For the decoder's state.
    U : (m, n) array
        For a state of the encoder.
    v : (m,) array
    """

    W: np.ndarray
    U: np.ndarray
    v: np.ndarray


def draw_encoder(n, d=1, radius=0.9, seed=0):
    """Draw an encoder whose W is a random matrix scaled to a spectral radius.

    Parameters
    ----------
    n, d : int
        Width of the state and of an input.
    radius : float
        Largest absolute eigenvalue of W.
    seed : int
        Of ``numpy.random.default_rng``.

    Returns
    -------
    EncoderParameters

    Raises
    ------
    ValueError
        If a width is no whole number of at least 1, or the radius is negative or not finite.
    """
    if min(n, d) < 1 or not np.isfinite(radius) or radius < 0:
        raise ValueError(f"an encoder needs widths >= 1, radius >= 0; got {n}, {d}, {radius}")
    n, d = _length("the state's width", n), _length("the input's width", d)
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(n, n))
    W *= radius / max(np.abs(np.linalg.eigvals(W)).max(), 1e-300)
    return EncoderParameters(W, rng.normal(size=(n, d)) / np.sqrt(d))


def encode(X, parameters, activation=np.tanh):
    """Read a sequence step by step: ``h_t = tanh(W h_(t-1) + U x_t)``, from h_0 = 0.

    Parameters
    ----------
    X : (..., L, d) array
    parameters : EncoderParameters
    activation : callable
        The non-linearity; the identity gives a linear encoder.

    Returns
    -------
    (..., L, n) array
        All the states; the last one is what a decoder of 2014 got.

    Raises
    ------
    ValueError
        If the input's width is not what U takes, or W and U do not fit each other.

    References
    ----------
    Elman (1990).

    Examples
    --------
    >>> parameters = EncoderParameters(np.array([[0.5]]), np.array([[1.0]]))
    >>> encode([[1.0], [0.0], [0.0]], parameters, activation=lambda x: x).ravel()
    array([1.  , 0.5 , 0.25])
    """
    X = np.asarray(X, dtype=float)
    W, U = map(np.asarray, parameters)
    if W.ndim != 2 or U.ndim != 2 or not W.shape[0] == W.shape[1] == U.shape[0]:
        raise ValueError(f"an encoder needs W (n, n) and U (n, d); got W {W.shape}, U {U.shape}")
    if X.ndim < 2 or X.shape[-1] != U.shape[1]:
        raise ValueError(f"inputs {X.shape} do not fit an encoder that takes width {U.shape[1]}")
    driven = X @ U.T  # (..., L, d) @ (d, n) -> (..., L, n)
    states = np.zeros_like(driven)
    state = np.zeros(driven.shape[:-2] + driven.shape[-1:])
    for t in range(X.shape[-2]):  # a step needs the one before it: no way around the loop
        state = activation(state @ W.T + driven[..., t, :])
        states[..., t, :] = state
    return states


def recall(states, X, ridge=1e-6):
    """Measure how well each input can be read back from given states, by linear regression.

    The read-out is fitted on the first half of the sequences and measured on the other.

    Parameters
    ----------
    states : (N, n) array
        One state a sequence, as the last one.
    X : (N, L) array
        The inputs, one number a step.
    ridge : float
        Regularisation, so that nearly equal columns do no harm.

    Returns
    -------
    (L,) array
        R^2 of each position: 1 is perfect, 0 no better than the mean; it may fall below 0.

    Raises
    ------
    ValueError
        If there is not one state a sequence, or there are fewer than four sequences.
    """
    states, X = np.asarray(states, dtype=float), np.asarray(X, dtype=float)
    if states.ndim != 2 or X.ndim != 2 or len(states) != len(X) or len(X) < 4:
        raise ValueError(f"one state a sequence, four at least; got {states.shape} and {X.shape}")
    half = len(X) // 2
    inputs = np.hstack([states, np.ones((len(states), 1))])
    train, test = inputs[:half], inputs[half:]
    squares = train.T @ train + ridge * half * np.eye(inputs.shape[1])
    readout = np.linalg.solve(squares, train.T @ X[:half])
    errors = ((test @ readout - X[half:]) ** 2).mean(axis=0)
    return 1 - errors / X[half:].var(axis=0)


def linear_recall(L, n, radius, noise=1e-2, seed=0):
    """Compute the best possible R^2 of each position for a linear encoder, without sampling.

    For independent inputs of variance 1 the last state is ``sum over t of c_t x_t`` with
    ``c_t = W^(L-t) U``, and the best linear read-out of x_t reaches
    ``R^2_t = c_t^T (C + noise^2 I)^-1 c_t`` with ``C = sum over t of c_t c_t^T``. These add up to
    less than n, whatever L is.

    Parameters
    ----------
    L, n : int
        Length, and width of the state.
    radius : float
        Spectral radius of W.
    noise : float
        Standard deviation of the noise on the state when it is read.
    seed : int
        For the encoder.

    Returns
    -------
    (L,) array

    References
    ----------
    Jaeger (2001), on the memory capacity of recurrent networks.

    Examples
    --------
    >>> bool(linear_recall(50, 8, 0.9).sum() < 8)
    True
    """
    W, U = draw_encoder(n, 1, radius, seed)
    columns = np.empty((L, n))
    column = U[:, 0]
    for t in range(L - 1, -1, -1):
        columns[t] = column
        column = W @ column
    C = columns.T @ columns + noise**2 * np.eye(n)
    return np.einsum("ti,it->t", columns, np.linalg.solve(C, columns.T))


def recall_table(lengths=(8, 16, 32, 64), n=16, radius=0.9, seed=0):
    """List for several lengths how well the first, middle and last input can be read back.

    Parameters
    ----------
    lengths : sequence of int
    n, radius, seed
        As for `linear_recall`.

    Returns
    -------
    list of dict
        One row a length; the sum is over all its positions.
    """
    rows = []
    for L in lengths:
        r2 = linear_recall(L, n, radius, seed=seed)
        rows.append({"L": L, "first": r2[0], "middle": r2[L // 2], "last": r2[-1], "sum": r2.sum()})
    return rows


def gradient_norms(X, parameters):
    """Compute how strongly the last state still depends on each input.

    The derivative is a product of one Jacobian a step, ``diag(1 - h_s^2) W`` for every step s
    after t, and ``diag(1 - h_t^2) U`` at t itself.

    Parameters
    ----------
    X : (L, d) array
        One sequence.
    parameters : EncoderParameters

    Returns
    -------
    (L,) array
        Frobenius norm of d h_L / d x_t, for t = 1 to L.
    """
    W, U = parameters
    states = encode(X, parameters)
    norms = np.empty(len(states))
    carried = np.eye(len(W))  # d h_L / d h_t, from the end backwards
    for t in range(len(states) - 1, -1, -1):
        slope = 1 - states[t] ** 2
        norms[t] = np.linalg.norm(carried @ (slope[:, None] * U))
        carried = carried @ (slope[:, None] * W)
    return norms


def additive_attention(state, H, parameters):
    """Score every encoder state by a small network, and average them: the first attention.

    ``e_j = v^T tanh(W s + U h_j)``, ``alpha = softmax(e)``, ``c = sum over j of alpha_j h_j``.

    Parameters
    ----------
    state : (..., d_s) array
        What the decoder is doing; here it plays the query.
    H : (..., L, n) array
        All the states of the encoder; they are keys and values at once.
    parameters : AdditiveParameters

    Returns
    -------
    context : (..., n) array
    weights : (..., L) array

    Raises
    ------
    ValueError
        If the widths do not fit the parameters.

    References
    ----------
    Bahdanau, Cho and Bengio (2015), appendix A.1.2.

    Examples
    --------
    >>> parameters = AdditiveParameters(np.zeros((2, 1)), np.zeros((2, 3)), np.ones(2))
    >>> context, weights = additive_attention([1.0], np.eye(3)[:2], parameters)
    >>> print(weights)  # a network of zeros scores every state alike
    [0.5 0.5]
    """
    state, H = np.asarray(state, dtype=float), np.asarray(H, dtype=float)
    W, U, v = map(np.asarray, parameters)
    shapes = f"W {W.shape}, U {U.shape}, v {v.shape}"
    if W.ndim != 2 or U.ndim != 2 or not W.shape[:1] == U.shape[:1] == v.shape:
        raise ValueError(f"a score network needs W (m, d_s), U (m, n) and v (m,); got {shapes}")
    if H.ndim < 2 or state.shape[-1:] != W.shape[1:] or H.shape[-1] != U.shape[1]:
        raise ValueError(f"state {state.shape} and states {H.shape} do not fit {shapes}")
    try:
        np.broadcast_shapes(state.shape[:-1], H.shape[:-2])
    except ValueError:
        raise ValueError(
            f"leading dimensions do not broadcast; got state {state.shape}, states {H.shape}"
        ) from None
    hidden = np.tanh((state @ W.T)[..., None, :] + H @ U.T)  # (..., 1, m) + (..., L, m)
    weights = softmax(hidden @ v)
    return (weights[..., None, :] @ H)[..., 0, :], weights


def path_table(L):
    """Compare how information travels in a recurrence and in self-attention.

    Parameters
    ----------
    L : int
        Length, at least 1.

    Returns
    -------
    list of dict
        One row a layer kind: the longest path between two positions in steps, the steps that
        have to wait for one another, and the pairs of positions that are scored.
    """
    L = _length("L", L)
    return [
        {"layer": "recurrence", "longest path": L - 1, "sequential steps": L, "pairs scored": 0},
        {
            "layer": "self-attention",
            "longest path": min(1, L - 1),
            "sequential steps": 1,
            "pairs scored": L * L,
        },
    ]
