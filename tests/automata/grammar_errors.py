"""What is said of grammars that cannot be read."""

import pytest

from formal_llm import CFG
from formal_llm.errors import GrammarError, NotationError
from tests.automata.messages import from_caret, quiet


def refuse(text):
    with quiet(), pytest.raises(GrammarError) as caught:
        CFG.from_string(text)
    return caught.value


def check(error, text, line, column, pointed, problem, suggestion):
    """That an error tells its place in the text, what its caret points to, parts of the problem and of the way out."""
    assert problem in error.problem
    assert (error.line, error.column) == (line, column)
    assert error.source_line == text.split("\n")[line - 1]
    if suggestion is None:
        assert "write '->'" not in (error.suggestion or "")
    else:
        assert suggestion in error.suggestion
        assert error.suggestion in str(error)
    assert from_caret(error) == pointed
    assert str(error).startswith(f"<string>:{line}:{column}: {error.problem}")
    assert isinstance(error, NotationError)
    assert isinstance(error, ValueError)
