"""Does structure help? Agents over questions on the shipped corpus: direct, chain of thought, ReAct, ablated, ReWOO.

``python -m benchmarks.structure --llm PROVIDER`` prints a table: exact match and F1 as of HotpotQA, requests and tokens
of a question, seconds of CPU of a question (of this process: a model that runs here counts, a server does not).
``--limit N`` asks N questions, spread evenly; ``--out DIR`` keeps all runs, and the same command goes on where it was
stopped; ``--write FILE`` writes the questions, for ``formal-llm bench agents --data FILE``.

The questions are 200: the 40 that are shipped, and 160 that a rule makes of the corpus. The rule reads facts from
sentences of fixed forms ("The capital of X is Y.", ``_FACTS``), joins two of them where one leads to the other
(``list_chains``) or compares two articles (``list_comparisons``), and draws by ``--seed`` as many of each kind as there
can be. No question was chosen, worded or dropped by what a model answers.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from formal_llm import authored
from formal_llm.agents.agent import ensure_text_llm
from formal_llm.agents.tools import agent_toolkit
from formal_llm.agents.tools.articles import Article, TextArticles
from formal_llm.agents.tools.corpus import sentences
from formal_llm.llms import resolve
from formal_llm.packs.questions import QuizQuestion, shipped_questions
from formal_llm.packs.questions.benchmark import run_agent
from formal_llm.packs.questions.loading import Measure

AGENTS = "direct,chain-of-thought,react,react-ablated,rewoo"
COUNT = 200
#: For each relation, how the sentence begins that states it; ``{title}`` is the article's.
_FACTS: Mapping[str, str] = {
    "capital": r"The capital of {title} is (.+)\.",
    "currency": r"Its currency is (?:the )?(.+)\.",
    "language": r"Its main language is (.+)\.",
    "mountain": r"Its highest mountain is (?:the )?([^,]+?)[.,].*",
    "born in": r"(?:He|She) was born .*in (\d{{4}})\.",
    "died in": r"(?:He|She) died in (\d{{4}})\.",
    "author": r"{title} is an? (?:novel|play|tragedy|painting|opera|book of science) by (.+)\.",
    "appeared in": r"It appeared in (\d{{4}})\.",
    "length": r"{title} is a river about ([\d,]+) kilometres long\.",
    "mouth": r"It flows into the ([^,]+?)[.,].*",
    "river": r"It lies on the (\w+)\.",
    "country": r"{title} is a city in (?:the )?(.+)\.",
    "height": r"Its height is ([\d,]+) metres\.",
    "number": r"It is a chemical element with the symbol \w+ and the atomic number (\d+)\.",
}
#: Kinds of chains: the first fact, what the second is looked up by, the second fact, the question.
_CHAINS = (
    ("author", "born in", "In which year was the person born who made {0}?"),
    ("author", "died in", "In which year did the person die who made {0}?"),
    ("river", "length", "How many kilometres long is the river on which {0} lies?"),
    ("river", "mouth", "Into which sea or ocean does the river flow on which {0} lies?"),
    ("country", "capital", "What is the capital of the country in which {0} lies?"),
    ("country", "currency", "What is the currency of the country in which {0} lies?"),
    ("mountain", "height", "How many metres high is the highest mountain of {0}?"),
)
#: Kinds of chains that go from a value to the only article with it: the first fact, the second fact, the question.
_BACK = (
    ("capital", "currency", "What is the currency of the country whose capital is {0}?"),
    ("capital", "language", "What is the main language of the country whose capital is {0}?"),
    ("capital", "mountain", "What is the highest mountain of the country whose capital is {0}?"),
    ("mountain", "capital", "What is the capital of the country whose highest mountain is {0}?"),
)
#: Kinds of comparisons: the fact, the question, whether the larger value is asked for.
_COMPARED = (
    ("length", "Which river is longer, the {0} or the {1}?", True),
    ("height", "Which mountain is higher, {0} or {1}?", True),
    ("born in", "Who was born first, {0} or {1}?", False),
    ("appeared in", "Which appeared first, {0} or {1}?", False),
    ("number", "Which element has the higher atomic number, {0} or {1}?", True),
)
Facts = dict[str, dict[str, str]]


def find_facts(articles: Iterable[Article]) -> Facts:
    """For each relation, its values by the titles of articles."""
    facts: Facts = defaultdict(dict)
    for article in articles:
        for sentence in sentences(" ".join(article.text.split())):
            for relation, form in _FACTS.items():
                found = re.fullmatch(form.format(title=rf"(?:[Tt]he )?{re.escape(article.title)}"), sentence)
                if found is not None:
                    facts[relation].setdefault(article.title, found[1])
    return facts


def list_chains(facts: Facts) -> Iterator[QuizQuestion]:
    for first, second, text in _CHAINS:
        for title, between in facts[first].items():
            if between in facts[second] and facts[second][between] != title:  # Berlin lies in the country of Berlin
                yield _make_question(f"{first}, {second}", text.format(title), facts[second][between], (title, between))
    for first, second, text in _BACK:
        titles = defaultdict(list)
        for title, value in facts[first].items():
            titles[value].append(title)
        for value, (title, *others) in titles.items():
            if not others and title in facts[second]:
                yield _make_question(f"{first}, {second}", text.format(value), facts[second][title], (title,))


def list_comparisons(facts: Facts, chance: random.Random) -> Iterator[QuizQuestion]:
    for relation, text, larger in _COMPARED:
        values = {title: int(value.replace(",", "")) for title, value in sorted(facts[relation].items())}
        titles = list(values)
        for one in titles:
            other = chance.choice([title for title in titles if values[title] != values[one]])
            right = (max if larger else min)((one, other), key=values.__getitem__)
            yield _make_question(f"{relation}, compared", text.format(one, other), right, (one, other))


def _make_question(kind: str, text: str, answer: str, titles: tuple[str, ...]) -> QuizQuestion:
    measure: Measure = "number" if kind.split(", ")[1] in ("length", "height") else "text"
    return QuizQuestion(f"{kind}: {', '.join(titles)}", text, (answer,), measure, kind, titles)


def make_questions(count: int, seed: int = 0) -> list[QuizQuestion]:
    """As many questions on the shipped corpus, as even over the kinds as can be.

    Raises:
        ValueError: the corpus gives fewer.
    """
    chance = random.Random(seed)
    facts = find_facts(TextArticles(authored.find("tasks", "questions") / "corpus.txt").read())
    known = {(frozenset(question.titles), question.answers) for question in shipped_questions()}
    kinds: dict[str, list[QuizQuestion]] = defaultdict(list)
    for question in (*list_chains(facts), *list_comparisons(facts, chance)):
        key = (frozenset(question.titles), question.answers)
        if key not in known:
            kinds[question.kind].append(question)
            known |= {key} if "compared" in question.kind else set()
    for questions in kinds.values():
        chance.shuffle(questions)
    found: list[QuizQuestion] = []
    while len(found) < count and any(kinds.values()):
        found += [questions.pop() for questions in kinds.values() if questions]
    if len(found) < count:
        raise ValueError(f"the corpus gives {len(found)} questions, not {count}")
    return found[:count]


def all_questions(limit: int | None = None, seed: int = 0) -> list[QuizQuestion]:
    """The shipped questions and those of the rule, 200 in all; ``limit`` of them, spread evenly."""
    shipped = shipped_questions()
    whole = [*shipped, *make_questions(COUNT - len(shipped), seed)]
    limit = min(limit or COUNT, COUNT)
    return [whole[place * COUNT // limit] for place in range(limit)]


def write_questions(questions: Sequence[QuizQuestion], file: Path) -> None:
    """Write questions as JSON lines in our own form."""
    rows = [
        {"id": one.id, "question": one.text, "answers": one.answers, "measure": one.measure, "kind": one.kind,
         "titles": one.titles}
        for one in questions
    ]  # fmt: skip
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def measure(name: str, agents: Sequence[str], questions: Sequence[QuizQuestion], folder: Path) -> None:
    """Print the rows of a model."""
    llm = ensure_text_llm(resolve(name))
    for agent in agents:
        begun = time.process_time()
        row = run_agent(agent, llm, agent_toolkit, questions, folder, called=name)
        spent = (time.process_time() - begun) / len(questions)
        cells = (
            row.llm, row.agent, f"{row.questions}", f"{row.failed}", f"{row.exact:.1f}", f"{row.f1:.1f}",
            f"{row.requests:.1f}", f"{row.tokens:,.0f}", f"{row.corrections:.2f}", f"{spent:.2f}",
        )  # fmt: skip
        print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llm", action="append", help="a provider string; again for another one")
    parser.add_argument("--agents", default=AGENTS)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    questions = all_questions(asked.limit, asked.seed)
    if asked.write is not None:
        write_questions(questions, asked.write)
    if not asked.llm:
        return
    columns = ["LLM", "agent", "questions", "failed", "exact %", "F1 %", "requests", "tokens", "corrections", "CPU s"]
    print(f"| {' | '.join(columns)} |\n| --- | --- |{' ---: |' * (len(columns) - 2)}")
    with TemporaryDirectory() as passing:
        folder = asked.out or Path(passing)
        folder.mkdir(parents=True, exist_ok=True)
        for name in asked.llm:
            measure(name, asked.agents.split(","), questions, folder)


if __name__ == "__main__":
    main()
