"""Exercises of the chapter on the rest of the block."""

import numpy as np

from worked_examples.block import layer_norm
from worked_examples.costs import layer_parameters
from worked_examples.exercises.checking import Check, Mistake

__all__ = ["check_block", "check_layer_norm", "check_parameters"]

# --------------------------------------------------------------------------- layer normalisation


def _rows():
    rng = np.random.default_rng(0)
    scale, shift = rng.normal(1, 0.5, size=(2, 4))
    X = rng.normal(2, 3, size=(4, 4))  # square, so that no wrong axis is caught by its shape
    constant = X.copy()
    constant[1] = 5.0
    wide = rng.normal(size=(2, 3, 6)), rng.normal(size=6), rng.normal(size=6)
    return [(X, scale, shift, 1e-5), (constant, scale, shift, 1e-5), (*wide, 0.1)]


def _norm(over, *, ddof=0, root=lambda variance, eps: np.sqrt(variance + eps), apply=None):
    """Make a layer norm with something else in it."""

    def function(X, scale, shift, eps):
        variance = X.var(axis=over, keepdims=True, ddof=ddof)
        normal = (X - X.mean(axis=over, keepdims=True)) / root(variance, eps)
        return normal * scale + shift if apply is None else apply(normal, X, scale, shift)

    return function


def _scaled_before(X, scale, shift, eps):
    return layer_norm(X * scale + shift, eps=eps)


check_layer_norm = Check(
    "check_layer_norm",
    correct=lambda X, scale, shift, eps: layer_norm(X, scale, shift, eps=eps),
    inputs=_rows,
    mistakes=(
        Mistake(
            _norm(-2),
            "Mean and variance are taken over the positions: a row's numbers then depend on its "
            "neighbours. Take them over the features, axis=-1.",
        ),
        Mistake(
            _norm(None),
            "One mean and one variance for the whole array: each row needs its own, axis=-1 with "
            "keepdims=True.",
        ),
        Mistake(
            _norm(-1, root=lambda variance, eps: np.sqrt(variance)),
            "There is no eps: a row of equal numbers is divided by 0. Add it to the variance.",
        ),
        Mistake(
            _norm(-1, ddof=1),
            "The variance is divided by d - 1. Here it is divided by d: nothing is estimated.",
        ),
        Mistake(
            _norm(-1, root=lambda variance, eps: np.sqrt(variance) + eps),
            "eps is added to the standard deviation. It belongs inside the root, to the variance.",
        ),
        Mistake(
            _norm(-1, root=lambda variance, eps: variance + eps),
            "The rows are divided by their variance. Divide by its square root.",
        ),
        Mistake(
            lambda X, scale, shift, eps: layer_norm(X, eps=eps),
            "Right as far as it goes. The learned scale and shift are missing.",
        ),
        Mistake(
            lambda X, scale, shift, eps: layer_norm(X, scale, eps=eps),
            "The shift is missing.",
        ),
        Mistake(
            _scaled_before,
            "Scale and shift come after the normalisation. Before it, most of them is taken away "
            "again.",
        ),
        Mistake(
            _norm(-1, apply=lambda normal, X, scale, shift: (normal + shift) * scale),
            "The shift is scaled too. Multiply by the scale first, then add the shift.",
        ),
    ),
    praise="Each row alone, a row of equal numbers included, and any number of leading dimensions.",
)

# ------------------------------------------------------------------------------------ the block


def _parts(seed):
    """Make four small parts of a block that no two orders of them can confuse."""
    rng = np.random.default_rng(seed)
    mix, widen, narrow = rng.normal(size=(3, 3)), rng.normal(size=(4, 8)), rng.normal(size=(8, 4))
    (scale_1, scale_2), (shift_1, shift_2) = rng.normal(1, 0.3, (2, 4)), rng.normal(0, 0.3, (2, 4))
    return (
        rng.normal(size=(3, 4)),
        lambda X: mix @ X,
        lambda X: np.maximum(X @ widen, 0) @ narrow,
        lambda X: layer_norm(X, scale_1, shift_1),
        lambda X: layer_norm(X, scale_2, shift_2),
    )


def _post(X, attend, feed, norm_1, norm_2):
    Y = norm_1(X + attend(X))
    return norm_2(Y + feed(Y))


def _pre(X, attend, feed, norm_1, norm_2):
    Y = X + attend(norm_1(X))
    return Y + feed(norm_2(Y))


def _from_normalised(X, attend, feed, norm_1, norm_2):
    X = norm_1(X)
    Y = norm_2(X + attend(X))
    return Y + feed(Y)


def _sum_not_normalised(X, attend, feed, norm_1, norm_2):
    Y = X + norm_1(attend(X))
    return Y + norm_2(feed(Y))


def _no_path(X, attend, feed, norm_1, norm_2):
    return norm_2(feed(norm_1(attend(X))))


def _no_path_pre(X, attend, feed, norm_1, norm_2):
    return feed(norm_2(attend(norm_1(X))))


