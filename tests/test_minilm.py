"""The trained model in the book's kernels, against the `transformers` library."""

import numpy as np
import pytest

from worked_examples import minilm, wordpiece
from worked_examples.attention import (
    AttentionParameters,
    multi_head_attention,
    multi_head_attention_by_loop,
    product,
    projected_heads,
    scaled_dot_product_attention,
    set_product,
    split_heads,
)
from worked_examples.block import parameters_from_torch, transformer_block

TEXTS = [
    "The dog barked at the truck because it was loud.",
    "",
    "a",
    "犬 ☃ \u0b95",  # not one character known
    "Déjà vu: in 1997, at 3.5 % of $20!",
    "It was loud. " * 30,
]
# Relative to 1 where a number is larger: float32 holds seven digits.
CLOSE = 1e-5


@pytest.fixture(scope="module")
def library(trained):
    """Give the library's own model, with the published arrays copied in; nothing is fetched."""
    import torch
    from transformers import BertConfig, BertModel

    arrays = {
        name: torch.tensor(array)
        for name, array in trained[0].items()
        if name != "embeddings.position_ids" and not name.startswith("pooler")
    }
    config = BertConfig(
        vocab_size=30_522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12,
        intermediate_size=1536, hidden_act="gelu", max_position_embeddings=512,
        type_vocab_size=2, layer_norm_eps=1e-12, attn_implementation="eager",
    )  # fmt: skip
    model = BertModel(config, add_pooling_layer=False).eval()
    model.load_state_dict(arrays)
    return model


def by_library(library, numbers, positions=None):
    import torch

    more = {} if positions is None else {"position_ids": torch.tensor([positions])}
    with torch.no_grad():
        found = library(
            torch.tensor([numbers]), output_attentions=True, output_hidden_states=True, **more
        )
    return tuple(
        np.stack([part[0].numpy() for part in parts])
        for parts in (found.hidden_states, found.attentions)
    )


def agree(reading, theirs):
    layers, maps = theirs
    assert reading.layers.shape == layers.shape
    assert reading.maps.shape == maps.shape
    assert reading.layers.dtype == reading.maps.dtype == np.float32
    assert (abs(reading.layers - layers) <= CLOSE * np.maximum(1, abs(layers))).all()
    assert abs(reading.maps - maps).max() <= CLOSE


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:20] or "empty")
def test_every_layer_and_map_is_the_library_s(trained, library, text):
    arrays, places = trained
    numbers = wordpiece.encode(text, places)[1]
    agree(minilm.read(numbers, arrays), by_library(library, numbers))


@pytest.mark.parametrize("L", [1, 512])
def test_one_token_and_as_many_as_it_takes(trained, library, L):
    numbers = np.random.default_rng(L).integers(0, 30_522, L).tolist()
    reading = minilm.read(numbers, trained[0])
    agree(reading, by_library(library, numbers))
    if L == 1:
        np.testing.assert_array_equal(reading.maps, 1)


def test_shuffled_positions_are_the_library_s(trained, library):
    numbers = [101, 1996, 3899, 17554, 102]
    positions = [4, 0, 3, 1, 2]
    shuffled = minilm.read(numbers, trained[0], positions=positions)
    agree(shuffled, by_library(library, numbers, positions))
    assert abs(shuffled.rows - minilm.read(numbers, trained[0]).rows).max() > 0.1


def test_a_divisor_left_out_is_the_library_s(trained, library, monkeypatch):
    numbers = [101, 1996, 3899, 17554, 102]
    for layer in library.encoder.layer:
        monkeypatch.setattr(layer.attention.self, "scaling", 1.0)
    without = minilm.read(numbers, trained[0], scale=1.0)
    agree(without, by_library(library, numbers))
    assert abs(without.maps - minilm.read(numbers, trained[0]).maps).max() > 0.1


