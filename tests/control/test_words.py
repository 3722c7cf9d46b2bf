"""Rules about words that nest, together with other rules."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from formal_llm.guard import Call, Guard, GuardRules
from tests.control.test_guarantees import SAID
from tests.strategies import examples

#: Grammars, some of them ambiguous and left recursive, with all their words up to seven letters, found by rewriting.
GRAMMARS = (
    "S -> a S b | c",
    "S -> a S b | S S | c",
    "S -> S S | a | b c",
    "S -> a S a | b S b | c",
    "S -> S a S | b | c",
)
MOST_LETTERS = 7


def list_words(grammar: str) -> set[str]:
    bodies = [body.replace(" ", "") for body in grammar.partition("->")[2].split("|")]
    forms, words, todo = {"S"}, set[str](), ["S"]
    for form in todo:
        before, nonterminal, after = form.partition("S")
        if not nonterminal:
            words.add(form)
            continue
        new = {f"{before}{body}{after}" for body in bodies} - forms
        todo += [one for one in new if len(one) <= MOST_LETTERS]
        forms |= new
    return words


def keeps(word: str, rules: list[tuple[str, str, str, int]]) -> bool:
    """Whether a word keeps rules, read off the whole word."""
    return all(
        {
            "at most": word.count(one) <= count,
            "at least": word.count(one) >= count,
            "before": word.partition(other)[0].count(one) >= count or other not in word,
            "never after": one not in word.partition(other)[2],
            "after each": other not in word or one in word.rpartition(other)[2],
            "at most since": all(part.count(one) <= count for part in word.split(other)),
        }[kind]
        for kind, one, other, count in rules
    )


@examples(60)
@given(
    st.sampled_from(GRAMMARS),
    st.lists(
        st.tuples(
            st.sampled_from(["at least", "before", "never after", "after each", "at most since"]),
            st.sampled_from(["ab", "bc", "ca", "ba"]),
            st.integers(1, 2),
        ),
        max_size=2,
    ),
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)),
)
def test_words_that_nest_against_all_words(
    grammar: str, drawn: list[tuple[str, str, int]], most: tuple[int, ...]
) -> None:
    """Limits keep all words short, so all can be listed; each decision is certain, whatever the stack."""
    rules = [(kind, *pair, count) for kind, pair, count in drawn]
    limits = [("at most", letter, "-", count) for letter, count in zip("abc", most, strict=True)]
    words = [word for word in list_words(grammar) if keeps(word, [*rules, *limits])]
    prefixes = {word[:size] for word in words for size in range(len(word) + 1)}
    lines = [
        f"rule r{n}: {SAID[kind].format(one, other, count)}"
        for n, (kind, one, other, count) in enumerate([*rules, *limits])
    ]
    head = f'tools a, b, c\nrule g: grammar """\n%order forward\n{grammar}\n"""\n'
    todo = [("", Guard(GuardRules.from_string(head + "\n".join(lines)), ["a", "b", "c"]).start())]
    if not prefixes:
        return
    for word, state in todo:
        for name in "abc":
            decision = state.check(Call(name))
            assert decision.certain
            assert decision.runs is (word + name in prefixes), (rules, limits, word + name)
            if decision.runs:
                todo.append((word + name, state.after(Call(name))))


@examples(60)
@given(
    st.sampled_from(GRAMMARS),
    st.sampled_from(["never {} after no", "no before {}", "{} after each no", "at most 1 {} since no"]),
    st.sampled_from("abc"),
    st.integers(1, 30),
)
def test_small_bounds_decide_nothing_else_about_words(grammar: str, rule: str, letter: str, most: int) -> None:
    """With errors that may come any time, a small bound leaves open what a large one decides, but never contradicts."""
    text = f'tools a, b, c\nno: a.result[error]\nrule g: grammar """\n%order forward\n{grammar}\n"""\nrule r: {rule.format(letter)}\n'
    small, large = (
        Guard(GuardRules.from_string(text), ["a", "b", "c"], "whatever", max_states=number).start()
        for number in (most, 3_000)
    )
    for name in ("a", "c", "b"):
        for tool in "abc":
            one, other = small.check(Call(tool)), large.check(Call(tool))
            assert not (one.certain and other.certain) or one.runs is other.runs
        if not large.check(Call(name)).runs:
            return
        small, large = small.after(Call(name)), large.after(Call(name))
