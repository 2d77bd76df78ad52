"""What the trained model does with some sentences: measured traits, and the small file."""

import math
import sys

import numpy as np
import pytest
from tools import model as tool

from worked_examples import minilm, sentences, weights
from worked_examples.attention import entropy
from worked_examples.own_sentence import MOST, OwnSentence
from worked_examples.views import sentences as views

TOKENS = ["[CLS]", "the", "dog", "the", "[SEP]"]


@pytest.fixture(scope="module")
def model(trained):
    return sentences.Model(*trained)


def by_hand(A, tokens):
    """Measure one map with loops over its entries."""
    L = len(tokens)
    place = [(i, j) for i in range(L) for j in range(L)]
    bits = -sum(A[i, j] * math.log2(A[i, j]) for i, j in place if A[i, j] > 0) / L
    return [
        bits,
        sum(A[i, i - 1] for i in range(1, L)) / (L - 1),
        sum(A[i, i + 1] for i in range(L - 1)) / (L - 1),
        sum(A[i, j] for i, j in place if tokens[i] == tokens[j]) / L,
        sum(A[i, j] for i, j in place if tokens[j] in ("[CLS]", "[SEP]")) / L,
        sum(A[i, j] * abs(i - j) for i, j in place) / L,
    ]


def drawn(*shape):
    powers = np.exp(2 * np.random.default_rng(1).normal(size=shape))
    return powers / powers.sum(axis=-1, keepdims=True)


def test_traits_are_what_loops_measure():
    maps = drawn(2, 3, 5, 5)
    found = sentences.traits(maps, TOKENS)
    assert found.shape == (2, 3, len(sentences.TRAITS))
    for index in np.ndindex(2, 3):
        assert found[index] == pytest.approx(by_hand(maps[index], TOKENS), abs=1e-12)


@pytest.mark.parametrize(
    ("offset", "trait"), [(-1, "previous"), (1, "next"), (0, "same")], ids=lambda x: str(x)
)
def test_a_head_that_does_one_thing_has_one_trait(offset, trait):
    L = 6
    A = np.zeros((L, L))
    for i in range(L):
        A[i, min(max(i + offset, 0), L - 1)] = 1
    found = dict(zip(sentences.TRAITS, sentences.traits(A, list("abcdef")), strict=True))
    assert found[trait] == 1
    assert found["entropy"] == 0
    assert found["distance"] == pytest.approx(0 if offset == 0 else 5 / 6)


def test_one_token_has_traits():
    assert sentences.traits(np.ones((1, 1)), ["dog"]).tolist() == [0, 0, 0, 1, 0, 0]


def test_destinations_share_out_each_row_once():
    A = drawn(4, 5, 5)
    shares = sentences.destinations(A, TOKENS)
    assert shares.sum(axis=-1) == pytest.approx(1)
    kinds = [
        ["before" if i - j == 1 else "after" if j - i == 1 else
         "same" if TOKENS[i] == TOKENS[j] else
         "separator" if TOKENS[j] in ("[CLS]", "[SEP]") else "other" for j in range(5)]
        for i in range(5)
    ]  # fmt: skip
    for k, kind in enumerate(("before", "after", "same", "separator", "other")):
        wanted = sum(A[:, i, j] for i in range(5) for j in range(5) if kinds[i][j] == kind) / 5
        assert shares[:, k] == pytest.approx(wanted)


@pytest.mark.parametrize("L", [1, 2, 3, 13])
def test_shuffled_positions_keep_the_ends(L):
    found = sentences.shuffled(L, 3)
    assert sorted(found) == list(range(L))
    assert found[0] == 0
    assert found[-1] == L - 1
    if L > 6:
        assert found.tolist() != list(range(L))
        assert found.tolist() != sentences.shuffled(L, 4).tolist()


def test_least_first_orders_heads():
    assert sentences.least_first(np.array([[3.0, 1.0], [2.0, 0.5]])) == [
        (1, 1), (0, 1), (1, 0), (0, 0)
    ]  # fmt: skip


# --- the small file ------------------------------------------------------------------------------

# How far another processor's rounding may move what was recorded: a step of float16 for queries
# and keys near 8, and what it makes of a cosine.
ROOM = {"queries": 2**-8, "keys": 2**-8}


def test_the_small_file_is_what_the_model_gives(model):
    held, made = sentences.recorded(), sentences.measure(model, heads=False)
    assert set(held) - set(made) == {"effects", "off"}
    for name, array in made.items():
        assert held[name].dtype == array.dtype, name
        assert held[name].shape == array.shape, name
        if array.dtype.kind in "Ui":
            assert held[name].tolist() == array.tolist(), name
        else:
            apart = abs(held[name].astype(float) - array.astype(float)).max()
            assert apart <= ROOM.get(name, 2e-4), name


def test_what_was_recorded_of_heads_switched_off_is_what_the_model_gives(model):
    """A sample of the two tables that take long: a head of each layer, and half of all heads."""
    held = sentences.recorded()
    base = [sentences.vector(model, text) for text in sentences.TEXTS]
    for pair in ((0, 2), (1, 8), (2, 0), (3, 11), (4, 5), (5, 5)):
        assert sentences.effect(model, base, [pair]) == pytest.approx(
            held["effects"][pair], abs=2e-4
        )
    order, half = sentences.least_first(held["effects"]), list(sentences.STEPS).index(36)
    for curve, first in zip(held["off"], (order, order[::-1]), strict=True):
        assert 1 - sentences.effect(model, base, first[:36]) == pytest.approx(curve[half], abs=2e-3)
    assert held["off"][:, 0] == pytest.approx([1, 1])
    assert held["off"][0, -1] == pytest.approx(held["off"][1, -1])