def test_a_head_switched_off_is_one_whose_output_is_mixed_with_zeros(trained, library):
    import torch

    numbers = [101, 1996, 3899, 17554, 102]
    off = [(0, 2), (5, 11), (5, 5)]
    saved = {layer: library.encoder.layer[layer].attention.output.dense.weight.clone()
             for layer in (0, 5)}  # fmt: skip
    with torch.no_grad():
        for layer, head in off:
            mixing = library.encoder.layer[layer].attention.output.dense.weight
            mixing[:, 32 * head : 32 * head + 32] = 0
        theirs = by_library(library, numbers)
        for layer, weight in saved.items():
            library.encoder.layer[layer].attention.output.dense.weight.copy_(weight)
    without = minilm.read(numbers, trained[0], without=off)
    agree(without, theirs)
    assert abs(without.rows - minilm.read(numbers, trained[0]).rows).max() > 0.01


def test_queries_and_keys_give_the_maps(trained):
    numbers = [101, 1996, 3899, 17554, 102]
    reading = minilm.read(numbers, trained[0], keep_heads=True)
    assert reading.queries.shape == reading.keys.shape == (6, 12, 5, 32)
    again = scaled_dot_product_attention(reading.queries, reading.keys, reading.keys)[1]
    assert abs(again - reading.maps).max() <= 1e-6
    assert minilm.read(numbers, trained[0]).queries is None


@pytest.mark.parametrize(
    ("numbers", "options", "message"),
    [
        ([], {}, "1 to 512 tokens; got 0"),
        ([5] * 513, {}, "1 to 512 tokens; got 513"),
        ([30_522], {}, "token must be a whole number from 0 to 30521"),
        ([-1], {}, "token must be a whole number"),
        ([1.5], {}, "token must be a whole number"),
        ([[1, 2]], {}, "token must be a whole number"),
        ([1], {"positions": [512]}, "position must be a whole number from 0 to 511"),
        ([1, 2], {"positions": [1]}, "one position a token; got 1 for 2"),
        ([1], {"without": [(6, 0)]}, "layer must be a whole number from 0 to 5"),
        ([1], {"without": [(0, -1)]}, "head must be a whole number from 0 to 11"),
    ],
)
def test_what_it_cannot_read_is_one_clear_sentence(trained, numbers, options, message):
    with pytest.raises(ValueError, match=message):
        minilm.read(numbers, trained[0], **options)


def test_it_asks_for_the_vectors_of_the_tokens_alone(trained):
    """A browser hands over words that are unpacked when they are asked for."""
    arrays = dict(trained[0])
    whole = arrays["embeddings.word_embeddings.weight"]

    class Packed:
        shape = whole.shape
        asked = []

        def __getitem__(self, numbers):
            self.asked.append(list(numbers))
            return whole[numbers]

    arrays["embeddings.word_embeddings.weight"] = Packed()
    numbers = [101, 3899, 102]
    reading = minilm.read(numbers, arrays)
    np.testing.assert_array_equal(reading.rows, minilm.read(numbers, trained[0]).rows)
    assert Packed.asked == [numbers]


def test_vectors_of_like_sentences_are_near(trained):
    arrays, places = trained

    def vector(text):
        return minilm.sentence_vector(minilm.read(wordpiece.encode(text, places)[1], arrays).rows)

    dog = vector("The dog barked.")
    assert np.linalg.norm(dog) == pytest.approx(1, abs=1e-6)
    assert round(float(dog @ vector("A puppy was barking.")), 3) == 0.749
    assert round(float(dog @ vector("The truck is red.")), 3) == 0.065


# --- what the kernels gained for it --------------------------------------------------------------


@pytest.fixture
def layer():
    """Draw X and parameters of 4 heads with biases."""
    rng = np.random.default_rng(7)
    arrays = [rng.normal(size=(8, 8)) for _ in range(4)] + [rng.normal(size=8) for _ in range(4)]
    return rng.normal(size=(5, 8)), AttentionParameters(*arrays)


def test_a_head_that_is_not_kept_adds_nothing_and_the_others_stay(layer):
    X, parameters = layer
    kept = np.array([True, False, True, False])
    output, weights = multi_head_attention(X, parameters, 4, kept=kept)
    whole, all_weights = multi_head_attention(X, parameters, 4)
    np.testing.assert_array_equal(weights, all_weights)
    W_O = np.where(np.repeat(kept, 2)[:, None], parameters.W_O, 0)
    masked = multi_head_attention(X, parameters._replace(W_O=W_O), 4)[0]
    assert abs(output - masked).max() < 1e-12
    assert abs(output - whole).max() > 0.1
    none = multi_head_attention(X, parameters, 4, kept=np.zeros(4, bool))[0]
    np.testing.assert_array_equal(none, np.tile(parameters.b_O, (5, 1)))


