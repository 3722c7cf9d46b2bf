"""Drafts of a model that errs, until they are clean or it is given up; and an author who answers."""

from __future__ import annotations

import asyncio
import re

import pytest

from formal_llm import CFG, aauthor, author
from formal_llm.authoring import Candidate, Draft, Example, StopReview
from formal_llm.authoring.drafts import ENDINGS, check_draft
from formal_llm.authoring.prompts import NOTATIONS, write_first_messages, write_retry_messages
from formal_llm.automata.languages.comparison import differences
from formal_llm.automata.models.rules import automaton_of
from formal_llm.errors import LLMError, NotationError, NotAuthored, ResourceNotFound, WritesNoText
from formal_llm.llms.doubles import RandomLLM, ScriptedLLM
from formal_llm.llms.llm import LLM
from formal_llm.llms.question import Answer
from formal_llm.llms.text_request import TextRequest

WORDS = "Wash before every dry. Iron at most once, at the end."
GOOD = "%order forward\nS -> wash Rest\nRest -> wash Rest | dry Rest | dry | iron\n"
MEANT = CFG.from_string(GOOD)

#: What a model may get wrong, and what must be said of it.
ERRORS = {
    "wrong arrows": ("```cfg\nS = wash Rest\nRest => dry\n```", "write '->' instead of '='"),
    "undefined symbols": (
        "```cfg\nS -> wash Rest\nRest -> dry | Ressst\nRessst -> Ressst\n```",
        "no word can be derived from Ressst",
    ),
    "prose alone": (
        "I would start with washing, and then go on to dry everything.",
        "there are no rules in the answer",
    ),
    "an empty language": ("```cfg\nS -> wash S\n```", "the language is empty"),
    "limits that clash": ("```cfg\nS -> wash S | dry\n%require 2 dry\n```", "no word keeps"),
    "an unknown state": (
        "```agent\n(define w (:states wash dry) (:behavior (next wash drie)))\n```",
        "there are: wash, dry",
    ),
    "a chart that goes nowhere": ("```mermaid\nflowchart TD\n a[Wash] --> b[Dry]\n b --> a\n```", "end"),
    "nothing": ("", "there are no rules in the answer"),
    "a sentence of no form": ("```rules\nsteps: wash, dry\nwash shortly before dry\n```", "unknown step: wash shortly"),
    "sentences that clash": ("```rules\nsteps: a, b\nnever a\nat least 1 a\n```", "no plan keeps these rules"),
    "a slip in a name": ("```cfg\nS -> wash Rest | rest\nRest -> dry\n```", "did you mean Rest?"),
    "cut in the middle": ("```agent\n(define w (:states wash dry) (:behavior (next wash", "parenthes"),
}


@pytest.mark.parametrize("kind", ERRORS)
def test_what_is_wrong_goes_back_and_the_next_draft_is_taken(kind: str) -> None:
    wrong, said = ERRORS[kind]
    llm = ScriptedLLM(texts=[wrong, f"You are right, sorry.\n\n```cfg\n{GOOD}```\nNow it is fine."])
    made = author(WORDS, llm)
    assert differences(automaton_of(made.rules), MEANT).equal
    assert (made.ending, made.text, made.warnings) == (".cfg", GOOD, ())
    assert len(made.drafts) == 2
    # The model saw what was found, after its own draft.
    told = llm.requests[1].messages
    assert said in told[-1].content
    assert [message.role for message in told] == ["system", "user", "assistant", "user"]
    assert made.usage.requests == 2


def test_it_is_given_up_with_all_that_was_tried() -> None:
    replies = [ERRORS[kind][0] for kind in ("wrong arrows", "prose alone", "an empty language", "an unknown state")]
    noted: list[Draft] = []
    with pytest.raises(NotAuthored) as caught:
        author(WORDS, ScriptedLLM(texts=replies), attempts=4, on_draft=noted.append)
    assert len(caught.value.drafts) == len(noted) == 4
    assert "no clean rules in 4 tries" in str(caught.value)
    assert "write '->' instead of '='" in caught.value.drafts[0][1][0]
    assert "the language is empty" in str(caught.value)
    assert caught.value.usage.requests == 4


def test_what_was_drafted_before_the_model_failed_is_known() -> None:
    noted: list[Draft] = []
    with pytest.raises(LLMError, match="the script ended") as caught:
        author(WORDS, ScriptedLLM(texts=["nothing"]), on_draft=noted.append)
    assert len(noted) == 1
    assert caught.value.usage.requests == 1


