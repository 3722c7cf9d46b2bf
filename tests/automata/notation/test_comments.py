"""Comments of grammars stay with the lines that they stand with."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, Limits
from formal_llm.automata.notation.cfg_syntax import uncommented
from formal_llm.automata.notation.comments import TOP, collect, commented
from tests.strategies import examples, told_grammars

WRITTEN = """# Plans of a day
# by nobody

%start S  # begins here
# once each
%limit 1 a b
%limit 2 c  # twice

# the rule
S -> a B  # first
# the second
    | c "text # no"  # beside
B -> a | b  # both
    | c

a "label"  # labelled
c money=3  # three
# the end
"""


def test_a_text_as_it_is_printed_stays_as_it_is() -> None:
    assert str(CFG.from_string(WRITTEN)) == WRITTEN


def test_other_spacing_keeps_all_comments() -> None:
    loose = WRITTEN.replace(" -> ", "  ::=  ").replace("  # ", "# ").replace("%limit 1 a b", "%limit 1 a\n%limit b 1")
    assert sorted(re.findall("# .*", str(CFG.from_string(loose)))) == sorted(re.findall("# .*", WRITTEN))


def test_lines_that_change_lose_their_comments_and_no_others() -> None:
    cfg = CFG.from_string(WRITTEN)
    changed = str(cfg.with_labels({"a": "other"}).with_limits(Limits({"c": 3})))
    gone = {"# labelled", "# twice", "# once each"}
    assert set(re.findall("# [a-zP].*", WRITTEN)) - set(re.findall("# [a-zP].*", changed)) == gone
    assert CFG.from_string(changed) == cfg.with_labels({"a": "other"}).with_limits(Limits({"c": 3}))


def test_comments_mean_nothing() -> None:
    plain = CFG.from_string(re.sub(r"(?m)(?<!text )# .*$", "", WRITTEN))
    assert CFG.from_string(WRITTEN) == plain
    assert hash(CFG.from_string(WRITTEN)) == hash(plain)
    assert "#" not in str(plain).replace("text # no", "")


@pytest.mark.filterwarnings("ignore::formal_llm.errors.GrammarWarning")
@given(told_grammars(repeats=True), st.data())
@examples(60)
def test_whatever_is_commented_where(cfg: CFG, data: st.DataObject) -> None:
    comment = st.sampled_from(("", "", "# x", '# "y" -> z', "#", "# | q"))
    lines = []
    for line in str(cfg).split("\n")[:-1]:
        above = data.draw(comment)
        lines += (
            [above, f"{line} {data.draw(comment)}".rstrip()] if above else [f"{line} {data.draw(comment)}".rstrip()]
        )
    text = "\n".join(lines)
    try:
        found = CFG.from_string(text)
    except ValueError:
        return  # an empty language
    assert found == cfg
    printed = str(found)
    assert CFG.from_string(printed) == cfg
    assert str(CFG.from_string(printed)) == printed
    assert all_of(printed) == all_of(text)


def all_of(text: str) -> list[str]:
    return sorted(filter(None, (line[len(uncommented(line)) :].strip() for line in text.split("\n"))))


def test_what_belongs_to_what() -> None:
    found = collect("# top\n\na # one\n# two\nb\nc # three", uncommented, [(3, "a"), (5, "b"), (6, "b")])
    assert found[TOP].above == ("# top",)
    assert commented("b", found["b"]) == "# two\nb  # three"
    assert commented("a", found["a"]) == "a  # one"
    assert commented("x", None) == "x"