def test_a_head_that_is_not_kept_may_hold_anything():
    X = np.array([[1e300, 1.0], [1e300, 2.0]])
    parameters = AttentionParameters(*[np.diag([1e300, 1.0])] * 3, np.eye(2))
    output = multi_head_attention(X, parameters, 2, kept=[False, True])[0]
    assert np.isfinite(output).all()


@pytest.mark.parametrize("kept", [[True], [1, 1, 1, 1], np.ones((4, 1), bool), True])
def test_kept_is_one_truth_value_a_head(layer, kept):
    with pytest.raises(ValueError, match="for each of 4 heads"):
        multi_head_attention(*layer, 4, kept=kept)


def test_a_layer_s_scale_is_each_head_s(layer):
    X, parameters = layer
    Q, K, V = projected_heads(X, parameters, 4)
    wanted = scaled_dot_product_attention(Q, K, V, scale=2.0)[1]
    for function in (multi_head_attention, multi_head_attention_by_loop):
        weights = function(X, parameters, 4, scale=2.0)[1]
        assert abs(weights - wanted).max() < 1e-12
        assert abs(weights - function(X, parameters, 4)[1]).max() > 0.01


def test_projected_heads_are_the_products_cut_into_heads(layer):
    X, parameters = layer
    context = X[::-1] * 2
    Q, K, V = projected_heads(X.astype(np.float16), parameters, 4, context=context)
    assert Q.dtype == np.float64
    Q, K, V = projected_heads(X, parameters, 4, context=context)
    for part, rows, W, b in (
        (Q, X, parameters.W_Q, parameters.b_Q),
        (K, context, parameters.W_K, parameters.b_K),
        (V, context, parameters.W_V, parameters.b_V),
    ):
        np.testing.assert_allclose(part, split_heads(rows @ W + b, 4), atol=1e-12)
    with pytest.raises(ValueError, match="multiple of the number of heads; got 8 and 3"):
        projected_heads(X, parameters, 3)


def test_a_block_hands_on_scale_and_kept():
    import torch

    torch.manual_seed(0)
    library = torch.nn.TransformerEncoderLayer(8, 4, 16, batch_first=True, dtype=torch.float64)
    parameters = parameters_from_torch(library.eval())
    X = np.random.default_rng(0).normal(size=(5, 8))
    for norm in ("post", "pre"):
        plain, weights = transformer_block(X, parameters, 4, norm=norm)
        sharp, sharper = transformer_block(X, parameters, 4, norm=norm, scale=5.0)
        fewer, same = transformer_block(X, parameters, 4, norm=norm, kept=[True] * 3 + [False])
        np.testing.assert_array_equal(same, weights)
        assert abs(sharper - weights).max() > 0.01
        assert abs(fewer - plain).max() > 0.001
        assert abs(sharp - plain).max() > 0.001


def test_every_product_of_the_model_is_taken_in_one_place(trained):
    """A browser may choose another way to multiply: all of it has to go through there."""
    shapes = []

    def counted(A, B):
        shapes.append((A.shape, B.shape))
        return np.einsum("...ij,...jk->...ik", A, B)

    numbers = [101, 1996, 3899, 17554, 102]
    before = set_product(counted)
    try:
        chosen = minilm.read(numbers, trained[0])
    finally:
        set_product(before)
    assert product(np.eye(2), np.eye(2)).shape == (2, 2)
    # A layer: queries, keys, values, scores, averages, mixing, widening, narrowing.
    assert len(shapes) == 6 * 8
    usual = minilm.read(numbers, trained[0])
    assert abs(chosen.rows - usual.rows).max() < 1e-5
    with pytest.raises(ValueError, match="taken by a function; got 3"):
        set_product(3)
