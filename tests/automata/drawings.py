"""Mermaid texts as the nodes and links that they draw."""

from formal_llm.automata.notation.mermaid import parse
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import NotationError


def read(body, header="flowchart TD\n"):
    return parse(SourceText.from_text(header + body, None, NotationError))


def links(body):
    return [(link.source, link.text, link.target) for link in read(body).links]
