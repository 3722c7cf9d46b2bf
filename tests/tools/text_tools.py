"""Small tools for texts and a grammar for them."""

from __future__ import annotations

from formal_llm import CFG
from formal_llm.tools import Toolkit, tool

TEXTS = CFG.from_string("""
    %order prefix
    T -> D T | F T T | doc
    D -> upper | turned
    F -> join
""")


@tool(pure=True)
def upper(text: str) -> str:
    """Capital letters."""
    return text.upper()


@tool(pure=True)
def turned(text: str) -> str:
    return text[::-1]


@tool(cost=2.5, pure=True)
def join(first: str, second: str) -> str:
    return f"{first}|{second}"


TOOLS = Toolkit([upper, turned, join])
