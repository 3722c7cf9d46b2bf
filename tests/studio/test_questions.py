"""The table of questions."""

from formal_llm.studio.questions import QUESTIONS, answer


def test_what_is_no_question_is_told() -> None:
    (only,) = answer({"question": "hack"})
    assert "there is no question 'hack'" in only["reason"]
    (only,) = answer({})
    assert only["reason"] == "question is a text"


def test_each_question_is_told_that_rules_are_missing() -> None:
    for name in QUESTIONS:
        (only,) = answer({"question": name, "llm": "test:first", "plan": "x", "answers": []})
        assert only == {"part": "bad question", "reason": "text is a text"}


def test_deep_rules_are_no_crash() -> None:
    text = "".join(f"N{n} -> N{n + 1} a\n" for n in range(800)) + "N800 -> b\n"
    for part in answer({"question": "step", "text": text, "ending": ".cfg", "answers": []}):
        assert part["part"]
