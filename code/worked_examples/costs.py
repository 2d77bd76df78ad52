"""Counting what a transformer holds and what it does: parameters, multiply-adds, bytes.

``|V|`` is written `vocabulary`: how many tokens there are. d is the width of the model, h the
number of heads, H the hidden width of the feed-forward part, L the length of a sequence. No count
of parameters depends on L; every count of multiply-adds and of bytes does. The unit of a count is
the last word of its function's name. A size that is not a whole number of at least 1 is a
ValueError in every function.
"""

from worked_examples.attention import _length

__all__ = [
    "LENGTHS",
    "SIZES",
    "attention_parameters",
    "average_multiply_adds",
    "bias_parameters",
    "cache_bytes",
    "decoding_multiply_adds",
    "embedding_parameters",
    "feed_forward_multiply_adds",
    "feed_forward_parameters",
    "growth_table",
    "head_width",
    "layer_parameters",
    "layer_table",
    "memory_table",
    "model_table",
    "norm_parameters",
    "overtaking_lengths",
    "projection_multiply_adds",
    "recurrent_multiply_adds",
    "ring_bytes",
    "score_bytes",
    "score_multiply_adds",
    "scores",
    "stack_parameters",
    "work_table",
]

# The base model of Vaswani et al. (2017), with a vocabulary of 50,000 tokens.
SIZES = {"vocabulary": 50_000, "d": 512, "layers": 6, "h": 8, "H": 2048}

# Each four times the one before.
LENGTHS = (128, 512, 2048, 8192)

# ------------------------------------------------------------------------------ parameters


def head_width(d, h):
    """Give the width d_k of one of h heads.

    Parameters
    ----------
    d, h : int

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If h does not divide d.

    Examples
    --------
    >>> head_width(512, 8)
    64
    """
    d, h = _length("d", d), _length("h", h)
    if d % h:
        raise ValueError(f"d must be a multiple of h; got d = {d} and h = {h}")
    return d // h


def embedding_parameters(vocabulary, d):
    """Count one vector of width d a token.

    Examples
    --------
    >>> embedding_parameters(50_000, 512)
    25600000
    """
    return _length("vocabulary", vocabulary) * _length("d", d)


def attention_parameters(d, h):
    """Count the matrices of one attention: W^Q, W^K and W^V of each head, and W^O of all.

    Parameters
    ----------
    d, h : int

    Returns
    -------
    int
        4 d^2, whatever h is: h heads of width d / h are as wide together as one of width d.

    Raises
    ------
    ValueError
        If h does not divide d.

    Examples
    --------
    >>> attention_parameters(512, 8), attention_parameters(512, 1)
    (1048576, 1048576)
    """
    d, h, d_k = _length("d", d), _length("h", h), head_width(d, h)
    return h * 3 * d * d_k + h * d_k * d


def feed_forward_parameters(d, H):
    """Count the two matrices of one feed-forward part.

    Examples
    --------
    >>> feed_forward_parameters(512, 2048)
    2097152
    """
    d, H = _length("d", d), _length("H", H)
    return d * H + H * d


def bias_parameters(d, H):
    """Count the biases of one layer: of Q, K, V and W^O, and of the two feed-forward matrices.

    Examples
    --------
    >>> bias_parameters(512, 2048)
    4608
    """
    d, H = _length("d", d), _length("H", H)
    return 4 * d + H + d


def norm_parameters(d, norms=2):
    """Count the scales and shifts of the layer norms of one layer.

    Examples
    --------
    >>> norm_parameters(512)
    2048
    """
    return _length("norms", norms) * 2 * _length("d", d)


def layer_parameters(d, h, H, *, biases_and_norms=True):
    """Count what one layer holds.

    Parameters
    ----------
    d, h, H : int
    biases_and_norms : bool, default True
        Count more than the six matrices.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If h does not divide d.

    Examples
    --------
    >>> layer_parameters(512, 8, 2048)
    3152384
    """
    matrices = attention_parameters(d, h) + feed_forward_parameters(d, H)
    return matrices + (bias_parameters(d, H) + norm_parameters(d) if biases_and_norms else 0)


