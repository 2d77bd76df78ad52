"""The book's figures with matplotlib: one module a topic, each function returns a Figure."""

from worked_examples.figures.style import use_book_style

__all__ = ["use_book_style"]
