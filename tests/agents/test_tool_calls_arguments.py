"""Arguments of tools by their schemas."""

from __future__ import annotations

import pytest

from formal_llm.agents.tool_calls import MOST_ARGUMENT, build_value_schema, list_parameters, parse_value
from formal_llm.tools import tool
from formal_llm.tools.kinds import IMAGE, TEXT, Kind

SHARE = Kind("share", float, dump=lambda value: str(value).encode(), load=float)


def test_which_kinds_are_written() -> None:
    assert build_value_schema(TEXT) == {"type": "string", "maxLength": MOST_ARGUMENT}
    assert build_value_schema(SHARE) == {"type": "number"}
    assert build_value_schema(IMAGE) is None


def test_values() -> None:
    assert parse_value(SHARE, 1).get() == 1.0
    assert parse_value(TEXT, "a").get() == "a"
    with pytest.raises(ValueError, match="text"):
        parse_value(TEXT, "\ud800")


def test_names_of_arguments() -> None:
    @tool(inputs=["text", "text"], output="text")
    def joined(*parts: str) -> str:
        return "".join(parts)

    assert list_parameters(joined) == ("input_1", "input_2")
