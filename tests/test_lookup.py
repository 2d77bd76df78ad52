"""The numbers of the chapter on queries, keys and values."""

import math

import numpy as np
import pytest

from worked_examples import lookup
from worked_examples.attention import scaled_dot_product_attention
from worked_examples.views.lookup import one_query


@pytest.mark.parametrize(
    ("step", "numbers"),
    [
        ("scores", [0.3200, 0.1300, 0.4400]),
        ("scaled", [0.1848, 0.0751, 0.2540]),
        ("weights", [0.3369, 0.3019, 0.3611]),
        ("output", [0.4118, 0.4514, 0.5816]),
        ("entropy", 1.5811),
    ],
)
def test_one_query_by_hand(step, numbers):
    steps = lookup.lookup(lookup.QUERY, list(lookup.KEYS.values()))
    assert getattr(steps, step).round(4) == pytest.approx(numbers, abs=1e-12)


def test_the_words_and_their_keys():
    assert lookup.QUERY == (0.1, 0.2, 0.3)
    assert lookup.KEYS == {"is": (0.4, 0.5, 0.6), "the": (0.2, 0.1, 0.3), "best": (0.6, 0.7, 0.8)}
    assert lookup.SELECT_KEYS == {
        "dog": (0.9, 0, 0.1), "truck": (0, 0.9, 0.1), "barked": (0.1, 0, 0.9)
    }  # fmt: skip


def test_two_queries_commit_and_one_cannot():
    animal, verb, anything = lookup.select_table()
    assert animal["dog"] == pytest.approx(0.9848, abs=5e-5)
    assert verb["barked"] == pytest.approx(0.9807, abs=5e-5)
    assert animal["entropy"] < 0.2
    assert verb["entropy"] < 0.2
    assert anything["entropy"] == pytest.approx(math.log2(3), abs=1e-12)
    assert round(anything["entropy"], 4) == 1.5850


@pytest.mark.parametrize("c", [-50.0, -1.0, 0.0, 0.3, 7.0, 1000.0])
def test_equal_parts_of_everything_cannot_choose(c):
    bits = lookup.lookup((c, c, c), list(lookup.SELECT_KEYS.values())).entropy
    assert bits == pytest.approx(math.log2(3), abs=1e-9)


def test_the_view_writes_no_negative_zero():
    keys = {f"{word}_{i}": x for word in lookup.KEYS for i, x in enumerate((-1.0, 1.0, 0.0), 1)}
    query = {"query_1": 0.0, "query_2": 0.0, "query_3": 0.0}
    assert "Output: (-1.0000, 1.0000, 0.0000)" in one_query(**query, **keys | {"is_3": -1e-9})


def test_lookup_is_attention():
    rng = np.random.default_rng(0)
    Q, K, V = rng.normal(size=(4, 3)), rng.normal(size=(6, 3)), rng.normal(size=(6, 2))
    steps = lookup.lookup(Q, K, V)
    output, weights = scaled_dot_product_attention(Q, K, V)
    np.testing.assert_allclose(steps.output, output, atol=1e-14)
    np.testing.assert_allclose(steps.weights, weights, atol=1e-15)


@pytest.mark.parametrize(
    ("query", "keys", "values", "shown"),
    [
        ((1, 2), [(1, 2, 3)], None, r"\(2,\).*\(1, 3\)"),
        ((1, 2), [], None, r"\(0,\)"),
        ((1, 2), [(1, 2)], [(1,), (2,)], r"\(1, 2\).*\(2, 1\)"),
    ],
)
def test_bad_input_is_named(query, keys, values, shown):
    with pytest.raises(ValueError, match=shown):
        lookup.lookup(query, keys, values)
