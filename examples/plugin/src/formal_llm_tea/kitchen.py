"""The toolkit ``kitchen``: what carries the plans of the pack ``tea`` out."""

from __future__ import annotations

from formal_llm import Toolkit, tool


@tool
def steep(leaves: str) -> str:
    """Steep leaves in hot water."""
    return f"brew of {leaves.strip()}"


@tool
def pour(brew: str) -> str:
    """Pour a brew into a cup."""
    return f"cup with {brew}"


@tool
def milk(cup: str) -> str:
    """Add milk."""
    return f"{cup}, milk"


@tool
def honey(cup: str) -> str:
    """Add honey."""
    return f"{cup}, honey"


def kitchen() -> Toolkit:
    """The toolkit; made when somebody asks for it."""
    return Toolkit([steep, pour, milk, honey])
