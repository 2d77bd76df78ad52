"""WordPiece in plain Python, against the `tokenizers` library and against known pieces."""

import random
import sys
import unicodedata

import pytest

from worked_examples import weights, wordpiece

SMALL = wordpiece.vocabulary(
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\ncafe\n,\nx\n##x"
)


@pytest.fixture(scope="module")
def library(trained):
    """Give the library's tokenizer, with the published vocabulary and BERT's settings."""
    from tokenizers import AddedToken
    from tokenizers.implementations import BertWordPieceTokenizer

    path = weights.cache_folder() / "vocab.txt"
    made = BertWordPieceTokenizer(str(path), lowercase=True)
    made.add_special_tokens([AddedToken(token, normalized=False) for token in wordpiece.SPECIAL])
    return made


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("unaffable", ["un", "##aff", "##able"]),
        ("UN Café,", ["un", "cafe", ","]),
        ("Cafe\u0301", ["cafe"]),
        ("unaffabl", ["[UNK]"]),
        ("x" * 100, ["x", *["##x"] * 99]),
        ("x" * 101, ["[UNK]"]),
        ("", []),
        (" \t\n\u00a0\u3000", []),
        ("\x00\u200d\ufffd\x07", []),
        ("u\x00n", ["un"]),
        ("a 犬 b", ["[UNK]"] * 3),
        ("un[MASK]un [cls]", ["un", "[MASK]", "un", *["[UNK]"] * 3]),
    ],
)
def test_pieces_of_a_small_vocabulary(text, tokens):
    found, numbers = wordpiece.encode(text, SMALL)
    assert found == ["[CLS]", *tokens, "[SEP]"]
    assert numbers == [SMALL[token] for token in found]


@pytest.mark.parametrize("text", [None, 3, b"dog", ["dog"]])
def test_what_is_no_text_is_refused(text):
    with pytest.raises(ValueError, match="a text is needed"):
        wordpiece.encode(text, SMALL)


def test_a_vocabulary_without_the_special_tokens_is_refused():
    with pytest.raises(ValueError, match=r"\[CLS\], \[SEP\] and \[UNK\]"):
        wordpiece.encode("dog", {"dog": 0})


# --- against the library -------------------------------------------------------------------------

BY_HAND = [
    "", " ", "\n\t ", "a", "The dog barked at the truck because it was loud.",
    "Don't stop: it's 3.14159, or 22/7 (roughly)!", "e-mail: a.b@c.org; https://x.org/?q=1&r=2#s",
    "naïve façade, jalapeño, Ångström, Søren, Łódź, Dvořák, İstanbul, ẞ, ß, ﬁne",
    "Z̷a̸l̵g̶o̷ ṩ̂ é é", "ΑΒΓ ΣΊΣΥΦΟΣ Ωμέγα", "Привет, Ёлка!", "שָׁלוֹם", "مَرْحَبًا",
    "हिन्दी", "ไทย", "한국어 텍스트",
    "日本語のテキスト、漢字。", "我愛北京天安門 2008年", "𠀀𪚥丽",
    "😀👩‍👩‍👧‍👦🇩🇪👍🏽 ok",
    "a\u200bb\u200dc\ufeffd\u00ade",
    "\x00\x01\x02\x7f\x85\ufffd", "a\u2028b\u2029c\u00a0d\u3000e\x0bf\x0cg", "tab\tnew\r\nline",
    "x" * 99, "x" * 100, "x" * 101, "é" * 100, "é" * 101, "pneumono" * 30, "1234567890" * 12,
    "$100 + 5% = ^ ~ ` | < > _ # @ & * \\ \" '", "…—–‘’“”«»¿¡·•§¶†‡", "½ ² ³ ™ © ® € £ ¥ №",
    "[CLS] [MASK][SEP]x[PAD]y[UNK] [mask] [ MASK ]", "##ing ## ing un##able",
    "ａｂｃ　ＡＢＣ１２３",
    "Ⅷ ⅷ ℌ ℵ 𝔸𝕓 ⓐ", "\U000e0001\ue000\U0010ffff", "i̇ İ ı", "ʼn ǰ ΐ", "\ud7a3\u1100\u1161",
]  # fmt: skip