def stack_parameters(layers, d, h, H, *, biases_and_norms=True):
    """Count what so many layers hold.

    Examples
    --------
    >>> stack_parameters(6, 512, 8, 2048)
    18914304
    >>> stack_parameters(6, 512, 8, 2048, biases_and_norms=False)
    18874368
    """
    one = layer_parameters(d, h, H, biases_and_norms=biases_and_norms)
    return _length("layers", layers) * one


def layer_table(d=512, h=8, H=2048):
    """List what each part of one layer holds, and its share of the layer.

    Parameters
    ----------
    d, h, H : int

    Returns
    -------
    list of dict
        Rows `part`, `parameters`, `share`; the last one is the whole layer.

    Raises
    ------
    ValueError
        If h does not divide d.

    Examples
    --------
    >>> [row["parameters"] for row in layer_table()]
    [1048576, 2097152, 4608, 2048, 3152384]
    """
    parts = {
        "attention": attention_parameters(d, h),
        "feed-forward": feed_forward_parameters(d, H),
        "biases": bias_parameters(d, H),
        "layer norms": norm_parameters(d),
    }
    parts["one layer"] = layer_parameters(d, h, H)
    return [
        {"part": part, "parameters": count, "share": count / parts["one layer"]}
        for part, count in parts.items()
    ]


def model_table(vocabulary=50_000, d=512, layers=6, h=8, H=2048):
    """List what a model holds: its embeddings, its layers, and both.

    Parameters
    ----------
    vocabulary, d, layers, h, H : int

    Returns
    -------
    list of dict
        Rows `part`, `parameters`. The layers come twice, the matrices alone and with biases and
        norms; the model counts the second.

    Raises
    ------
    ValueError
        If h does not divide d.

    Examples
    --------
    >>> [row["parameters"] for row in model_table()]
    [25600000, 18874368, 18914304, 44514304]
    """
    embeddings = embedding_parameters(vocabulary, d)
    whole = stack_parameters(layers, d, h, H)
    parts = {
        "embeddings": embeddings,
        "layers, matrices alone": stack_parameters(layers, d, h, H, biases_and_norms=False),
        "layers, biases and norms too": whole,
        "model": embeddings + whole,
    }
    return [{"part": part, "parameters": count} for part, count in parts.items()]


# --------------------------------------------------------------------------- multiply-adds


def projection_multiply_adds(L, d, L_k=None):
    """Count the multiply-adds of the four projections of one attention.

    Parameters
    ----------
    L : int
        Number of queries: they are projected, and so are the joined outputs of the heads.
    d : int
    L_k : int, optional
        Number of keys and of values; by default L, as in self-attention.

    Returns
    -------
    int
        ``2 L d^2 + 2 L_k d^2``, so 4 L d^2 in self-attention. h is not in it.

    Examples
    --------
    >>> projection_multiply_adds(1024, 512)
    1073741824
    """
    L, L_k = _lengths(L, L_k)
    d = _length("d", d)
    return 2 * L * d * d + 2 * L_k * d * d


def score_multiply_adds(L, d, L_k=None):
    """Count the multiply-adds of all scores of one attention, all heads together.

    Parameters
    ----------
    L, d : int
    L_k : int, optional
        Number of keys; by default L.

    Returns
    -------
    int
        ``L L_k d_k`` a head, so ``L L_k d`` for h heads of width d_k = d / h.

    Examples
    --------
    >>> score_multiply_adds(1024, 512)
    536870912
    >>> score_multiply_adds(4096, 512) // score_multiply_adds(1024, 512)
    16
    """
    L, L_k = _lengths(L, L_k)
    return L * L_k * _length("d", d)


def average_multiply_adds(L, d, L_k=None):
    """Count the multiply-adds of all weighted averages of the values: as many as the scores.

    Examples
    --------
    >>> average_multiply_adds(1024, 512)
    536870912
    """
    return score_multiply_adds(L, d, L_k)