def test_doubts_are_told_once() -> None:
    unreachable = "```cfg\n%order forward\nS -> wash dry\nMore -> iron\n```"
    llm = ScriptedLLM(texts=[unreachable, unreachable])
    made = author(WORDS, llm)
    assert "More cannot be reached" in llm.requests[1].messages[-1].content
    assert any("More cannot be reached" in doubt for doubt in made.warnings)
    never = "```agent\n(define w (:states wash dry iron) (:behavior (next wash dry)))\n```"
    assert any("no plan uses iron" in one for one in author(WORDS, ScriptedLLM(texts=[never]), attempts=1).warnings)


@pytest.mark.parametrize("form", ["fenced", "tildes", "two fences", "bare, with the notation asked for"])
def test_rules_are_found_in_the_last_block(form: str) -> None:
    reply = {
        "fenced": f"Sure! Here are your rules:\n\n```cfg\n{GOOD}```\nLet me know if you need more.",
        "tildes": f"~~~cfg\n{GOOD}~~~",
        "two fences": f"First I thought of\n```cfg\nS = wash\n```\nbut this is right:\n```cfg\n{GOOD}```",
        "bare, with the notation asked for": GOOD,
    }[form]
    made = author(WORDS, ScriptedLLM(texts=[reply]), notation="cfg" if "asked" in form else None)
    assert differences(automaton_of(made.rules), MEANT).equal


@pytest.mark.parametrize(
    ("notation", "text"),
    [
        ("mmd", "flowchart TD\n  s([Start]) --> a[Wash]\n  a --> e([End])\n"),
        ("pda", "%start s\n%accept e\ns, wash, ε -> e, ε\n"),
        ("agent", "(define w (:states wash) (:behavior wash))\n"),
        ("rules", "steps: wash\nexactly 1 wash\n"),
    ],
)
def test_each_notation(notation: str, text: str) -> None:
    for asked in (None, notation):
        llm = ScriptedLLM(texts=[f"Here:\n\n```{notation}\n{text}```\nThat is all."])
        made = author("Wash.", llm, notation=asked)
        assert (made.ending, made.text) == (f".{notation}", text)
    with pytest.raises(ResourceNotFound, match="notation"):
        author("Wash.", llm, notation="bnf")


def judge_by(rules: CFG, seen: list[Candidate]) -> object:
    def judge(shown: Candidate) -> bool:
        seen.append(shown)
        return rules.accepts(shown.plan)

    return judge


def test_examples_that_are_not_kept_go_back_to_the_model() -> None:
    loose = "```cfg\nS -> wash S | dry S | iron | dry\n```"  # dries what was not washed
    llm = ScriptedLLM(texts=[loose, f"```cfg\n{GOOD}```"])
    seen: list[Candidate] = []
    made = author(WORDS, llm, reviewer=judge_by(MEANT, seen), max_plans=8)  # type: ignore[arg-type]
    assert made.text == GOOD
    assert made.violated == ()
    assert made.examples and any(not one.allowed for one in made.examples)
    assert "this plan should not be allowed, and the rules allow it" in llm.requests[1].messages[-1].content
    # Allowed ones and near misses are shown.
    assert {one.allowed for one in seen} == {True, False}
    # Nothing is asked twice.
    assert len({one.plan for one in seen}) == len(seen)


def test_known_examples_must_be_kept_from_the_first() -> None:
    known = [Example(("wash", "dry"), True), Example(("dry",), False)]
    llm = ScriptedLLM(texts=["S -> dry | wash dry", GOOD])
    made = author(WORDS, llm, examples=known, notation="cfg")
    assert made.text == GOOD
    assert "must not be allowed: dry" in llm.requests[0].messages[-1].content


def test_of_two_drafts_the_author_picks_by_the_shortest_difference() -> None:
    other = "S -> wash dry | wash"
    seen: list[Candidate] = []
    made = author(
        WORDS,
        ScriptedLLM(texts=["S -> wash dry", other]),
        drafts=2,
        notation="cfg",
        reviewer=judge_by(CFG.from_string(other), seen),
        max_plans=0,
    )  # type: ignore[arg-type]
    assert made.text == other + "\n"
    assert [one.plan for one in seen] == [("wash",)]
    assert made.examples == (Example(("wash",), True, "the rules of the other draft allow it; a draft said otherwise"),)


def test_where_a_new_version_differs_from_the_old_one() -> None:
    seen: list[Candidate] = []

    def judge(shown: Candidate) -> bool | None:
        seen.append(shown)
        raise StopReview

    old = automaton_of(author("steps: wash, dry. wash before dry. at most 1 dry.").rules)
    made = author("steps: wash, dry. wash before dry. at most 2 dry.", previous=old, reviewer=judge)
    assert seen[0] == Candidate(("wash", "dry", "dry"), True, "the old rules refuse it", ("wash", "dry", "dry"))
    assert len(seen) == 1
    assert made.examples == ()


