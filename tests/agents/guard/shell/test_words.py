"""Words of shell lines: what is known of them before they run."""

from __future__ import annotations

import pytest

from formal_llm.agents.guard.shell.reader import read_simple


@pytest.mark.parametrize(
    ("word", "text", "known"),
    [
        ("a'b'\"c\"\\d", "abcd", True), ("$X", "$X", False), ('"$X"', '"$X"', False), ("*.py", "*.py", False),
        ("'*.py'", "*.py", True), ("~/x", "~/x", False), ("a~", "a~", True), ("{a,b}", "{a,b}", False),
        ("{}", "{}", True),
        ("{a}", "{a}", True), ("$", "$", True), ("a$", "a$", True), ("[", "[", True), ("$((1+2))", "$((1+2))", False),
        ("\\$X", "$X", True), ('"\\$X"', "$X", True), ("$'a\\tb'", "a\tb", True), ('$"x"', "x", True),
        ("{1..3}", "{1..3}", False),
    ],
)  # fmt: skip
def test_words(word: str, text: str, known: bool) -> None:
    (command,), unsure = read_simple(f"echo {word}")
    assert not unsure
    assert (command.words[1].text, command.words[1].known) == (text, known)