def feed_forward_multiply_adds(L, d, H):
    """Count the multiply-adds of one feed-forward part: 2 L d H.

    Examples
    --------
    >>> feed_forward_multiply_adds(1024, 512, 2048)
    2147483648
    """
    return _length("L", L) * feed_forward_parameters(d, H)


def recurrent_multiply_adds(L, d):
    """Count the multiply-adds of a recurrent layer as wide as its input: 2 L d^2.

    Each of the L steps multiplies the state by one (d, d) matrix and the input by another. A gated
    layer has more of them: a small multiple of L d^2.

    Examples
    --------
    >>> recurrent_multiply_adds(1024, 512)
    536870912
    """
    return _length("L", L) * 2 * _length("d", d) ** 2


def overtaking_lengths(d, H):
    """Give the lengths at which scores and averages cost as much as something else does.

    Parameters
    ----------
    d, H : int

    Returns
    -------
    dict of str to int
        From 2 L^2 d set equal to each of the other counts. Beyond the length, scores and averages
        are the larger.

    Examples
    --------
    >>> overtaking_lengths(512, 2048)
    {'a recurrent layer': 512, 'the projections': 1024, 'the rest of the block': 3072}
    """
    d, H = _length("d", d), _length("H", H)
    projections = projection_multiply_adds(1, d)  # of one position
    others = {
        "a recurrent layer": recurrent_multiply_adds(1, d),
        "the projections": projections,
        "the rest of the block": projections + feed_forward_multiply_adds(1, d, H),
    }
    return {name: count // (2 * d) for name, count in others.items()}


def work_table(L=1024, d=512, H=2048):
    """List the multiply-adds of each part of one layer, beside those of a recurrent one.

    Parameters
    ----------
    L, d, H : int

    Returns
    -------
    list of dict
        Rows `part`, `multiply-adds`, and `at 4 L`: how many times as many there are at four times
        the length.

    Examples
    --------
    >>> [row["at 4 L"] for row in work_table()]
    [16.0, 16.0, 4.0, 4.0, 4.0]
    """
    once, later = _work(L, d, H), _work(4 * L, d, H)
    return [
        {"part": part, "multiply-adds": count, "at 4 L": later[part] / count}
        for part, count in once.items()
    ]


def _work(L, d, H):
    return {
        "scores": score_multiply_adds(L, d),
        "averages": average_multiply_adds(L, d),
        "projections": projection_multiply_adds(L, d),
        "feed-forward": feed_forward_multiply_adds(L, d, H),
        "recurrent layer": recurrent_multiply_adds(L, d),
    }


def growth_table(lengths=LENGTHS, d=512, H=2048):
    """List the multiply-adds of one layer's parts for several lengths.

    Returns
    -------
    list of dict
        One row a length; `share` is that of scores and averages in the block's own total.

    Examples
    --------
    >>> [round(row["share"], 4) for row in growth_table()]
    [0.04, 0.1429, 0.4, 0.7273]
    """
    rows = []
    for L in lengths:
        work = _work(L, d, H)
        recurrent = work.pop("recurrent layer")
        pairs = work.pop("scores") + work.pop("averages")
        rows.append({
            "L": L, "scores and averages": pairs, **work, "recurrent layer": recurrent,
            "share": pairs / (pairs + sum(work.values())),
        })  # fmt: skip
    return rows


def decoding_multiply_adds(L, d, *, cache=True):
    """Count the multiply-adds of one attention while L tokens are decoded, one after the other.

    Parameters
    ----------
    L, d : int
    cache : bool, default True
        Keep the keys and values of the tokens before. Without it, each step runs the attention
        over all that there is so far.

    Returns
    -------
    int
        With a cache, step t has one query and t keys: ``4 d^2 + 2 t d``. Without, it has t of both:
        ``4 t d^2 + 2 t^2 d``. Summed over t = 1 to L.

    Examples
    --------
    >>> decoding_multiply_adds(1024, 512), decoding_multiply_adds(1024, 512, cache=False)
    (1611137024, 917333606400)
    """
    L, d = _length("L", L), _length("d", d)
    first, second = L * (L + 1) // 2, L * (L + 1) * (2 * L + 1) // 6  # sums of t and of t^2
    if cache:
        return 4 * L * d * d + 2 * first * d
    return 4 * first * d * d + 2 * second * d


# ----------------------------------------------------------------------------------- bytes


def scores(L, h=1, layers=1, L_k=None):
    """Count the scores of h heads in so many layers; there are as many weights.

    Examples
    --------
    >>> scores(8192)
    67108864
    """
    L, L_k = _lengths(L, L_k)
    return _length("layers", layers) * _length("h", h) * L * L_k


def score_bytes(L, h=1, layers=1, number_bytes=4, L_k=None):
    """Count the bytes of the scores, where they are all kept.

    Parameters
    ----------
    L, h, layers : int
    number_bytes : int
        4 for float32, 2 for float16.
    L_k : int, optional
        Number of keys; by default L.

    Returns
    -------
    int

    Examples
    --------
    >>> score_bytes(8192) / 2**20
    256.0
    """
    return scores(L, h, layers, L_k) * _length("number_bytes", number_bytes)


def cache_bytes(L, d, layers=1, number_bytes=4):
    """Count the bytes of the keys and values of L tokens, in all heads and so many layers.

    Parameters
    ----------
    L, d, layers, number_bytes : int

    Returns
    -------
    int
        ``2 L d`` numbers a layer: h heads of width d / h are together as wide as one.

    Examples
    --------
    >>> cache_bytes(8192, 512, layers=6) / 2**20
    192.0
    """
    numbers = 2 * _length("L", L) * _length("d", d) * _length("layers", layers)
    return numbers * _length("number_bytes", number_bytes)


def ring_bytes(L, n, d, number_bytes=4, *, backward=False):
    """Count the bytes that grow with L on each of n processes that hold a sequence together.

    Each has L / n rows of Q, K, V and the output, two more numbers a row for the softmax, and
    room for what arrives: one block of keys and values while another is worked on, two if there
    are more than two processes, none if it is alone. On the way back come the gradients: those of
    queries and output, and three sets of those of keys and values, as one grows, one is being
    sent and one arrives.

    Parameters
    ----------
    L, n : int
        Length, and number of processes.
    d : int
        Width d_k = d_v, of all heads together.
    number_bytes : int
    backward : bool, default False

    Returns
    -------
    int
        For the process that has the most rows.

    Examples
    --------
    >>> [ring_bytes(65_536, n, 64) // 2**20 for n in (1, 2, 4, 16)]
    [64, 48, 32, 8]
    """
    rows = -(-_length("L", L) // _length("n", n))
    widths = 4 + 2 * min(2, n - 1)
    if backward:
        widths += 2 + (2 if n == 1 else 6)
    return rows * (widths * _length("d", d) + 2) * _length("number_bytes", number_bytes)


def memory_table(lengths=(1024, 2048, 4096, 8192, 16_384), d=512, h=8, layers=6, number_bytes=4):
    """List for several lengths what scores and a key-value cache need.

    Parameters
    ----------
    lengths : sequence of int
    d, h, layers, number_bytes : int

    Returns
    -------
    list of dict
        One row a length: scores of one head in one layer, their MiB, the MiB of all heads and
        layers, and the MiB of the cache.

    Examples
    --------
    >>> [row["one head (MiB)"] for row in memory_table()]
    [4.0, 16.0, 64.0, 256.0, 1024.0]
    """
    return [
        {
            "L": L,
            "scores": scores(L),
            "one head (MiB)": score_bytes(L, number_bytes=number_bytes) / 2**20,
            "all (MiB)": score_bytes(L, h, layers, number_bytes) / 2**20,
            "cache (MiB)": cache_bytes(L, d, layers, number_bytes) / 2**20,
        }
        for L in lengths
    ]


def _lengths(L, L_k):
    L = _length("L", L)
    return L, L if L_k is None else _length("L_k", L_k)
