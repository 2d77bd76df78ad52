"""Exercises of the chapter on what the length costs."""

import math

import numpy as np

from worked_examples import costs
from worked_examples.exercises.checking import Check, Mistake

__all__ = ["check_linear_step", "check_merge", "check_multiply_adds"]

# ------------------------------------------------------------------------------------ counting


def _count(pairs=2, projections=4, feed_forward=2, *, by_head=False):
    def function(L, d, h, H):
        pair_work = pairs * L * L * d * (h if by_head else 1)
        return pair_work + projections * L * d * d + feed_forward * L * d * H

    return function


def _layer(L, d, h, H):
    attention = costs.score_multiply_adds(L, d) + costs.average_multiply_adds(L, d)
    return (
        attention + costs.projection_multiply_adds(L, d) + costs.feed_forward_multiply_adds(L, d, H)
    )


check_multiply_adds = Check(
    "check_multiply_adds",
    correct=_layer,
    inputs=lambda: [(10, 6, 3, 16), (1024, 512, 8, 2048), (4096, 512, 8, 2048), (1, 4, 2, 8)],
    mistakes=(
        Mistake(
            _count(pairs=0),
            "Nothing here grows with the square of L. Every query meets every key: count the "
            "scores and the averages too.",
        ),
        Mistake(
            _count(pairs=1),
            "The L^2 part is counted once. There are two such products: the scores, and the "
            "average of the values under the weights.",
        ),
        Mistake(
            _count(by_head=True),
            "Each head is counted as if it were d wide. A head is d / h wide, so h of them need "
            "L^2 d for their scores together.",
        ),
        Mistake(
            lambda L, d, h, H: h * _layer(L, d, h, H),
            "The whole layer is counted h times. The heads share its width, so h cancels.",
        ),
        Mistake(
            lambda L, d, h, H: _layer(L, d // h, 1, H) if d % h == 0 else math.nan,
            "One head is counted, of width d / h. There are h of them.",
        ),
        Mistake(
            _count(projections=3),
            "Three projections are counted. The joined heads pass through W^O: L d^2 more.",
        ),
        Mistake(_count(projections=0), "The projections are missing: four products of L d^2."),
        Mistake(_count(feed_forward=0), "The feed-forward part is missing: two products of L d H."),
        Mistake(
            _count(feed_forward=1),
            "The feed-forward part has two matrices: it widens to H and narrows back to d.",
        ),
        Mistake(
            lambda L, d, h, H: 2 * _layer(L, d, h, H),
            "Each multiply-add is counted twice, as a multiplication and an addition. Those are "
            "flop; here the two together count once.",
        ),
        Mistake(
            lambda L, d, h, H: _layer(1, d, h, H) - 2 * d + 2 * L * L * d,
            "Projections and feed-forward part are counted for one position. They run at all L.",
        ),
    ),
    praise="Both L^2 products, four projections, two feed-forward matrices, and no h.",
    tolerance=0.0,
)

# ----------------------------------------------------------------------------- merging blocks


def _merge(m_1, t_1, o_1, m_2, t_2, o_2):
    m = max(m_1, m_2)
    a, b = np.exp(m_1 - m), np.exp(m_2 - m)
    return m, a * t_1 + b * t_2, a * o_1 + b * o_2


def _not_rescaled(m_1, t_1, o_1, m_2, t_2, o_2):
    return max(m_1, m_2), t_1 + t_2, o_1 + o_2


def _by_the_first(m_1, t_1, o_1, m_2, t_2, o_2):
    b = np.exp(m_2 - m_1)
    return m_1, t_1 + b * t_2, o_1 + b * o_2


def _maximum_ignored(m_1, t_1, o_1, m_2, t_2, o_2):
    a, b = np.exp(m_1), np.exp(m_2)
    return 0.0, a * t_1 + b * t_2, a * o_1 + b * o_2


def _maximum_forgotten(m_1, t_1, o_1, m_2, t_2, o_2):
    _, total, summed = _maximum_ignored(m_1, t_1, o_1, m_2, t_2, o_2)
    return max(m_1, m_2), total, summed


def _only_total(m_1, t_1, o_1, m_2, t_2, o_2):
    m, total, _ = _merge(m_1, t_1, o_1, m_2, t_2, o_2)
    return m, total, o_1 + o_2


def _turned(m_1, t_1, o_1, m_2, t_2, o_2):
    m = max(m_1, m_2)
    a, b = np.exp(m - m_1), np.exp(m - m_2)
    return m, a * t_1 + b * t_2, a * o_1 + b * o_2


def _divided(m_1, t_1, o_1, m_2, t_2, o_2):
    m, total, summed = _merge(m_1, t_1, o_1, m_2, t_2, o_2)
    return m, total, summed / total


def _averaged(m_1, t_1, o_1, m_2, t_2, o_2):
    m, total, _ = _merge(m_1, t_1, o_1, m_2, t_2, o_2)
    return m, total, (o_1 + o_2) / 2


check_merge = Check(
    "check_merge",
    correct=_merge,
    inputs=lambda: [
        (2.0, 1.5, np.array([1.0, 3.0]), 3.0, 1.25, np.array([2.0, -1.0])),
        (5.0, 1.5, np.array([1.0, 3.0]), 3.0, 1.25, np.array([2.0, -1.0])),
        (800.0, 1.5, np.array([1.0, 3.0]), 1000.0, 2.0, np.array([2.0, -1.0])),
        (1000.0, 1.5, np.array([1.0, 3.0]), 999.0, 2.0, np.array([2.0, -1.0])),
    ],
    mistakes=(
        Mistake(
            _not_rescaled,
            "The sums are added as they are. Each was made with its own maximum: bring both to "
            "the common one first, by exp(its maximum - the common one).",
        ),
        Mistake(
            _by_the_first,
            "Everything is measured from the first block's maximum. When the second one is much "
            "larger the exponential overflows: take the larger of the two.",
        ),
        Mistake(
            _maximum_ignored,
            "The maximum is left out: the sums are right until a score is near 1000, where exp "
            "overflows. Keep everything relative to the larger maximum.",
        ),
        Mistake(
            _maximum_forgotten,
            "The larger maximum is returned, and the sums are not measured from it.",
        ),
        Mistake(
            _only_total,
            "The totals are rescaled and the summed values are not. They need the same factors.",
        ),
        Mistake(
            _turned,
            "The factors are upside down: the block with the smaller maximum has to shrink.",
        ),
        Mistake(
            _divided,
            "The summed values are already divided by the total. Divide once, after the last "
            "block.",
        ),
        Mistake(_averaged, "The values are averaged half and half. A block counts by its powers."),
    ),
    praise="One common maximum, both sums brought to it, and no overflow at scores of 1000.",
)

# ------------------------------------------------------------------------ linear attention step


def _step(S, z, q, k, v):
    S, z = S + np.outer(k, v), z + k
    return q @ S / (q @ z), S, z


def _read_first(S, z, q, k, v):
    return q @ S / (q @ z), S + np.outer(k, v), z + k


def _not_divided(S, z, q, k, v):
    S = S + np.outer(k, v)
    return q @ S, S, z + k


def _replaced(S, z, q, k, v):
    S = np.outer(k, v)
    return q @ S / (q @ k), S, k


def _only_values(S, z, q, k, v):
    S = S + np.outer(k, v)
    return q @ S / (q @ z), S, z


def _turned_outer(S, z, q, k, v):
    S = S + np.outer(v, k)
    return q @ S / (q @ (z + k)), S, z + k


def _by_key(S, z, q, k, v):
    S, z = S + np.outer(k, v), z + k
    return k @ S / (k @ z), S, z


def _with_query(S, z, q, k, v):
    S, z = S + np.outer(q, v), z + q
    return q @ S / (q @ z), S, z


def _divided_by_sum(S, z, q, k, v):
    S, z = S + np.outer(k, v), z + k
    return q @ S / z.sum(), S, z


def _steps():
    rng = np.random.default_rng(0)
    # As many features as values, so that no shape gives a wrong product away.
    return [(rng.random((n, n)), 1 + rng.random(n), *(0.1 + rng.random((3, n)))) for n in (3, 1, 5)]


check_linear_step = Check(
    "check_linear_step",
    correct=_step,
    inputs=_steps,
    mistakes=(
        Mistake(
            _read_first,
            "The output is read before the new key and value are written: a position must see "
            "itself.",
        ),
        Mistake(
            _not_divided,
            "The output is not divided by q @ z, so its weights do not sum to 1.",
        ),
        Mistake(_replaced, "The state is overwritten. Add to what it holds of the past."),
        Mistake(
            _only_values,
            "z is not brought up to date: it must add the new key, before the output is read.",
        ),
        Mistake(
            _turned_outer,
            "The outer product is the wrong way round: features are rows, values columns.",
        ),
        Mistake(_by_key, "The state is read with the key. The query reads, the key writes."),
        Mistake(
            _with_query, "The query is written into the state. The key writes, the query reads."
        ),
        Mistake(
            _divided_by_sum,
            "The output is divided by the sum of z. What the weights sum to depends on the query: "
            "q @ z.",
        ),
    ),
    praise="Write, then read, then divide: one step, and the state has kept its size.",
)
