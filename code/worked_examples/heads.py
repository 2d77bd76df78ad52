"""The worked numbers of the chapter on heads: two relations at once, and what a layer costs.

A position of a series needs two readings: the level of the newest position, and the swing of
the matching season. One row of weights has to divide itself between them; two heads do not.
"""

from typing import NamedTuple

import numpy as np

from worked_examples import costs
from worked_examples.attention import AttentionParameters

__all__ = [
    "LEVELS",
    "PERIOD",
    "SWINGS",
    "Pattern",
    "best_pattern",
    "blend_table",
    "choices_table",
    "draw_series",
    "heads_table",
    "layer_costs",
    "matching_position",
    "nearest_average",
    "pattern_error",
    "pattern_table",
    "relation_inputs",
    "relation_parameters",
]

# A series of period 4: at each position its level, which rises, and its swing around the level.
PERIOD = 4
LEVELS = (10, 11, 12, 13, 14, 15, 16, 17)
SWINGS = (4, 0, -4, 0, 4, 0, -4, 0)


# ------------------------------------------------------------------- two relations, one softmax


def blend_table(levels=LEVELS, swings=SWINGS, shares=(1.0, 0.75, 0.5, 0.36, 0.25, 0.0)):
    """List what a row of weights returns that is divided between newest and matching position.

    Parameters
    ----------
    levels, swings : (L,) sequences
        What the positions hold; the last one is the newest.
    shares : sequence of float
        Weight on the newest position; the rest is on that of the matching season.

    Returns
    -------
    list of dict
        One row a share: level and swing as returned, and the distance to the wanted pair.

    Examples
    --------
    >>> blend_table(shares=[0.5])
    [{'share': 0.5, 'level': 15.5, 'swing': 2.0, 'error': 2.5}]
    """
    values = np.stack([levels, swings], axis=-1)
    newest, matching = values[-1], values[matching_position(len(values))]
    wanted = np.array([newest[0], matching[1]])
    rows = []
    for share in shares:
        level, swing = (share * newest + (1 - share) * matching).tolist()
        error = float(np.hypot(*(wanted - (level, swing))))
        rows.append({"share": share, "level": level, "swing": swing, "error": error})
    return rows


def matching_position(L):
    """Give the position of the *next* season, one period back; the first where none is so old.

    Examples
    --------
    >>> matching_position(8)
    4
    """
    return max(L - PERIOD, 0)


def nearest_average(values, wanted, steps=2000):
    """Search all rows of weights for the one whose average of the values comes nearest.

    Step down the gradient, go back to the nearest weights that are non-negative and sum to 1,
    and repeat. The problem is convex, so where this ends is the best that there is.

    Parameters
    ----------
    values : (n, d_v) array
    wanted : (d_v,) array
    steps : int

    Returns
    -------
    (n,) array
        Weights.

    Examples
    --------
    >>> nearest_average([[0.0, 0.0], [3.0, -4.0]], [3.0, 0.0]).round(2)
    array([0.64, 0.36])
    """
    values, wanted = np.asarray(values, dtype=float), np.asarray(wanted, dtype=float)
    off = values - wanted  # weights sum to 1: the average is off by the average of this
    return _least_square(off @ off.T, np.full(len(values), 1 / len(values)), steps)


def _least_square(G, weights, steps):
    """Minimise ``a^T G a`` over weights a, from given ones on."""
    step = 1 / max(np.linalg.eigvalsh(G)[-1], 1e-300)
    for _ in range(steps):
        weights = _nearest_weights(weights - step * (G @ weights))
    return weights


def _nearest_weights(x):
    """Give the non-negative numbers with sum 1 that are nearest to x (Duchi et al., 2008)."""
    falling = np.sort(x)[::-1]
    excess = (falling.cumsum() - 1) / np.arange(1, len(x) + 1)
    return np.maximum(x - excess[np.flatnonzero(falling > excess)[-1]], 0)


def relation_inputs(levels=LEVELS, swings=SWINGS):
    """Describe each position by level, swing, cosine and sine of its season, its number, and 1.

    Returns
    -------
    (L, 6) array
    """
    t = np.arange(len(levels))
    phase = 2 * np.pi * t / PERIOD
    return np.stack(
        [levels, swings, np.cos(phase), np.sin(phase), t, np.ones(len(t))], axis=-1
    ).round(12)


