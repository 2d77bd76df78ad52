"""Keep the words of a link to the bibliography.

In a chapter `[Vaswani et al. (2017)](#vaswani2017)` is a plain link, which Colab shows as such.
sphinxcontrib-bibtex finds where it leads, and would put its own label in brackets for the words.
"""

from sphinx.util.nodes import make_refnode
from sphinxcontrib.bibtex.domain import BibtexDomain


def resolve_link(self, env, fromdocname, builder, target, node, contnode):
    """Return a link with the author's words; an entry of the bibliography is its target.

    A link without words of its own gets the usual label.
    """
    if not node.get("refexplicit"):
        return _resolve(self, env, fromdocname, builder, target, node, contnode)
    return [
        ("cite:p", make_refnode(builder, fromdocname, place.docname, entry.citation_id, contnode))
        for entry in self.citations
        if entry.key == target and (place := entry.bibliography_key)
    ]


def setup(app):
    """Replace what the domain answers for links whose kind is open."""
    BibtexDomain.resolve_any_xref = resolve_link


_resolve = BibtexDomain.resolve_any_xref
