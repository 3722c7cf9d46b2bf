"""Draft and mend against greedy: requests, questions and tokens of a plan, with models that are right so often.

Run: python benchmarks/draft.py [--plans N] [--seed S]

The models are scripts. Each knows a plan that it wants, drawn at random. It answers a question with what this plan has
there with probability p, and else with any option; what the plan has no more to say about, with any option, too. Of its
draft each step is as it wants with probability p, and else another name at random (eight times in ten), left out, or
doubled by another one before it. Tokens are counted as a quarter of the characters, of the prompts as they are sent.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from statistics import fmean

from rich.console import Console
from rich.table import Table

from formal_llm import Answer, Plan, Planner, Question, RandomLLM, Task, TaskPack
from formal_llm.llms.generation import Generated, Messages, chat
from formal_llm.llms.usage import TokenUsage

RIGHT = (1.0, 0.9, 0.5, 0.0)
RULES = {
    "OpenAGI": ("openagi", "117"),
    "a day (daily.pda)": ("daily", ""),
    "cooking.cfg": ("cooking", ""),
    "risk.mmd": ("risk", ""),
}


class Script:
    """A model that wants a certain plan, and is right with probability p."""

    name = "script"

    def __init__(self, wanted: Plan, names: Sequence[str], p: float, seed: str) -> None:
        self._word, self._names, self._p = wanted.word, list(names), p
        self._steps = {step.text for step in wanted.steps}
        self._random = random.Random(seed)

    def choose(self, question: Question) -> Answer:
        """What the wanted plan has there, or anything."""
        numbers = self._wanted(question) if self._random.random() < self._p else ()
        numbers = numbers or RandomLLM(self._random.randrange(1 << 30)).choose(question).numbers
        text = ", ".join(map(str, numbers))
        asked = sum(len(message.content) for message in question.messages)
        return Answer(numbers, text=text, usage=_tokens(asked, text))

    def _wanted(self, question: Question) -> tuple[int, ...]:
        outlook = question.outlook
        assert outlook is not None
        so_far = tuple(term.name for term in outlook.so_far)
        if self._word[: len(so_far)] != so_far:
            return ()  # it is another plan by now
        rest = self._word[len(so_far) :]
        uses = [tuple(term.name for term in prospect.uses) for prospect in outlook.prospects]
        if question.several:
            chosen: list[int] = []
            for name in rest:
                numbers = [number for number, one in enumerate(uses, 1) if one == (name,)]
                if not numbers or (chosen and numbers[0] <= chosen[-1]):
                    break
                chosen += numbers
            while chosen and question.problem(tuple(chosen)):
                chosen.pop()
            return tuple(chosen)
        found = [n for n, one in enumerate(uses, 1) if one == rest[: len(one)] and bool(one) == bool(rest)]
        said = [n for n in found if question.options[n - 1].text in self._steps]  # where the first tool does not tell
        return tuple((said or found)[:1])

    def generate(
        self,
        messages: Messages,
        *,
        max_tokens: int = 512,  # noqa: ARG002
        stop: Sequence[str] = (),  # noqa: ARG002
        temperature: float = 0.0,  # noqa: ARG002
    ) -> Generated:
        """The wanted plan as a word, each step right with probability p."""
        steps: list[str] = []
        for name in self._word:
            fate = 0.0 if self._random.random() < self._p else self._random.random()
            if fate == 0.0:
                steps.append(name)
            elif fate < 0.9:
                steps += [self._random.choice([n for n in self._names if n != name]), *([name] if fate > 0.8 else [])]
        text = " ".join(steps)
        return Generated(text, _tokens(sum(len(message.content) for message in chat(messages)), text))


def _tokens(read: int, written: str) -> TokenUsage:
    return TokenUsage(1, read // 4, max(1, len(written) // 4))


def tasks(name: str, place: str) -> tuple[TaskPack, Task]:
    """A pack and one of its tasks."""
    pack = TaskPack.load(name)
    return pack, pack.tasks[int(place)] if place else next(iter(pack.tasks))


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    arguments.add_argument("--plans", type=int, default=100)
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    table = Table("rules", "right", "search", "requests", "drafts", "questions", "tokens read", "written", "as wanted")
    for rules, (name, place) in RULES.items():
        pack, task = tasks(name, place)
        drawing = pack.planner(RandomLLM(given.seed))
        wanted = [drawing.plan(task) for _ in range(given.plans)]
        names = list(drawing.table(task).vocabulary.terminals)
        for p in RIGHT:
            for search in ("greedy", "draft"):
                made: list[Plan] = []
                for number, plan in enumerate(wanted):
                    script = Script(plan, names, p, f"{given.seed}:{number}")
                    planner: Planner = pack.planner(script, search=search)
                    made.append(planner.plan(task))
                use = [plan.usage for plan in made]
                right = fmean(float(one.word == other.word) for one, other in zip(made, wanted, strict=True))
                mean = [
                    f"{fmean(values):,.2f}"
                    for values in (
                        [u.requests for u in use], [u.drafts for u in use], [u.questions for u in use],
                    )
                ]  # fmt: skip
                read, written = fmean(u.input_tokens for u in use), fmean(u.output_tokens for u in use)
                table.add_row(rules, f"{p:.0%}", search, *mean, f"{read:,.0f}", f"{written:,.1f}", f"{right:.0%}")
        table.add_section()
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
