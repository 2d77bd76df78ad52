"""WordPiece: cut text into the pieces that a BERT model has vectors for, in plain Python.

Three steps: clean the text and bring it to lower case without accents; cut it at spaces, at
punctuation and around Chinese characters; take from each word the longest piece that the
vocabulary holds, then the longest from what is left, which is written with ``##`` before it.

The rules are those of Devlin et al. (2019) for uncased models, as the `tokenizers` library applies
them; the tests compare the two. Which characters are accents or punctuation is looked up in
Python's own Unicode table. The library's is older: some 500 characters that came after it, nearly
all accents and punctuation of rare scripts, are the only ones treated in another way.
"""

import re
import unicodedata

__all__ = ["LONGEST_WORD", "SPECIAL", "encode", "pieces", "vocabulary", "words"]

# What a vocabulary holds beside pieces; written in a text, they stand for themselves.
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
# A word of more characters than this is unknown, whatever the vocabulary holds.
LONGEST_WORD = 100

_SPECIAL = re.compile("(" + "|".join(map(re.escape, SPECIAL)) + ")")
# As the library has them; Devlin et al. begin the sixth block at 2B820.
_CHINESE = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


def vocabulary(lines):
    r"""Give the pieces of a vocabulary's file their numbers.

    Parameters
    ----------
    lines : str
        The file's text: one piece a line.

    Returns
    -------
    dict of str to int

    Examples
    --------
    >>> vocabulary("[PAD]\ndog\n")
    {'[PAD]': 0, 'dog': 1}
    """
    return {piece: number for number, piece in enumerate(lines.removesuffix("\n").split("\n"))}


def words(text):
    """Clean a text, bring it to lower case without accents, and cut it into words.

    Parameters
    ----------
    text : str

    Returns
    -------
    list of str
        Each a word, a mark of punctuation or a Chinese character.

    Examples
    --------
    >>> words("Déjà vu, at 3.5?")
    ['deja', 'vu', ',', 'at', '3', '.', '5', '?']
    """
    spaced = "".join(_spaced(character) for character in text)
    bare = "".join(
        character.lower()
        for character in unicodedata.normalize("NFD", spaced)
        if unicodedata.category(character) != "Mn"
    )
    return "".join(f" {c} " if _is_punctuation(c) else c for c in bare).split()


def pieces(word, vocabulary):
    """Cut a word into the longest pieces that the vocabulary holds, from its start.

    Parameters
    ----------
    word : str
    vocabulary : container of str

    Returns
    -------
    list of str
        ``["[UNK]"]`` if some part of the word is in no piece, or the word is longer than
        LONGEST_WORD characters.

    Examples
    --------
    >>> pieces("barked", {"bark", "bar", "##ked", "##ed"})
    ['bark', '##ed']
    >>> pieces("bird", {"b", "##ir"})
    ['[UNK]']
    """
    found, start = [], 0
    while start < len(word) <= LONGEST_WORD:
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in vocabulary:
                break
        else:
            return ["[UNK]"]
        found.append(piece)
        start = end
    return found or ["[UNK]"]


def encode(text, vocabulary):
    r"""Turn a text into the tokens that the model reads, with [CLS] before and [SEP] after it.

    Parameters
    ----------
    text : str
        A text without words gives the two tokens alone.
    vocabulary : dict of str to int
        As `vocabulary` makes it.

    Returns
    -------
    tokens : list of str
    numbers : list of int
        Of the same length: the tokens' places in the vocabulary.

    Raises
    ------
    ValueError
        If what came is not text, or the vocabulary lacks [CLS], [SEP] or [UNK].

    Examples
    --------
    >>> places = vocabulary("[UNK]\n[CLS]\n[SEP]\na\ndog\n##s")
    >>> encode("A cat, dogs", places)
    (['[CLS]', 'a', '[UNK]', '[UNK]', 'dog', '##s', '[SEP]'], [1, 3, 0, 0, 4, 5, 2])
    """
    if not isinstance(text, str):
        raise ValueError(f"a text is needed; got {text!r}")
    if not {"[CLS]", "[SEP]", "[UNK]"} <= vocabulary.keys():
        raise ValueError("the vocabulary must hold [CLS], [SEP] and [UNK]")
    tokens = ["[CLS]"]
    for part in _SPECIAL.split(text):
        special = part in SPECIAL and part in vocabulary
        for word in [] if special else words(part):
            tokens += pieces(word, vocabulary)
        tokens += [part] if special else []
    tokens.append("[SEP]")
    return tokens, [vocabulary[token] for token in tokens]


def _spaced(character):
    """Drop what cannot be seen, make every space plain, set Chinese characters apart."""
    if character in "\t\n\r" or character.isspace() and unicodedata.category(character)[0] == "Z":
        return " "
    if character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cf", "Co"):
        return ""
    if any(first <= ord(character) <= last for first, last in _CHINESE):
        return f" {character} "
    return character


def _is_punctuation(character):
    return character in "$+<=>^`|~" or unicodedata.category(character)[0] == "P"
