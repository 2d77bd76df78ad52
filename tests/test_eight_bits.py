"""The trained model in 8 bits: the file, what it costs, and the sentence that a reader types."""

import base64
import hashlib
import json
import types

import numpy as np
import pytest
from bs4 import BeautifulSoup
from sphinx_ext import model as serving
from tools import eight_bits as tool

from worked_examples import eight_bits, live, minilm, weights, wordpiece
from worked_examples.own_sentence import ABOUT, MOST, OwnSentence
from worked_examples.sentences import Model

# What the page states is measured; this is what nobody should have to read there.
MOST_OF_A_WEIGHT, MOST_OF_A_COSINE, MOST_OF_A_LAYER = 0.12, 0.02, 0.06
LINES = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\ndog\nbarked\n.\n"


def small_arrays(seed=0):
    """Make arrays of the model's names and widths, with eight words and random entries."""
    rng = np.random.default_rng(seed)
    d, H = 384, 1536
    shapes = {
        "embeddings.word_embeddings.weight": (8, d),
        "embeddings.position_embeddings.weight": (512, d),
        "embeddings.token_type_embeddings.weight": (2, d),
    }
    for layer in range(minilm.LAYERS):
        part = f"encoder.layer.{layer}."
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            shapes[f"{part}attention.{name}.weight"] = (d, d)
            shapes[f"{part}attention.{name}.bias"] = (d,)
        for name, shape in (("intermediate.dense", (H, d)), ("output.dense", (d, H))):
            shapes[f"{part}{name}.weight"], shapes[f"{part}{name}.bias"] = shape, shape[:1]
    norms = ["embeddings.LayerNorm"] + [
        f"encoder.layer.{layer}.{name}.LayerNorm"
        for layer in range(minilm.LAYERS)
        for name in ("attention.output", "output")
    ]
    arrays = {
        name: (0.05 * rng.normal(size=shape)).astype(np.float32) for name, shape in shapes.items()
    }
    for norm in norms:
        arrays[f"{norm}.weight"], arrays[f"{norm}.bias"] = np.ones((2, d), np.float32)
    arrays["pooler.dense.weight"] = np.eye(d, dtype=np.float32)
    arrays["embeddings.position_ids"] = np.arange(512)[None]
    return arrays


@pytest.fixture(scope="module")
def packed():
    return eight_bits.pack(small_arrays(), LINES)


# --- the file ------------------------------------------------------------------------------------


def test_each_entry_moves_by_half_a_step_at_most():
    matrix = np.random.default_rng(0).normal(size=(40, 30)) * np.logspace(-6, 6, 40)[:, None]
    codes, steps = eight_bits.cut(matrix)
    assert codes.dtype == np.int8
    assert (abs(codes).max(axis=1) == 127).all()
    off = abs(eight_bits.written_out(codes, steps) - matrix)
    assert (off <= 0.5001 * steps[:, None]).all()
    assert off.max() > 0


def test_a_row_of_zeros_stays_one():
    codes, steps = eight_bits.cut(np.zeros((2, 3)))
    assert eight_bits.written_out(codes, steps).tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("matrix", [np.ones(3), [[np.nan]], [[np.inf]], np.ones((1, 2, 3))])
def test_what_is_no_matrix_of_numbers_is_refused(matrix):
    with pytest.raises(ValueError, match="matrix of finite numbers"):
        eight_bits.cut(matrix)


def test_the_file_is_a_safetensors_file(packed):
    load = pytest.importorskip("safetensors.numpy").load
    parts = load(packed)
    assert parts["vocab.txt"].tobytes().decode() == LINES
    codes, steps = eight_bits.cut(small_arrays()["encoder.layer.3.output.dense.weight"])
    np.testing.assert_array_equal(parts["encoder.layer.3.output.dense.weight"], codes)
    np.testing.assert_array_equal(parts["encoder.layer.3.output.dense.weight.step"], steps)
    assert not [name for name in parts if name.startswith("pooler") or "position_ids" in name]


def test_what_was_packed_comes_back(packed):
    arrays, vocabulary = eight_bits.unpack(packed)
    original = small_arrays()
    assert vocabulary == wordpiece.vocabulary(LINES)
    words = arrays.pop("embeddings.word_embeddings.weight")
    assert words.shape == (8, 384)
    np.testing.assert_array_equal(
        words[[7, 0, 7]],
        eight_bits.written_out(*eight_bits.cut(original["embeddings.word_embeddings.weight"]))[
            [7, 0, 7]
        ],
    )
    for name, array in arrays.items():
        assert array.dtype == np.float32
        assert array.shape == original[name].shape
        if array.ndim == 1 or "token_type" in name:
            np.testing.assert_array_equal(array, original[name])


def test_the_same_model_gives_the_same_bytes(packed):
    assert eight_bits.pack(dict(reversed(small_arrays().items())), LINES) == packed


