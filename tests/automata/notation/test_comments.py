"""Comments of grammars stay with the lines that they stand with."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Behaviour, Flowchart, Limits
from formal_llm.automata.models.written import Written
from formal_llm.automata.notation import behaviour
from formal_llm.automata.notation import pda as pda_notation
from formal_llm.automata.notation.cfg_syntax import strip_comment
from formal_llm.automata.notation.comments import TOP, add_comments, collect_comments
from formal_llm.errors import AutomatonError, NotationError
from tests.automata.notation.test_behaviour import behaviours
from tests.strategies import examples, told_automata, told_grammars

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
    return sorted(filter(None, (line[len(strip_comment(line)) :].strip() for line in text.split("\n"))))


def test_what_belongs_to_what() -> None:
    found = collect_comments("# top\n\na # one\n# two\nb\nc # three", strip_comment, [(3, "a"), (5, "b"), (6, "b")])
    assert found[TOP].above == ("# top",)
    assert add_comments("b", found["b"]) == "# two\nb  # three"
    assert add_comments("a", found["a"]) == "a  # one"
    assert add_comments("x", None) == "x"


# -- the other notations: what is printed stays as it is, whatever is commented where ----------------------------------

AGENT = """# A small agent
; by nobody

; its name
(define tea  # called so
  (:states  ; in order
    # what is asked
    (Ask (:text "[#]"))  # the first
    (Act)
    ; from outside
    (Obs (:text "; o") (:flags :env-input)))  # the last
  (:limits "%limit 5 Act")  # five
  # how it goes
  (:behavior
    # all of it
    (next Ask (until (next Act Obs) Ask))))  # so
# the end
"""
AUTOMATON = """# Top

# its name
%name "x # y"  # n
%start p  # begins here
%accept q
# limits
%limit 2 a  # two

p, a, ε -> r, X "text # x"  # plain
# asked
r, b, X -> q, ε ask "really?"  # question
p, '#', ε -> q, ε

# a label
a "A" cost=2  # labelled
# the end
"""
CHART = """---
title: 'Tea'
---
%% What one does for tea.

%% begins
flowchart TB
    %% no more
    %% %limit 2 B
    %% a question
    A{"milk?"}
    B["milk %% it"]
    %% serve
    C["serve"]
    %% yes
    A -->|"yes"| B
    A -->|"no"| C
    B --> C
%% the end
"""


@pytest.mark.parametrize(("kind", "text"), [(Behaviour, AGENT), (PDA, AUTOMATON), (Flowchart, CHART)])
def test_the_other_notations_keep_theirs(kind: type[Written], text: str) -> None:
    assert str(kind.from_string(text)) == text
    bare = kind.from_string("\n".join(line for line in text.split("\n") if not re.match(r"\s*(#|;|%% \w)", line)))
    assert kind.from_string(text) == bare
    assert hash(kind.from_string(text)) == hash(bare)


def test_what_stands_inside_a_statement_goes_above_it() -> None:
    loose = AGENT.replace("(next Ask", "(next Ask ; one\n # two\n")
    assert "    # all of it\n    # two\n    # so\n    (next Ask" in str(Behaviour.from_string(loose))
    assert "Ask))))  ; one\n" in str(Behaviour.from_string(loose))


def test_a_family_has_its_comments_once() -> None:
    text = "%accept p3\n%stack X\n# the days\np{t}, a, * -> p{t+1}, * for t in 1..2  # of two\np3, b, ε -> p3, X"
    printed = str(PDA.from_string(text))
    assert "\n# the days\np1, a, X -> p2, X\np2, a, X -> p3, X  # of two\n" in printed


def test_settings_of_mermaid_and_limits_are_no_comments() -> None:
    text = 'flowchart TD\n%%{init: {"a":\n1}}%%\n%% limit B 2\n%% limit of 5 cups\nA --> B --> C'
    assert str(Flowchart.from_string(text)).count("%%") == 2
    assert "%% limit of 5 cups" in str(Flowchart.from_string(text))


def test_signs_in_texts_are_no_comments() -> None:
    text = "---\ntitle: '%% no'\n---\nflowchart TD\nA[100 %% sure] --> B[\"x %% y\"]"
    chart = Flowchart.from_string(text)
    assert not chart.comments


def check_all_kept(value: Written, data: st.DataObject, comments: list[str], code, *, beside: bool) -> None:
    comment = st.sampled_from(["", "", *comments])
    lines: list[str] = []
    for line in str(value).split("\n")[:-1]:
        above = data.draw(comment)
        lines += [above] if above else []
        lines.append(f"{line} {data.draw(comment)}".rstrip() if beside else line)
    text = "\n".join(lines)
    found = type(value).from_string(text)
    assert found == value
    printed = str(found)
    assert type(value).from_string(printed) == value
    assert str(type(value).from_string(printed)) == printed

    def all_of(text: str) -> list[str]:
        return sorted(filter(None, (line[len(code(line)) :].strip() for line in text.split("\n"))))

    assert all_of(printed) == all_of(text)


@pytest.mark.filterwarnings("ignore::formal_llm.errors.GrammarWarning")
@given(told_automata(), st.data())
@examples(60)
def test_automata_keep_all(automaton: PDA, data: st.DataObject) -> None:
    try:
        automaton = PDA.from_string(str(automaton))
    except NotationError:
        reject()  # no run accepts
    check_all_kept(
        automaton, data, ["# x", "# p, a -> q 'y\"", "#"], lambda line: pda_notation._CODE.findall(line)[0], beside=True
    )


@pytest.mark.filterwarnings("ignore::formal_llm.errors.GrammarWarning")
@given(behaviours(), st.data())
@examples(60)
def test_behaviours_keep_all(drawn, data: st.DataObject) -> None:
    try:
        made = Behaviour(*drawn)
    except AutomatonError:
        reject()  # a contradiction
    check_all_kept(made, data, ["# x", "; (y", '#"'], lambda line: behaviour._CODE.findall(line)[0], beside=True)


def _uncommented_chart(line: str) -> str:
    return "" if re.match(r"\s*%%(?! %)", line) else line


CHARTS = (
    "flowchart LR\nA[go] & B --> C\nC --> D{well?}\nD -->|no| A\nD -->|yes| E((end))",
    "graph TD\nsubgraph X [the x]\nA --> B\nend\nX --> C\n%% %limit 1 A\nA -.-> C",
)


@pytest.mark.parametrize("text", CHARTS)
@given(data=st.data())
@examples(20)
def test_charts_keep_all(text: str, data: st.DataObject) -> None:
    chart = Flowchart.from_string(text)
    check_all_kept(chart, data, ["%% x", "%% A --> B", "%%"], _uncommented_chart, beside=False)