def test_the_small_file_is_small_and_plain():
    assert tool.SMALL.stat().st_size < 300_000
    with np.load(tool.SMALL, allow_pickle=False) as file:
        assert all(file[name].dtype.kind != "O" for name in file.files)


def test_the_same_numbers_are_packed_into_the_same_bytes():
    held = sentences.recorded()
    assert tool.packed(held) == tool.packed(dict(held)) == tool.SMALL.read_bytes()


def test_maps_from_float16_are_near_those_of_the_model(model):
    for number, text in enumerate(sentences.SHOWN):
        tokens, maps = sentences.shown_maps(number)
        theirs, reading = model.read(text)
        assert tokens == theirs
        assert abs(maps - reading.maps).max() <= 0.0006
        # float32 keeps what float16 lost: the two are not the same file.
        assert abs(maps - reading.maps).max() > 1e-6


def test_the_maps_without_the_divisor_are_those_of_other_weights():
    tokens, plain = sentences.shown_maps(0)
    _, sharp = sentences.shown_maps(0, divide=False)
    assert entropy(sharp).mean() < 0.2 * entropy(plain).mean()
    assert sharp.shape == plain.shape == (minilm.LAYERS, minilm.HEADS, len(tokens), len(tokens))


def test_what_was_found_in_the_heads():
    """The facts that the chapter stands on, from the small file alone."""
    tokens, maps = sentences.shown_maps(0)
    assert len(tokens) == 13
    assert round(math.log2(13), 2) == 3.7
    assert round(float(np.diagonal(maps[0, 2], -1).mean()), 2) == 1
    assert round(float(entropy(maps[0, 2]).mean()), 2) == 0
    assert round(float(entropy(maps[0, 3]).mean()), 2) == 3.34
    it, dog, truck = (tokens.index(word) for word in ("it", "dog", "truck"))
    assert round(float(maps[5, 5, it, truck]), 2) == 0.43
    assert round(float(maps[5, 11, it, dog]), 2) == 0.48


def test_a_model_that_cannot_be_had_is_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("WORKED_EXAMPLES_MODEL", str(tmp_path))
    monkeypatch.setenv("WORKED_EXAMPLES_OFFLINE", "1")
    assert sentences.open_model() is None
    printed = capsys.readouterr().out
    assert printed.startswith("Without the model's file: vocab.txt and model.safetensors of")
    assert printed.count("\n") == 1


def test_the_tool_goes_on_without_the_model_but_records_nothing(monkeypatch, tmp_path, capsys):
    def fail():
        raise weights.Unavailable("nothing can be had")

    monkeypatch.setattr(weights, "obtain", fail)
    monkeypatch.setattr(weights, "load", fail)
    monkeypatch.setattr(tool, "SMALL", tmp_path / "a.npz")
    assert tool.main([]) == 0
    assert "goes without its file: nothing can be had." in capsys.readouterr().out
    assert tool.main(["record"]) == 1
    assert not (tmp_path / "a.npz").exists()


# --- the view, and the reader's own sentence -----------------------------------------------------


def test_the_view_shows_every_token_and_every_row_s_entropy():
    tokens, maps = sentences.shown_maps(0)
    html = views.head(sentence=next(iter(views.NAMES)), layer=5, head=5, divide=True)
    for token, bits in zip(tokens, entropy(maps[5, 5]), strict=True):
        assert html.count(f">{token}</text>") == 2 * tokens.count(token)
        assert f">{bits:.2f}</text>" in html
    assert html.count("fill-opacity") == (maps[5, 5] > 0.005).sum()


def test_a_sentence_s_name_is_its_end():
    for name, number in views.NAMES.items():
        assert sentences.SHOWN[number].endswith(name.removeprefix("…"))
    assert sorted(views.NAMES.values()) == list(range(len(sentences.SHOWN)))


def test_a_token_that_looks_like_markup_is_written_out():
    maps = np.full((6, 12, 3, 3), 1 / 3)
    tokens = ["<b>", "&", '"']
    html = views.head_of(tokens, maps, sentences.traits(maps, tokens), 0, 0)
    assert "<b>" not in html
    assert "&lt;b&gt;" in html


@pytest.mark.parametrize("text", ["a", "\u0b95 \u2603", "<b>&</b>", "it " * (MOST - 2)])
def test_any_sentence_can_be_read(model, text):
    html = OwnSentence(model).result(text, 5, 11)
    assert "<svg" in html
    assert "<b>" not in html
    assert "nan" not in html


def test_a_text_that_is_too_long_is_one_line(model):
    box = OwnSentence(model)
    for count in (129, 513):
        html = box.result("it " * (count - 2), 0, 0)
        assert f"has {count} tokens, with [CLS] and [SEP]; up to {MOST}" in html
        assert "<svg" not in html


def test_a_sentence_is_read_once_for_all_its_heads(model, monkeypatch):
    box = OwnSentence(model)
    first = box.result("The dog barked.", 0, 0)
    monkeypatch.setattr(minilm, "read", None)
    assert box.result("The dog barked.", 0, 2) != first


def test_without_the_model_the_box_says_so():
    assert "could not be had" in OwnSentence(None).result("The dog barked.", 0, 0)


def test_the_box_shows_what_is_typed(model):
    box = OwnSentence(model).widget()
    text, sliders, output = box.children
    text.value = "A cat."
    assert ">cat</text>" in output.value
    before = output.value
    sliders.children[1].value = 7
    assert output.value != before


def test_a_page_and_a_notebook_get_what_they_can_show(model, monkeypatch):
    bundle = OwnSentence(model)._repr_mimebundle_()
    assert "Jupyter or Colab" in bundle["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in bundle
    monkeypatch.setitem(sys.modules, "google.colab", object())
    assert "text/html" not in OwnSentence(model)._repr_mimebundle_()