@pytest.mark.parametrize("length", [0, 5, 100, 5000, -1])
def test_half_a_file_is_refused(packed, length):
    with pytest.raises(ValueError, match="not the whole of it"):
        eight_bits.unpack(packed[:length])


@pytest.mark.parametrize("data", [b"[]" * 50, b"\2" + bytes(7) + b"{}", b"\7" * 99])
def test_another_file_is_refused(data):
    with pytest.raises(ValueError, match="is not the model's file"):
        eight_bits.unpack(data)


# --- what 8 bits cost ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def both(trained):
    lines = (weights.cache_folder() / "vocab.txt").read_text("utf-8")
    return trained, eight_bits.unpack(eight_bits.pack(trained[0], lines))


def test_the_cost_is_within_bounds_and_is_not_nothing(both):
    (arrays, vocabulary), (cut, _) = both
    found = tool.cost(tool.texts(vocabulary), arrays, cut, vocabulary)
    assert found["texts"] >= 36
    assert 0.01 < found["weight"] < MOST_OF_A_WEIGHT
    assert 0 < found["mean weight"] < 0.002
    assert 0 < found["cosine"] < MOST_OF_A_COSINE
    assert len(found["layers"]) == minilm.LAYERS + 1
    assert 0 < max(found["layers"]) < MOST_OF_A_LAYER


def test_a_coarser_cut_costs_more(both, monkeypatch):
    (arrays, vocabulary), (cut, _) = both
    texts = tool.texts(vocabulary)[:4]
    fine = tool.cost(texts, arrays, cut, vocabulary)
    monkeypatch.setattr(eight_bits, "LARGEST", 7)
    coarse, _ = eight_bits.unpack(eight_bits.pack(arrays, "\n".join(vocabulary)))
    for name in ("weight", "mean weight", "cosine"):
        assert tool.cost(texts, arrays, coarse, vocabulary)[name] > 3 * fine[name]


def test_numpy_without_blas_gets_the_same_products():
    rng = np.random.default_rng(0)
    for A, B in (((5, 8), (8, 3)), ((2, 5, 8), (8, 3)), ((2, 4, 5, 8), (2, 4, 8, 3))):
        A, B = rng.normal(size=A), rng.normal(size=B)
        np.testing.assert_allclose(live.product_without_blas(A, B), A @ B, rtol=0, atol=1e-12)


