"""Mermaid texts as the nodes and arrows that they draw."""

from formal_llm.automata.notation.mermaid import parse
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import NotationError


def read(body, header="flowchart TD\n"):
    return parse(SourceText.from_text(header + body, None, NotationError))


def links(body):
    return [(edge.source, edge.text, edge.target) for edge in read(body).edges]
