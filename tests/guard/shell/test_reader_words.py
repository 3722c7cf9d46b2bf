"""Words of shell lines: what is known of them before they run."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.guard.shell.reader import decode_ansi_c, read_simple
from tests.strategies import examples


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


PIECES = [
    "a", "\\n", "\\t", "\\\\", "\\'", "\\x41", "\\x4", "\\101", "\\7", "\\u00e9", "\\U0001F600", "\\cA", "\\e", "\\q",
    "\\?", "é", '\\"', "\\xc3\\xa9", "\\1012",
]  # fmt: skip


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@examples(40)
@given(st.lists(st.sampled_from(PIECES), max_size=6).map("".join))
def test_escapes_are_those_of_bash(text: str) -> None:
    told = subprocess.run(
        ["bash", "-c", f"printf %s $'{text}'"], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}, timeout=20
    )
    assert decode_ansi_c(text) == told.stdout.decode("utf-8", "surrogateescape")


def test_a_zero_byte_ends_the_text() -> None:
    assert decode_ansi_c("a\\0b") == "a"