# --- laid out for the site -----------------------------------------------------------------------


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Give a folder to build in, and a small model for the real one."""
    for name in tool.SOURCES:
        path = tmp_path / "code" / "worked_examples" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((tool.ROOT / "code" / "worked_examples" / f"{name}.py").read_bytes())
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setenv("WORKED_EXAMPLES_MODEL", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "vocab.txt").write_text(LINES)
    asked = []

    def load():
        asked.append(1)
        return small_arrays(), wordpiece.vocabulary(LINES)

    monkeypatch.setattr(weights, "load", load)
    monkeypatch.setattr(tool, "texts", lambda vocabulary: ["the dog.", "barked"])
    return types.SimpleNamespace(path=tmp_path, asked=asked)


def test_the_layout_is_made_once_and_named_after_its_bytes(root):
    ready = tool.lay_out(root.path)
    assert tool.lay_out(root.path) == ready == tool.laid_out(root.path)
    assert root.asked == [1]
    path = root.path / "_build" / "model" / ready["path"]
    sum_ = hashlib.sha256(path.read_bytes())
    assert path.stat().st_size == ready["size"]
    assert ready["integrity"] == "sha256-" + base64.b64encode(sum_.digest()).decode()
    assert path.parent.name == sum_.hexdigest()[:16]
    source = root.path / "code" / "worked_examples" / "attention.py"
    source.write_text(source.read_text() + "# another version\n")
    assert tool.laid_out(root.path) is None


def test_without_the_model_the_tool_says_so_and_nothing_stays(root, monkeypatch, capsys):
    tool.lay_out(root.path)

    def load():
        raise weights.Unavailable("the hub is away")

    monkeypatch.setattr(weights, "load", load)
    monkeypatch.setattr(tool, "key", lambda root: "another")
    assert tool.main() == 0
    assert capsys.readouterr().out == "The page will have no model to load: the hub is away.\n"
    assert not (root.path / "_build" / "model").exists()


def page(book_model, book_runtime="k"):
    context = {"body": OwnSentence().page(), "pathto": lambda address, resource: f"../{address}"}
    config = types.SimpleNamespace(book_model=json.dumps(book_model), book_runtime=book_runtime)
    serving.offer(types.SimpleNamespace(config=config), "book/x", "page.html", context, None)
    return BeautifulSoup(context["body"], "html.parser")


READY = {
    "path": "s/m.bin", "size": 23_456_789, "integrity": "sha256-x",
    "cost": {"texts": 40, "weight": 0.0914, "mean weight": 0.0013, "layers": [], "cosine": 0.0099},
}  # fmt: skip


def test_a_page_with_the_model_says_what_the_button_loads_and_what_8_bits_cost():
    section = page(READY).select_one("[data-typed]")
    assert section["data-file"] == "../_model/s/m.bin"
    assert (section["data-size"], section["data-integrity"]) == ("23456789", "sha256-x")
    assert section.select_one(".typed-offer button").get_text() == "Load the model (23.5 MB)"
    for said in ("40 texts", "0.091", "0.0013", "0.010"):
        assert said in section["data-about"]


@pytest.mark.parametrize(("model", "runtime"), [(None, "k"), (READY, "")])
def test_a_page_without_the_model_or_python_has_nothing_to_press(model, runtime):
    section = page(model, runtime).select_one("[data-typed]")
    assert not section.has_attr("data-file")
    assert "built without the trained model" in section.get_text()
    assert ABOUT not in section.get_text()
    for part in (".typed-offer", "form"):
        assert section.select_one(part).has_attr("hidden")


# --- what readers type ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own(packed):
    return OwnSentence(Model(*eight_bits.unpack(packed)))


def said(html):
    alerts = BeautifulSoup(html, "html.parser").select("[role=alert]")
    return [alert.get_text() for alert in alerts]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "There is no word here to read. Type a sentence."),
        (" \n\t\u200b ", "There is no word here to read. Type a sentence."),
        ("dog " * 127, "This text has 129 tokens, with [CLS] and [SEP]; up to 128 are read here. "
         "Shorten it by 1."),
        ("dog " * 4000, "This text has 4002 tokens, with [CLS] and [SEP]; up to 128 are read here. "
         "Shorten it by 3874."),
        ("x" * 20_001, "This text has 20,001 characters, more than can belong to 128 tokens. "
         "Shorten it to a few sentences."),
    ],
)  # fmt: skip
def test_what_cannot_be_read_gets_one_sentence(own, text, sentence):
    assert said(own.result(text, 0, 0)) == [sentence]


@pytest.mark.parametrize("count", [1, 7, 38, 39, 126])
def test_every_length_is_shown_with_its_tokens_and_rows(own, count):
    html = own.result("dog " * count, 5, 11)
    page = BeautifulSoup(html, "html.parser")
    assert said(html) == []
    assert f"{count + 2} tokens: [CLS] dog" in page.select_one(".typed-tokens").get_text()
    assert len(page.select("table")[1].select("tbody tr")) == count + 2
    assert bool(page.select("image")) == (count + 2 > 40)
    assert len(html) < 40_000 or count + 2 <= 40


def test_a_text_that_the_model_does_not_know_is_shown_and_told(own):
    html = own.result("犬 ☃", 0, 0)
    assert "The model knows no part of this text" in html
    assert said(html) == []
    assert "The model knows no part" not in own.result("dog ☃", 0, 0)


def test_a_text_is_read_once(own, monkeypatch):
    own.result("the dog barked.", 0, 0)
    monkeypatch.setattr(minilm, "read", None)
    assert "Weights of layer 3, head 7" in own.result("the dog barked.", 3, 7)


def test_what_is_shown_is_what_the_model_computes(own):
    text = "the dog barked."
    tokens, reading = own.model.read(text)
    table = BeautifulSoup(own.result(text, 4, 9), "html.parser").select("table")[1]
    rows = [[cell.get_text() for cell in row.select("th, td")] for row in table.select("tbody tr")]
    A = reading.maps[4, 9]
    assert [row[0] for row in rows] == [f"{i} {token}" for i, token in enumerate(tokens)]
    assert [row[3] for row in rows] == [f"{weight:.2f}" for weight in A.max(axis=1)]
    assert [row[2].split()[0] for row in rows] == [str(j) for j in A.argmax(axis=1)]


def test_the_page_s_python_takes_the_file_and_answers(packed, monkeypatch):
    monkeypatch.setattr(live, "OWN", OwnSentence())
    chosen = []
    monkeypatch.setattr(live, "set_product", chosen.append)
    values = json.dumps({"text": "dog", "layer": 0, "head": 2})
    assert "could not be had" in live.answer("own_sentence", values)
    # As the page's own kind of array.
    assert live.take(types.SimpleNamespace(to_bytes=lambda: packed)) == ""
    assert chosen == [live.product_without_blas]
    assert live.answer("own_sentence", values) == OwnSentence(
        Model(*eight_bits.unpack(packed))
    ).result("dog", 0, 2)


def test_a_label_for_the_box_and_a_name_for_every_control():
    html = BeautifulSoup(OwnSentence().page(), "html.parser")
    fields = html.select("textarea, input, select")
    labels = {label["for"] for label in html.select("label")}
    assert labels == {field["id"] for field in fields if "aria-label" not in field.attrs}
    assert html.select_one("progress")["aria-label"]
    assert html.select_one("[role=status]").get_text() == ""
    assert str(MOST) in html.select_one("label").get_text()
