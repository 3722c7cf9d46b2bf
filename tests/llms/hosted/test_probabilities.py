"""Probabilities of options from those of tokens: by example, and against all that a small model can write."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm.llms.hosted.probabilities import Token, option_probabilities, read_tokens


def token(text: str, **shares: float) -> Token:
    """A token with the probabilities of what could have stood there; ``_`` in a name stands for a blank."""
    return mixed(text, {name.lstrip("n").replace("_", " "): share for name, share in shares.items()})


def mixed(text: str, shares: dict[str, float]) -> Token:
    """The same with any texts."""
    logs = ((name, math.log(share) if share else -math.inf) for name, share in shares.items())
    return Token(text, tuple(logs))


def found(tokens: list[Token], count: int, text: str) -> dict[int, float] | None:
    shares = option_probabilities(tokens, count, text)
    return shares and {number: round(share, 6) for number, share in shares.items()}


JSON = [mixed(text, {text: 1.0}) for text in ("{", '"choice', '":')]


def test_what_is_no_option_is_left_out_and_white_space_makes_no_difference() -> None:
    shares = {
        "2": 0.3,
        " 2": 0.1,
        "1": 0.1,
        "\n": 0.2,
        "The": 0.1,
        "0": 0.05,
        "-1": 0.05,
        "2.": 0.05,
        "3": 0.03,
        "01": 0.02,
    }
    assert found([mixed("2", shares)], 2, "2") == {1: 0.2, 2: 0.8}


def test_a_token_after_which_the_number_may_go_on() -> None:
    ten = mixed("1", {"1": 0.6, "2": 0.4})
    # 1 was written, and what came next is known: the end, or another digit; 12 options.
    after = mixed("}", {"}": 0.5, "0": 0.25, "2": 0.25, "9": 0.5 / 1e9})
    three_to_nine = {str(number): 1e-9 for number in range(3, 10)}
    first = mixed("1", {"1": 0.6, "2": 0.4, **three_to_nine})
    shares = found([*JSON, first, mixed("}", {"}": 0.5, "0": 0.25, "2": 0.125, "1": 0.125})], 12, '{"choice":1}')
    assert shares is not None
    assert (shares[1], shares[2], shares[10], shares[11], shares[12]) == (0.3, 0.4, 0.15, 0.075, 0.075)
    # It was not written: nobody knows.
    assert found([*JSON, mixed("2", dict(first_shares(first))), after], 12, '{"choice":2}') is None
    # Nothing came next, or what came cannot be told from another word.
    assert found([ten], 12, "1") is None
    assert found([first, mixed("END", {"END": 0.5, "0": 0.2, "1": 0.2, "2": 0.1})], 12, "1") is None
    shares = found([first, mixed("</s>", {"</s>": 0.5, "0": 0.2, "1": 0.2, "2": 0.1})], 12, "1")
    assert shares is not None
    assert shares[1] == 0.3


def first_shares(one: Token) -> list[tuple[str, float]]:
    return [(text, math.exp(logprob)) for text, logprob in one.alternatives]


@pytest.mark.parametrize(
    "logprobs",
    [
        (math.nan, -1.0),
        (-1.0, math.nan),
        (math.inf, -1.0),
        (5.0, -1.0),
        (-0.1, -0.1),
        (-math.inf, -math.inf),
        (-9999.0, -9999.0),
    ],
)
def test_what_are_no_probabilities(logprobs: tuple[float, float]) -> None:
    assert option_probabilities([Token("2", tuple(zip("12", logprobs, strict=True)))], 2, "2") is None


def test_rounding_is_forgiven() -> None:
    assert option_probabilities([Token("1", (("1", 1e-6), ("2", -20.0)))], 2, "1") is not None


def test_nothing_to_find() -> None:
    assert option_probabilities([], 2, "2") is None
    assert option_probabilities([token("2", n2=1.0)], 2, "none") is None


def entry(text: Any, logprob: Any, top: Any = ()) -> dict[str, Any]:
    return {"token": text, "logprob": logprob, "bytes": None, "top_logprobs": list(top)}


def test_reading_tokens() -> None:
    one, two = entry("1", -1.0), entry("2", -0.5)
    assert read_tokens([entry("1", -1.0, [two, one])]) == [Token("1", (("2", -0.5), ("1", -1.0)))]
    # The one that was written is not among the most probable ones; or twice; or alone.
    assert read_tokens([entry("1", -9999.0, [two])]) == [Token("1", (("2", -0.5), ("1", -9999.0)))]
    assert read_tokens([entry("1", -1.0, [one, two, two])]) == [Token("1", (("1", -1.0), ("2", -0.5)))]
    assert read_tokens([{"token": "1", "logprob": -1}]) == [Token("1", (("1", -1.0),))]


@pytest.mark.parametrize(
    "entries",
    [
        None, [], "text", {}, [7], [None], [entry("1", None)], [entry("1", "-1")], [entry("1", True)], [entry(1, -1.0)],
        [entry("1", -(10**400))], [entry("1", -1.0, [7])], [entry("1", -1.0, [entry(None, -1)])], [{}],
    ],
)  # fmt: skip
def test_what_are_no_tokens(entries: Any) -> None:
    assert read_tokens(entries) is None


# -- against all that a small model can write ------------------------------------------------------------------

WHITE = st.sampled_from(["", " ", "\n"])


@st.composite
def writers(draw: st.DrawFn) -> tuple[int, str, dict[str, Any]]:
    """A number of options, what stands before and behind the number, and a model as a tree of tokens.

    A tree is a dictionary from tokens to pairs: the share, and the tree of what follows (None where the number ended).
    """
    count = draw(st.sampled_from([2, 3, 9, 10, 12, 23, 100, 105]))
    behind = draw(st.sampled_from(["", "}"]))
    numbers = [str(number) for number in range(1, count + 1)]
    steps = draw(st.sampled_from([1, 2, 3]))

    def tree(done: str, depth: int) -> dict[str, Any]:
        pieces = {
            number[len(done) : len(done) + length]
            for number in numbers
            if number.startswith(done) and number != done
            for length in range(1, steps + 1)
            if len(number) >= len(done) + length
        }
        chosen = draw(st.lists(st.sampled_from(sorted(pieces)), min_size=1, max_size=14, unique=True)) if pieces else []
        shares: dict[str, Any] = {}
        for piece in chosen:
            number = done + piece
            text = (draw(WHITE) if not done else "") + piece
            goes_on = any(other != number and other.startswith(number) for other in numbers)
            ends_here = number in numbers and (not goes_on or draw(st.booleans()))
            if ends_here and (behind and draw(st.booleans())):
                shares[text + draw(WHITE) + behind] = (1, number, None)
            elif ends_here and not goes_on:
                shares[text] = (1, number, None)
            elif goes_on:
                shares[text] = (1, number, tree(number, depth + 1))
        if done and done in numbers:
            shares[behind or "</s>"] = (1, done, None)
        # A digit that is no option is one only where no digit has come before.
        for junk in draw(
            st.lists(st.sampled_from(["The", "x1", "-", "?", *([] if done else ["0"])]), max_size=2, unique=True)
        ):
            shares.setdefault(junk, (1, None, None))
        weights = draw(st.lists(st.integers(1, 1000), min_size=len(shares), max_size=len(shares)))
        total = sum(weights)
        return {
            t: (w / total, number, after) for (t, (_, number, after)), w in zip(shares.items(), weights, strict=True)
        }

    return count, behind, tree("", 0)


def canonical(tree: dict[str, Any]) -> bool:
    """Whether no number that a single token brings is also written with several, as a tokenizer would not."""
    for text, (_, number, after) in tree.items():
        if after is None:
            continue
        # What other tokens at this place bring, this one may not lead to; but it may be that number itself.
        others = {n for t, (_, n, _) in tree.items() if t != text and n is not None and n != number}
        if not canonical(after) or others & set(distribution(after)):
            return False
    return True


def legal(tree: dict[str, Any]) -> dict[str, Any]:
    """What a constrained model may write: branches that lead to an option, scaled to 1."""
    kept = {}
    for text, (share, number, after) in tree.items():
        further = legal(after) if after is not None else None
        if number is not None and (after is None or further):
            kept[text] = (share, number, further)
    total = sum(share for share, _, _ in kept.values())
    return {text: (share / total, number, after) for text, (share, number, after) in kept.items()}


def distribution(tree: dict[str, Any]) -> dict[str, float]:
    """The numbers that a tree leads to, with their probabilities, by walking all of it."""
    shares: dict[str, float] = {}
    for share, number, after in tree.values():
        for end, part in ({number: 1.0} if after is None else distribution(after)).items():
            shares[end] = shares.get(end, 0.0) + share * part
    return shares


@given(writers(), st.data())
def test_what_is_found_is_what_the_model_does(drawn: tuple[int, str, dict[str, Any]], data: st.DataObject) -> None:
    count, behind, tree = drawn
    assume(canonical(tree))
    constrained = legal(tree)
    assume(constrained)
    tokens, written, seen, place = [], "", tree, constrained
    while True:
        text = data.draw(st.sampled_from(sorted(place)))
        tokens.append(mixed(text, {name: share for name, (share, _, _) in seen.items()}))
        if not (text == "</s>" and not behind):
            written += text
        if place[text][2] is None:
            break
        seen, place = seen[text][2], place[text][2]
    if not written.endswith(behind):
        tokens.append(mixed(behind, {behind: 1.0}))
        written += behind
    shares = option_probabilities(tokens, count, written)
    true = distribution(constrained)
    only_one = not any(after is not None for text, (_, _, after) in constrained.items() if text != tokens[0].text)
    if shares is None:
        # Nothing is said only where something is hidden: a branch that was not taken.
        assert not only_one or len(tokens) > 1
        return
    assert math.isclose(sum(shares.values()), 1)
    for number in range(1, count + 1):
        assert math.isclose(shares[number], true.get(str(number), 0.0), rel_tol=1e-9, abs_tol=1e-12)