def _past_the_middle_post(X, attend, feed, norm_1, norm_2):
    return norm_2(X + feed(norm_1(X + attend(X))))


def _past_the_middle_pre(X, attend, feed, norm_1, norm_2):
    return X + feed(norm_2(X + attend(norm_1(X))))


def _side_by_side(X, attend, feed, norm_1, norm_2):
    return X + attend(norm_1(X)) + feed(norm_2(X))


def _chosen(post=_post, pre=_pre):
    return lambda *arguments: (post if arguments[-1] == "post" else pre)(*arguments[:-1])


check_block = Check(
    "check_block",
    correct=_chosen(),
    inputs=lambda: [(*_parts(0), "post"), (*_parts(1), "pre"), (*_parts(2), "post")],
    mistakes=(
        Mistake(
            _chosen(post=_pre),
            "Post-norm was asked and this is pre-norm: for post-norm, normalise each sum.",
        ),
        Mistake(
            _chosen(pre=_post),
            "Pre-norm was asked and this is post-norm: for pre-norm, normalise what goes into each "
            "part and leave the sum alone.",
        ),
        Mistake(
            _chosen(pre=_from_normalised),
            "The path starts from the normalised input. In pre-norm only the part sees the norm: "
            "X + attend(norm_1(X)).",
        ),
        Mistake(
            _chosen(post=_sum_not_normalised),
            "The norm stands on the part's result and the sum is never normalised. Post-norm is "
            "norm_1(X + attend(X)).",
        ),
        Mistake(
            _chosen(post=lambda X, attend, feed, *_: _post(X, attend, feed, *[lambda Y: Y] * 2)),
            "The sums are not normalised at all.",
        ),
        Mistake(_chosen(post=_no_path), "There is no residual path: add what went in, each time."),
        Mistake(
            _chosen(pre=_no_path_pre),
            "The pre-norm block has no residual path: add what went in, each time.",
        ),
        Mistake(
            _chosen(post=_past_the_middle_post),
            "The second path starts from X. It starts from what the first one ended with.",
        ),
        Mistake(
            _chosen(pre=_past_the_middle_pre),
            "The second path of pre-norm starts from X. It starts from what the first one ended "
            "with.",
        ),
        Mistake(
            _chosen(pre=_side_by_side),
            "The feed-forward part sees X. It has to see what the attention added.",
        ),
        Mistake(
            _chosen(post=lambda X, a, f, norm_1, _: _post(X, a, f, norm_1, norm_1)),
            "norm_1 is used twice; each sum has a norm of its own.",
        ),
    ),
    praise="Post-norm and pre-norm, each with its two paths and its two norms in their places.",
)

# ------------------------------------------------------------------------------------ counting


def _count(attention=4, feed_forward=2, bias_d=5, bias_H=1, norms=4):
    """Make a count of a layer with other multiples in it."""
    return lambda d, h, H: (
        attention * d * d + feed_forward * d * H + bias_d * d + bias_H * H + norms * d
    )


check_parameters = Check(
    "check_parameters",
    correct=lambda d, h, H: layer_parameters(d, h, H),
    inputs=lambda: [(6, 3, 10), (512, 8, 2048), (384, 12, 1536), (4, 1, 16)],
    mistakes=(
        Mistake(
            _count(attention=3, bias_d=4),
            "Only Q, K and V are counted. W^O mixes the heads: d^2 more, and its bias.",
        ),
        Mistake(_count(attention=3), "The matrix W^O is missing: d^2 parameters."),
        Mistake(
            _count(bias_d=0, bias_H=0),
            "The biases are missing: one number a column of each of the six matrices.",
        ),
        Mistake(
            lambda d, h, H: _count(attention=1 + 3 * h)(d, h, H),
            "Each head is counted as if it were d wide. It is d / h wide: h of them hold as much "
            "as one.",
        ),
        Mistake(
            lambda d, h, H: _count(attention=4 * h)(d, h, H),
            "The attention is counted h times. Its heads are d / h wide, so h cancels.",
        ),
        Mistake(
            lambda d, h, H: h * layer_parameters(d, h, H),
            "The whole layer is counted h times. The heads share its width, so h cancels.",
        ),
        Mistake(
            _count(norms=0), "The layer norms are missing: two, each with a scale and a shift."
        ),
        Mistake(
            _count(norms=2),
            "Two layer norms, each with a scale and a shift, have 4 d parameters; 2 d are counted.",
        ),
        Mistake(
            _count(bias_d=0, bias_H=0, norms=0),
            "The six matrices are right. Biases and layer norms are missing.",
        ),
        Mistake(
            _count(feed_forward=1),
            "The feed-forward part has two matrices: it widens to H and narrows back to d.",
        ),
        Mistake(
            lambda d, h, H: 4 * d * (d // h) + 2 * d * H + 9 * d + H,
            "One head is counted. There are h of them, and together they are d wide.",
        ),
        Mistake(_count(bias_H=0), "The bias of the widening matrix is missing: H numbers."),
    ),
    praise="Every part, biases and norms included, and no h in the result.",
    tolerance=0.0,
)
