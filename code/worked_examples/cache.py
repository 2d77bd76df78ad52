"""Decoding one token at a time: keys and values that were made once are kept."""

import numpy as np

from worked_examples.attention import (
    AttentionParameters,
    _length,
    _projected,
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)

__all__ = ["KeyValueCache", "decode"]


class KeyValueCache:
    """The keys and values of all positions so far, for the h heads of one layer.

    Parameters
    ----------
    capacity : int
        How many positions there is room for.
    h, d_k : int
        Heads, and width of a key in one head.
    d_v : int, optional
        Width of a value; by default d_k.
    dtype : dtype
        Of the numbers kept.

    Attributes
    ----------
    length : int
        Positions kept so far.

    Raises
    ------
    ValueError
        If a size is not a whole number of at least 1.

    Examples
    --------
    >>> cache = KeyValueCache(capacity=100, h=2, d_k=4, dtype="float32")
    >>> cache.length, cache.nbytes  # 2 * 100 * 2 * 4 numbers
    (0, 6400)
    """

    def __init__(self, capacity, h, d_k, d_v=None, dtype=float):
        capacity, h, d_k = _length("capacity", capacity), _length("h", h), _length("d_k", d_k)
        d_v = d_k if d_v is None else _length("d_v", d_v)
        self.length = 0
        self._keys = np.zeros((h, capacity, d_k), dtype=dtype)
        self._values = np.zeros((h, capacity, d_v), dtype=dtype)

    def __repr__(self):
        return f"<KeyValueCache {self.length} of {self._keys.shape[1]} positions>"

    @property
    def keys(self):
        """The keys so far, (h, length, d_k)."""
        return self._keys[:, : self.length]

    @property
    def values(self):
        """The values so far, (h, length, d_v)."""
        return self._values[:, : self.length]

    @property
    def nbytes(self):
        """Bytes that the room for keys and values takes, used or not."""
        return self._keys.nbytes + self._values.nbytes

    def append(self, K, V):
        """Keep the keys and values of new positions.

        Parameters
        ----------
        K : (h, n, d_k) array
        V : (h, n, d_v) array

        Raises
        ------
        ValueError
            If the shapes do not fit, or there is no room; then nothing is kept.
        """
        K, V = np.asarray(K), np.asarray(V)
        h, capacity, d_k = self._keys.shape
        n = K.shape[-2] if K.ndim > 1 else 0
        if n < 1 or K.shape != (h, n, d_k) or V.shape != (h, n, self._values.shape[2]):
            raise ValueError(
                f"a cache of {h} heads, keys of {d_k} and values of {self._values.shape[2]} "
                f"cannot take K {K.shape} and V {V.shape}"
            )
        if self.length + n > capacity:
            raise ValueError(
                f"the cache has room for {capacity} positions; {self.length} are kept, {n} came"
            )
        self._keys[:, self.length : self.length + n] = K
        self._values[:, self.length : self.length + n] = V
        self.length += n


def decode(X, parameters, h, cache):
    """Run causal self-attention for new positions, with what the cache keeps of those before.

    Parameters
    ----------
    X : (n, d) array
        The new positions; usually one.
    parameters : AttentionParameters
    h : int
        Number of heads.
    cache : KeyValueCache
        The new keys and values are added to it.

    Returns
    -------
    (n, d) array
        The rows that a run over the whole sequence would give for these positions.

    Raises
    ------
    ValueError
        If there is no new position, widths do not fit, or the cache has no room.

    Examples
    --------
    >>> identity = AttentionParameters(*[np.eye(2)] * 4)
    >>> cache = KeyValueCache(2, 1, 2)
    >>> print(decode(np.eye(2)[:1], identity, 1, cache), cache)
    [[1. 0.]] <KeyValueCache 1 of 2 positions>
    """
    X = np.asarray(X)
    if X.ndim != 2 or not len(X):
        raise ValueError(f"a row a new position, one at least; got shape {X.shape}")
    Q, K, V, W_O, b_O, dtype = _projected(X, AttentionParameters(*parameters), None)
    cache.append(split_heads(K, h), split_heads(V, h))
    heads, _ = scaled_dot_product_attention(
        split_heads(Q, h), cache.keys, cache.values, causal=True
    )
    return (merge_heads(heads) @ W_O + b_O).astype(dtype, copy=False)
