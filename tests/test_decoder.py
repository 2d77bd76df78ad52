"""The whole decoder against torch, its prefixes, and the loop that writes."""

import numpy as np
import pytest
import torch

from worked_examples import positions
from worked_examples.block import (
    NormParameters,
    layer_norm,
    parameters_from_torch,
    transformer_block,
)
from worked_examples.decoder import (
    DecoderParameters,
    decoder,
    draw_decoder,
    generate,
    influence,
)

TOKENS = np.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])


@pytest.mark.parametrize(("layers", "h"), [(1, 1), (3, 4)])
def test_the_decoder_agrees_with_the_library(layers, h):
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(
        16, h, 32, dropout=0, batch_first=True, norm_first=True, dtype=torch.float64
    )
    last = torch.nn.LayerNorm(16, dtype=torch.float64)
    theirs = torch.nn.TransformerEncoder(layer, layers, last, enable_nested_tensor=False)
    with torch.no_grad():
        for parameter in theirs.parameters():  # copies of one layer would hide a wrong order
            parameter.add_(0.1 * torch.randn_like(parameter))
    embedding = np.random.default_rng(0).normal(size=(10, 16))
    X = embedding[TOKENS] + positions.sinusoidal_encoding(5, 16)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    with torch.no_grad():
        expected = theirs(torch.from_numpy(X), mask=mask).numpy() @ embedding.T
    norm = NormParameters(*(part.detach().numpy() for part in (last.weight, last.bias)))
    blocks = tuple(parameters_from_torch(part) for part in theirs.layers)
    logits, weights = decoder(TOKENS, DecoderParameters(embedding, blocks, norm), h)
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-12)
    assert [A.shape for A in weights] == [(2, h, 5, 5)] * layers


def test_a_prefix_scores_the_same_alone_and_in_the_whole():
    parameters = draw_decoder(10, 8, 16, layers=2, seed=3)
    whole, _ = decoder(TOKENS, parameters, 2)
    for i in range(1, 6):
        alone, _ = decoder(TOKENS[:, :i], parameters, 2)
        np.testing.assert_allclose(whole[:, i - 1], alone[:, -1], atol=1e-12)


def test_generation_takes_the_best_of_the_last_row():
    parameters = draw_decoder(10, 8, 16, layers=2, seed=3)
    written = generate([3, 1], 4, lambda tokens: decoder(tokens, parameters, 2)[0])
    assert written[:2] == [3, 1]
    for i in range(2, 6):
        logits, _ = decoder(written[:i], parameters, 2)
        assert written[i] == logits[-1].argmax()


def test_influence_is_the_slope():
    rng = np.random.default_rng(0)
    M = rng.normal(size=(3, 4))
    X = rng.normal(size=(5, 3))

    def forward(X):  # the last row depends on row 1 by 2, on itself by 1
        return (X + 2 * np.roll(X, 3, axis=0)) @ M

    slopes = influence(forward, X, directions=200)
    expected = np.linalg.norm(M) / np.sqrt(3)  # mean square over random directions of length 1
    assert slopes[[0, 2, 3]] == pytest.approx(0, abs=1e-9)
    assert slopes[1] == pytest.approx(2 * expected, rel=0.15)
    assert slopes[1] == pytest.approx(2 * slopes[4], rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_distance_costs_a_stack_of_blocks_nothing(seed):
    blocks = draw_decoder(2, 16, 32, 2, seed).blocks

    def forward(X):
        for block in blocks:
            X, _ = transformer_block(X, block, 4, norm="pre", causal=True)
        return layer_norm(X)

    slopes = influence(forward, np.random.default_rng(seed).normal(size=(24, 16)))
    assert slopes[0] > 0.1 * slopes[-2]


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (lambda p: decoder([], p, 2), r"array\(\[\]"),
        (lambda p: decoder([1, 10], p, 2), "0 and 9; got 1 to 10"),
        (lambda p: decoder([-1], p, 2), "got -1"),
        (lambda p: decoder([1.5], p, 2), "1.5"),
        (lambda p: decoder([1], p, 3), "8 and 3"),
        (lambda p: draw_decoder(0, 8, 16, 1), "0, 8, 16, 1"),
        (lambda p: decoder([1], draw_decoder(3, 5, 4, 1), 1), "5"),
    ],
)
def test_bad_input_is_named(call, shown):
    with pytest.raises(ValueError, match=shown):
        call(draw_decoder(10, 8, 16, 1))