def test_without_a_model_what_the_author_says_otherwise_is_told() -> None:
    made = author("steps: wash, dry. wash before dry.", reviewer=lambda shown: True if shown.plan == ("dry",) else None)
    assert made.violated == made.examples
    assert [one.plan for one in made.violated] == [("dry",)]
    with pytest.raises(ValueError, match="without a model"):
        author("steps: wash, dry. wash before dry.", notation="cfg")


@pytest.mark.parametrize(
    ("words", "line", "said"),
    [
        ("Wash before you dry.", 1, "a file of rules begins with its steps"),
        ("steps: wash, dry\nwash shortly before dry", 2, "unknown step: wash shortly"),
        ("steps: wash, dry\nwash before drye", 2, "did you mean dry"),
        ("steps: wash, dry\nnever wash\nat least 1 wash", 2, "no plan keeps these rules"),
    ],
)
def test_without_a_model_words_are_sentences_or_an_error_with_its_place(words: str, line: int, said: str) -> None:
    with pytest.raises(NotationError) as caught:
        author(words)
    assert caught.value.line == line
    assert said in str(caught.value)


def test_who_only_chooses_cannot_draft() -> None:
    class Chooser:
        def answer(self, question: object) -> int:
            return 1

    with pytest.raises(WritesNoText):
        author(WORDS, Chooser())  # type: ignore[arg-type]
    with pytest.raises(WritesNoText):
        author(WORDS, RandomLLM(0))


class _Slow(LLM):
    """A model that is awaited; notes how many wait while it writes."""

    can = frozenset({"write"})
    waiting = most = 0

    def __init__(self, replies: list[str]) -> None:
        self.script = ScriptedLLM(texts=replies)

    async def answer(self, request: TextRequest) -> Answer:
        _Slow.waiting += 1
        _Slow.most = max(_Slow.most, _Slow.waiting)
        await asyncio.sleep(0.001)
        _Slow.waiting -= 1
        return self.script.ask(request)


def test_awaited_it_comes_to_the_same_and_others_go_on() -> None:
    wrong = ERRORS["wrong arrows"][0]
    replies = [wrong, f"```cfg\n{GOOD}```"]

    async def both() -> list[object]:
        return await asyncio.gather(*(aauthor(WORDS, _Slow(replies), notation="cfg") for _ in range(3)))

    alone = author(WORDS, ScriptedLLM(texts=replies), notation="cfg")
    for made in asyncio.run(both()):
        assert (made.text, made.drafts, made.rules) == (alone.text, alone.drafts, alone.rules)
    assert _Slow.most == 3


def test_awaited_errors_are_the_same() -> None:
    with pytest.raises(NotAuthored) as caught:
        asyncio.run(aauthor(WORDS, ScriptedLLM(texts=["nothing", "again"]), attempts=2))
    assert len(caught.value.drafts) == 2
    with pytest.raises(ResourceNotFound):
        asyncio.run(aauthor(WORDS, ScriptedLLM(texts=[]), notation="xml"))
    with pytest.raises(WritesNoText):
        asyncio.run(aauthor(WORDS, RandomLLM(1)))


def test_a_setting_that_is_none_is_told_at_once() -> None:
    with pytest.raises(TypeError, match="tires"):
        author(WORDS, tires=3)  # type: ignore[call-arg]


@pytest.mark.filterwarnings("ignore::formal_llm.errors.GrammarWarning")
@pytest.mark.parametrize("ending", ENDINGS)
def test_the_example_of_each_notation_is_clean(ending: str) -> None:
    text = re.search(r"```\w+\n(.*?)```", NOTATIONS[ending], re.DOTALL)
    assert text is not None
    assert check_draft(text[1], ending).problems == ()


def test_the_chat() -> None:
    system, user = write_first_messages("Wash.", None, ["wash"], [Example(("wash",), True), Example((), False)])
    assert all(name[1:] in system.content for name in ENDINGS)
    assert "The steps are called: wash." in user.content
    assert "must not be allowed: ε" in user.content
    assert "flowchart" not in write_first_messages("Wash.", ".cfg", [], [])[0].content
    mine, yours = write_retry_messages(Draft("S -> a", ".cfg"), ["it is wrong"])
    assert (mine.role, mine.content) == ("assistant", "```cfg\nS -> a\n```")
    assert "- it is wrong" in yours.content