def relation_parameters(newest=14.0, season=42.0):
    """Set the matrices of a layer by hand, for rows of `relation_inputs`.

    The first two columns of Q and K look for the newest position: the query is constant, the
    key is the position's number. The other two look for the season of the *next* position: the
    query is the own season turned by one step. Values are the level, then the swing. With h = 2
    these are two heads; with h = 1 one head looks for both.

    Parameters
    ----------
    newest, season : float
        How strictly each of the two is looked for.

    Returns
    -------
    AttentionParameters
        Matrices (6, 4), (6, 4), (6, 2) and (2, 2).
    """
    W_Q, W_K, W_V = np.zeros((6, 4)), np.zeros((6, 4)), np.zeros((6, 2))
    W_Q[5, 0] = newest
    W_K[4, 0] = 1
    turn = 2 * np.pi / PERIOD
    W_Q[2:4, 2:] = season * np.array(
        [[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]]
    ).round(12)
    W_K[2:4, 2:] = np.eye(2)
    W_V[:2] = np.eye(2)
    return AttentionParameters(W_Q, W_K, W_V, np.eye(2))


# -------------------------------------------------------------- the same over a whole series


class Pattern(NamedTuple):
    """One row of weights by lag, for every position alike, with its fitted read-out.

    Attributes
    ----------
    weights : (lags,) array
        Weight on the position 0, 1, 2 ... back.
    errors : (2,) array
        Root mean square error of level and swing.
    """

    weights: np.ndarray
    errors: np.ndarray


def draw_series(L=400, seed=0):
    """Draw a series whose level wanders, and whose seasonal pattern wanders too.

    The level takes a normal step of size 1 a position; the swing is that of one period ago plus
    a normal step of size 1.

    Returns
    -------
    (L, 2) array
        Level and swing.
    """
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(L, 2))
    level = steps[:, 0].cumsum()
    swing = steps[:, 1].copy()
    for t in range(PERIOD, L):
        swing[t] += swing[t - PERIOD]
    return np.stack([level, swing], axis=-1)


def _past(series, lags):
    """Give the values 0 to lags - 1 back of every position that has them, and what is wanted."""
    past = np.stack([series[lags - 1 - k : len(series) - k] for k in range(lags)], axis=1)
    wanted = np.stack([past[:, 0, 0], past[:, PERIOD - 1, 1]], axis=-1)
    return past, wanted  # (n, lags, 2), (n, 2)


def _read_out(past, wanted, weights):
    """Fit the affine map from the averages to what is wanted, by least squares."""
    averages = np.einsum("l,nlv->nv", weights, past)
    inputs = np.column_stack([averages, np.ones(len(averages))])
    read_out = np.linalg.lstsq(inputs, wanted, rcond=None)[0]  # (3, 2)
    return read_out, wanted - inputs @ read_out


def pattern_error(series, weights):
    """Measure one pattern of weights: the errors that its best linear read-out leaves.

    Parameters
    ----------
    series : (L, 2) array
        Level and swing.
    weights : (lags,) array
        At least PERIOD of them.

    Returns
    -------
    (2,) array
        Root mean square error of the newest level and of the matching swing.
    """
    past, wanted = _past(series, len(weights))
    left = _read_out(past, wanted, np.asarray(weights, dtype=float))[1]
    return np.sqrt((left**2).mean(axis=0))


