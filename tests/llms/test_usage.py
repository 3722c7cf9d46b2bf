"""What answers cost."""

from __future__ import annotations

from formal_llm.llms import TokenUsage


def test_token_usage_adds_up() -> None:
    assert TokenUsage(1, 10, 2) + TokenUsage(1, 5, 1) == TokenUsage(2, 15, 3)
