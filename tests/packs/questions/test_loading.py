"""Files of questions, in the forms in which they are published; their contents here are our own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from formal_llm import authored
from formal_llm.agents.tools import Corpus, build_corpus, calculate
from formal_llm.agents.tools.articles import TextArticles
from formal_llm.errors import NotationError, ResourceNotFound
from formal_llm.packs.questions import ContextArticles, QuizQuestion, read_questions, shipped_questions
from formal_llm.packs.questions.scoring import AnswerScore, number_of, score_answer

HOTPOT = {
    "_id": "5a1",
    "question": "Where does the river of Vienna end?",
    "answer": "Black Sea",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": [["Vienna", 0], ["Danube", 2], ["Danube", 3]],
    "context": [["Vienna", ["Vienna lies on the Danube.", " It is old."]], ["Danube", ["It is a river."]]],
}
GSM = {
    "question": "Tom has 1000 nuts and gets 234 more. How many?",
    "answer": "He has 1000+234=<<1000+234=1234>>1234.\n#### 1,234",
}
TRIVIA = {
    "Data": [
        {
            "Answer": {
                "Aliases": ["Peking", "Beijing, China"],
                "MatchedWikiEntityName": "",
                "NormalizedAliases": ["peking", "beijing china"],
                "NormalizedMatchedWikiEntityName": "",
                "NormalizedValue": "beijing",
                "Type": "WikipediaEntity",
                "Value": "Beijing",
            },
            "EntityPages": [{"DocSource": "TagMe", "Filename": "B.txt", "Title": "Beijing"}],
            "Question": "Which city is the capital of China?",
            "QuestionId": "q_1",
            "QuestionSource": "http://example.org/",
            "SearchResults": [],
        }
    ],
    "Domain": "Web",
    "Split": "dev",
    "VerifiedEval": False,
    "Version": 1.0,
}
FEVER = {
    "id": 75,
    "verifiable": "VERIFIABLE",
    "label": "SUPPORTS",
    "claim": "The Danube is a river.",
    "evidence": [[[92, 104, "Danube", 0]], [[93, 105, "Danube", 1], [93, 106, "River", 0]]],
}


def written(folder: Path, *values: object, whole: bool = False) -> Path:
    file = folder / "questions.json"
    text = json.dumps(values[0] if whole else list(values)) if whole else "\n".join(map(json.dumps, values)) + "\n"
    file.write_text(text)
    return file


def test_hotpotqa(tmp_path: Path) -> None:
    test = {key: value for key, value in HOTPOT.items() if key in ("_id", "question", "context")}
    found = read_questions(written(tmp_path, [HOTPOT, test], whole=True), "hotpotqa")
    assert found[0] == QuizQuestion(
        "5a1",
        "Where does the river of Vienna end?",
        ("Black Sea",),
        "text",
        "bridge",
        ("Vienna", "Danube"),
        (("Vienna", ("Vienna lies on the Danube.", " It is old.")), ("Danube", ("It is a river.",))),
    )
    assert found[1].answers == ()
    with pytest.raises(ValueError, match="without an answer"):
        score_answer(found[1], "x")


def test_gsm8k(tmp_path: Path) -> None:
    (found,) = read_questions(written(tmp_path, GSM), "gsm8k")
    assert (found.text, found.answers, found.measure) == (GSM["question"], ("1234",), "number")
    assert score_answer(found, "He has $1,234 nuts.") == AnswerScore(True, 1.0)


def test_triviaqa(tmp_path: Path) -> None:
    (found,) = read_questions(written(tmp_path, TRIVIA, whole=True), "triviaqa")
    assert found.answers == ("Beijing", "Peking", "Beijing, China", "peking", "beijing china")
    assert found.titles == ("Beijing",) and score_answer(found, "the Peking!").exact


def test_fever(tmp_path: Path) -> None:
    not_enough = {
        "id": 76,
        "verifiable": "NOT VERIFIABLE",
        "label": "NOT ENOUGH INFO",
        "claim": "C.",
        "evidence": [[[1, None, None, None]]],
    }
    found = read_questions(written(tmp_path, FEVER, not_enough, {"id": 77, "claim": "A test."}), "fever")
    assert [one.answers for one in found] == [("SUPPORTS",), ("NOT ENOUGH INFO",), ()]
    assert [one.titles for one in found] == [("Danube", "River"), (), ()]
    assert found[0].id == "75" and score_answer(found[1], "not enough info.").exact


def test_only_the_first(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps(GSM) + "\n" + json.dumps(GSM) + "\nthis line is never read\n")
    assert len(read_questions(file, "gsm8k", most=2)) == 2
    assert read_questions(file, "gsm8k", most=0) == []


@pytest.mark.parametrize(
    ("form", "text", "line", "said"),
    [
        ("gsm8k", json.dumps(GSM) + "\n{", 2, "no JSON"),
        ("gsm8k", json.dumps(GSM) + '\n\n{"question": "a", "answer": "b"}', 3, "question 2 has an answer without ####"),
        ("gsm8k", '{"question": 1.5, "answer": "#### 1"}', 1, "has no text 'question'"),
        ("gsm8k", "[]", 1, "is no object"),
        ("fever", '{"id": 1, "claim": "c", "label": "TRUE"}', 1, "the label 'TRUE'"),
        ("fever", '{"id": 1, "claim": "c", "evidence": [[3]]}', 1, "evidence"),
        ("hotpotqa", '[{"_id": "a",\n "question": }]', 2, "no JSON"),
        ("hotpotqa", '[{"_id": "a", "question": "b", "context": [3]}]', None, "question 1 has a context"),
        ("hotpotqa", "[3]", None, "question 1 is no object"),
        ("hotpotqa", '{"a": 1}', None, "no list of questions"),
        ("hotpotqa", "[" * 100_000, None, "nested too deeply"),
        (
            "triviaqa",
            '{"Data": [{"QuestionId": "a", "Question": "b", "Answer": {"Value": "c", "Aliases": 3}}]}',
            None,
            "Aliases",
        ),
        ("triviaqa", "[]", None, "no questions"),
        ("own", '{"id": "a", "question": "b", "answers": []}', 1, "no answers"),
        ("own", "", None, "no questions"),
    ],
)
def test_a_wrong_file_is_told_with_the_place(tmp_path: Path, form: str, text: str, line: int | None, said: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(text)
    with pytest.raises(NotationError, match=said) as caught:
        read_questions(file, form)
    assert caught.value.line == line and caught.value.file == str(file)


def test_no_such_form_set_or_file(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFound, match="Did you mean 'gsm8k'"):
        read_questions(tmp_path, "gsm8")
    with pytest.raises(ResourceNotFound, match="Did you mean 'lookup'"):
        shipped_questions("lokup")
    with pytest.raises(NotationError, match=r"directory|folder"):
        read_questions(tmp_path, "gsm8k")
    with pytest.raises(NotationError, match="no such file"):
        read_questions(tmp_path / "none", "hotpotqa")


# -- our own -----------------------------------------------------------------------------------------------------------

#: What the answers of the arithmetic questions are calculated from; the numbers stand in the corpus.
SUMS = [
    "1832 - 1749",
    "8849 - 8611",
    "1230 - 1090",
    "79 + 47",
    "1930 - 1781",
    "1615 - 1605",
    "50% of 2850",
    "346 / 173",
    "24 * 3 - 2 * 30",
    "8 * 6",
    "880 / 88",
    "15% of 240",
]


def test_our_own_questions() -> None:
    found = shipped_questions()
    assert len(found) == 40 and len({question.id for question in found}) == 40
    assert {question.kind for question in found} == {"lookup", "two-hop", "arithmetic"}
    assert shipped_questions("lookup") == [question for question in found if question.kind == "lookup"]


def test_their_answers_stand_in_the_corpus() -> None:
    articles = {one.title: one.text for one in TextArticles(authored.find("tasks", "questions") / "corpus.txt").read()}
    for question in shipped_questions():
        assert set(question.titles) <= articles.keys(), question.id
        if question.measure == "text" and question.answers != ("yes",):
            text = articles[question.titles[-1]].casefold() + question.titles[-1].casefold()
            assert any(answer.casefold() in text for answer in question.answers), question.id


def test_the_answers_of_arithmetic_questions() -> None:
    for question, expression in zip(shipped_questions("arithmetic"), SUMS, strict=True):
        assert number_of(question.answers[0]) == calculate(expression).value, question.id


def question(number: int, *context: tuple[str, tuple[str, ...]]) -> QuizQuestion:
    return QuizQuestion(str(number), "Q?", ("a",), "text", context=context)


def test_each_title_once(tmp_path: Path) -> None:
    danube = ("Danube", ("The Danube is a river.", " It is long e.g. in Austria", " So it is."))
    source = ContextArticles([question(1, danube), question(2, ("Vienna", ("A city.",)), danube)])
    assert [article.title for article in source.read()] == ["Danube", "Vienna"]
    assert build_corpus(source, tmp_path / "c.sqlite") == 2
    session = Corpus(tmp_path / "c.sqlite").session()
    assert session.search("danube") == "The Danube is a river. It is long e.g. in Austria So it is."
    assert session.lookup("austria") == "(Result 1 / 1) It is long e.g. in Austria"  # sentences as they are given
    other = ContextArticles([question(1, danube)])
    assert other.fingerprint != source.fingerprint