def best_pattern(series, lags=12, rounds=20):
    """Search for the pattern of weights by lag that serves both readings best.

    Weights and read-out are fitted in turn, from seven starts: two lags shared in five ways,
    all lags alike, and the newest half of them.

    Parameters
    ----------
    series : (L, 2) array
    lags : int
    rounds : int

    Returns
    -------
    Pattern
    """
    past, wanted = _past(series, lags)
    even, half = np.full(lags, 1 / lags), np.repeat([1, 0], [lags // 2, lags - lags // 2])
    starts = [even, half / half.sum()]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        pair = np.zeros(lags)
        pair[0], pair[PERIOD - 1] = share, 1 - share
        starts.append(0.9 * pair + 0.1 * even)
    found = [_fit_in_turn(past, wanted, start, rounds) for start in starts]
    best = min(found, key=lambda weights: (_read_out(past, wanted, weights)[1] ** 2).sum())
    return Pattern(best, pattern_error(series, best))


def _fit_in_turn(past, wanted, weights, rounds):
    for _ in range(rounds):
        read_out = _read_out(past, wanted, weights)[0]
        # Each lag's own error under this read-out; weights average them, as they sum to 1.
        off = past @ read_out[:2] + read_out[2] - wanted[:, None]
        weights = _least_square(np.einsum("nlv,nmv->lm", off, off), weights, 40)
    return weights


def pattern_table(seeds=(0, 1, 2, 3, 4), L=400):
    """List, over several series, what the best single pattern loses and what two heads lose.

    Parameters
    ----------
    seeds : sequence of int
    L : int

    Returns
    -------
    list of dict
        One row a way to look: mean over the series of the error of the level, of the swing, and
        of the two together, with the least and most of that.
    """
    ways = {"newest only": [], "matching only": [], "best single head": [], "two heads": []}
    newest, matching = np.eye(PERIOD)[[0, PERIOD - 1]]
    for seed in seeds:
        series = draw_series(L, seed)
        ways["newest only"].append(pattern_error(series, newest))
        ways["matching only"].append(pattern_error(series, matching))
        ways["best single head"].append(best_pattern(series).errors)
        # Each head reads one component with weights of its own.
        pairs = (pattern_error(series, newest)[0], pattern_error(series, matching)[1])
        ways["two heads"].append(np.array(pairs))
    rows = []
    for name, errors in ways.items():
        errors = np.array(errors)
        both = np.hypot(*errors.T)
        level, swing = errors.mean(axis=0)
        rows.append({"weights": name, "level": level, "swing": swing, "both": both.mean(),
                     "least": both.min(), "most": both.max()})  # fmt: skip
    return rows


# --------------------------------------------------------------------------- what a layer costs


def layer_costs(d, h, L_q, L_k=None, number_bytes=4):
    """Count what an attention layer with d_k = d_v = d / h holds and does for one sequence.

    Parameters
    ----------
    d : int
        Width of the layer.
    h : int
        Number of heads.
    L_q : int
        Number of queries.
    L_k : int, optional
        Number of keys; by default L_q, as in self-attention.
    number_bytes : int
        4 for float32, 2 for float16.

    Returns
    -------
    dict
        The width of a head; the parameters, without biases; multiply-adds of the four
        projections, and of scores and averages; the weights of all heads, and their bytes.

    Raises
    ------
    ValueError
        If one of the sizes is not at least 1, or h does not divide d.

    Examples
    --------
    >>> layer_costs(512, 8, 1024)["parameters"], layer_costs(512, 1, 1024)["parameters"]
    (1048576, 1048576)
    """
    L_k = L_q if L_k is None else L_k
    if min(d, h, L_q, L_k) < 1:
        raise ValueError(f"sizes must be at least 1; got d {d}, h {h}, L_q {L_q}, L_k {L_k}")
    if d % h:
        raise ValueError(f"the width must be a multiple of the number of heads; got {d} and {h}")
    return {
        "d_k": costs.head_width(d, h),
        "parameters": costs.attention_parameters(d, h),
        "projections": costs.projection_multiply_adds(L_q, d, L_k),
        "scores and averages": (
            costs.score_multiply_adds(L_q, d, L_k) + costs.average_multiply_adds(L_q, d, L_k)
        ),
        "weights": costs.scores(L_q, h, L_k=L_k),
        "weight bytes": costs.score_bytes(L_q, h, number_bytes=number_bytes, L_k=L_k),
    }


def heads_table(d=512, L=1024, heads=(1, 2, 4, 8, 16, 32)):
    """List what stays and what grows when a layer of one width is cut into more heads.

    Parameters
    ----------
    d, L : int
    heads : sequence of int
        Each must divide d.

    Returns
    -------
    list of dict
        One row a number of heads; multiply-adds of the whole layer, and MiB of its weights in
        float32.
    """
    rows = []
    for h in heads:
        layer = layer_costs(d, h, L)
        rows.append({
            "heads": h, "d_k": layer["d_k"], "parameters": layer["parameters"],
            "multiply-adds": layer["projections"] + layer["scores and averages"],
            "weights (MiB)": layer["weight bytes"] / 2**20,
        })  # fmt: skip
    return rows


def choices_table(d=512, L=1024, source=4096, h=8):
    """List what each choice in an attention layer costs, one changed at a time.

    Parameters
    ----------
    d, L : int
        Width of the layer and number of queries.
    source : int
        Length of the other sequence, in cross-attention.
    h : int
        Number of heads, where that is not what is changed.

    Returns
    -------
    list of dict
        One row an option, costs as in `heads_table`; *seen* counts the pairs of a query and a key
        that carry any weight, of all heads, and *mask bytes* the booleans of the mask as it must
        be stored.
    """
    one, several = layer_costs(d, 1, L), layer_costs(d, h, L)
    cross = layer_costs(d, h, L, source)
    causal = h * L * (L + 1) // 2
    padded = h * L * (L - L // 4)
    options = [
        ("heads", "1", one, one["weights"], 0),
        ("heads", f"{h}", several, several["weights"], 0),
        ("source", "self", several, several["weights"], 0),
        ("source", f"cross, L_k = {source}", cross, cross["weights"], 0),
        ("mask", "none", several, several["weights"], 0),
        ("mask", "padding, a quarter", several, padded, L),
        ("mask", "causal", several, causal, L * L),
    ]
    return [
        {
            "choice": choice, "option": option, "parameters": layer["parameters"],
            "multiply-adds": layer["projections"] + layer["scores and averages"],
            "weights (MiB)": layer["weight bytes"] / 2**20, "seen": seen, "mask bytes": mask,
        }
        for choice, option, layer, seen, mask in options
    ]  # fmt: skip