def alphabets():
    """Collect characters that occur in texts, by the block in which they stand."""
    blocks = {
        "latin": (0x20, 0x250), "marks": (0x300, 0x370), "greek": (0x370, 0x400),
        "cyrillic": (0x400, 0x500), "hebrew": (0x591, 0x5F5), "arabic": (0x600, 0x61C),
        "hindi": (0x900, 0x980), "thai": (0xE00, 0xE5C), "more latin": (0x1E00, 0x2000),
        "punctuation": (0x2000, 0x2070), "signs": (0x20A0, 0x2400), "kana": (0x3000, 0x3100),
        "han": (0x4E00, 0x9FFF), "hangul": (0xAC00, 0xD7A4), "wide": (0xFF00, 0xFFEF),
        "letters for formulas": (0x1D400, 0x1D7FF), "emoji": (0x1F300, 0x1F6D0),
        "rare han": (0x20000, 0x2A6D7), "controls": (0x00, 0x20),
    }  # fmt: skip
    return [[chr(code) for code in range(*block)] for block in blocks.values()]


def lines(count, words, seed=0):
    """Make texts of words and of characters from several alphabets, by a seeded generator."""
    rng = random.Random(seed)
    sets = alphabets()
    common = [word.removeprefix("##") for word in words if word.isascii()]
    for _ in range(count):
        parts = []
        for _ in range(rng.randint(0, 12)):
            kind = rng.random()
            if kind < 0.4:
                word = rng.choice(common)
                parts.append(
                    rng.choice([word, word.upper(), word.title(), word + rng.choice(common)])
                )
            elif kind < 0.5:
                parts.append(str(rng.randint(0, 10 ** rng.randint(0, 12)) / rng.choice([1, 100])))
            elif kind < 0.9:
                alphabet = rng.choice(sets)
                parts.append("".join(rng.choices(alphabet, k=rng.randint(1, 12))))
            else:
                mixed = [rng.choice(rng.choice(sets)) for _ in range(rng.randint(1, 130))]
                parts.append("".join(mixed))
        yield rng.choice(["", " ", "  ", "-"]).join(parts)


def test_it_is_the_library_on_texts_by_hand(trained, library):
    for text in BY_HAND:
        theirs = library.encode(text)
        assert wordpiece.encode(text, trained[1]) == (theirs.tokens, theirs.ids), repr(text)


def test_it_is_the_library_on_thousands_of_lines(trained, library):
    texts = list(lines(4000, list(trained[1])))
    assert len(set(texts)) > 3000
    kinds = {unicodedata.category(c)[0] for text in texts for c in text}
    assert kinds == set("CLMNPSZ")
    for text, theirs in zip(texts, library.encode_batch(texts), strict=True):
        assert wordpiece.encode(text, trained[1]) == (theirs.tokens, theirs.ids), repr(text)


def test_it_is_the_library_on_every_character_but_newer_ones(trained, library):
    """All planes that hold characters, some a text: what differs are signs its table lacks."""
    planes = (range(0xD800), range(0xE000, 0x32000), range(0xE0000, 0xE0200), [sys.maxunicode])
    codes = [chr(code) for plane in planes for code in plane]
    texts = ["".join(f"a{c}b {c} " for c in codes[i : i + 64]) for i in range(0, len(codes), 64)]
    differ = [
        number
        for number, theirs in enumerate(library.encode_batch(texts))
        if wordpiece.encode(texts[number], trained[1])[1] != theirs.ids
    ]
    newer = [
        c
        for number in differ
        for c in codes[64 * number : 64 * number + 64]
        if wordpiece.encode(f"a{c}b {c}", trained[1])[1] != library.encode(f"a{c}b {c}").ids
    ]
    assert len(newer) < 800
    # Latin, Greek, Cyrillic and Hebrew are older than the library's table.
    assert not any(ord(c) < 0x61D for c in newer)
    kinds = {unicodedata.category(c) for c in newer}
    assert kinds <= {"Mn", "Mc", "Cf", "Po", "Ps", "Pe", "Pd", "So"}
