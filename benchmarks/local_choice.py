"""Choices per second of one small model, answered in three ways, over walks of eight decisions.

Run: python benchmarks/local_choice.py [--width 64 --layers 2]

Every way answers the same questions: recorded walks over OpenAGI tasks, driven by the same planner with the same
answers, so the planner's own time is in every row. A text is put together in the same way for all.

``generate()``
    One question at a time, as the scripts of the paper do: 30 new tokens for each choice. And with only as many tokens
    as the longest legal answer to the question has (one, below ten options), the least that it can work with.
naive forward
    One question at a time, no cache, the probability of each legal answer, all answers in a batch.
formal_llm, one walk at a time
    The library's scorer; what a walk's questions share is read once.
formal_llm, all walks together
    ``Planner.plan_all``: batches over walks. Nothing is remembered at the start of each measurement.

The last two columns compare CPU time, which other work on the machine disturbs less. The probabilities of the naive
passes and of the library are compared at the end.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import tiny_decoder
from formal_llm import LLM, Answer, Planner, Question, RandomLLM, Task, TaskPack
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.llms.local.rendering import Renderer

#: For each question the probabilities of its answers; None where a way has none.
Probabilities = list[float] | None
Ways = dict[str, Callable[[], "Scripted"]]


@dataclass(frozen=True)
class Recorded:
    """A walk with the answers that were given."""

    task: Task
    answers: tuple[int, ...]


class Scripted(LLM):
    """Answers as recorded, after a model has been asked: one question at a time."""

    def __init__(self, walks: Sequence[Recorded], ask: Callable[[Sequence[Question]], list[Probabilities]]) -> None:
        self.walks = walks
        self.compute = ask
        self.asked = [0] * len(walks)
        self.found: dict[tuple[int, int], Probabilities] = {}

    def answer(self, question: Question) -> Answer:
        """The recorded answer."""
        return self._answer(question, self.compute([question])[0])

    def _answer(self, question: Question, probabilities: Probabilities) -> Answer:
        walk = int(question.walk)
        place = self.asked[walk]
        self.asked[walk] += 1
        self.found[walk, place] = probabilities
        return Answer((self.walks[walk].answers[place],))


class ScriptedTogether(Scripted):
    """The same, many questions at a time."""

    at_once = 64

    def answer_all(self, questions: Sequence[Question]) -> list[Answer]:
        """The recorded answers."""
        return [self._answer(q, p) for q, p in zip(questions, self.compute(questions), strict=True)]


@dataclass(frozen=True)
class Bench:
    """What is measured on.

    Attributes:
        planner: whose questions; what it learns of the grammar is learned before anything is measured.
        model, tokenizer: the model.
    """

    planner: Planner
    model: Any
    tokenizer: Any

    def record(self, tasks: Sequence[Task], decisions: int, walks: int, each: int) -> list[Recorded]:
        """Walks with random answers that have just so many decisions, ``each`` of them for a task."""
        found: list[Recorded] = []
        for task in tasks:
            own: list[Recorded] = []
            for seed in range(100):
                walk, llm = self.planner.start(task), RandomLLM(seed)
                answers = []
                while (question := walk.question) is not None:
                    answers.append(llm.ask(question).number)
                    walk.answer(answers[-1])
                if len(answers) == decisions:
                    own.append(Recorded(task, tuple(answers)))
                if len(own) == each:
                    found += own
                    break
            if len(found) >= walks:
                return found[:walks]
        return found

    def run(self, way: Scripted) -> tuple[float, float]:
        """Choices per second, and milliseconds of CPU time for a choice."""
        self.planner.llm = way
        tasks = [walk.task for walk in way.walks]
        many = len(tasks) if isinstance(way, ScriptedTogether) else None
        begin, cpu = perf_counter(), process_time()
        outcomes = self.planner.plan_all(tasks, concurrency=many)
        seconds, used = perf_counter() - begin, process_time() - cpu
        choices = sum(outcome.unwrap().usage.questions for outcome in outcomes)
        return choices / seconds, used / choices * 1e3

    def renderer(self) -> Renderer:
        """A renderer with nothing in its caches."""
        return Renderer(self.tokenizer, "chat")

    # -- the ways -----------------------------------------------------------------------------------------------

    def generate(self, walks: Sequence[Recorded], tokens: int | None) -> Scripted:
        """``generate()`` with so many new tokens; None: as many as the longest legal answer has."""
        import torch

        renderer = self.renderer()
        needed: dict[int, int] = {}

        def ask(questions: Sequence[Question]) -> list[Probabilities]:
            (question,) = questions
            many = len(question.options)
            if many not in needed:
                needed[many] = max(len(renderer.continuation_tokens(str(n))) for n in range(1, many + 1))
            new = tokens or needed[many]
            ids = torch.tensor([renderer.tokens(question.messages)])
            with torch.no_grad():
                written = self.model.generate(
                    input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=new,
                    min_new_tokens=new, pad_token_id=0,
                )  # fmt: skip
            said = self.tokenizer.decode(written[0, ids.shape[1] :], skip_special_tokens=True)
            _ = next((part for part in said.split() if part.isdigit()), None)  # the scripts look for a number
            return [None]

        return Scripted(walks, ask)

    def naive(self, walks: Sequence[Recorded]) -> Scripted:
        """A pass over prompt and answer, for all answers of a question in a batch."""
        import torch

        renderer = self.renderer()

        def read(rows: list[list[int]], prompt: int) -> list[float]:
            width = max(map(len, rows))
            ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
            mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
            logits = self.model(input_ids=ids, attention_mask=mask, use_cache=False).logits[:, prompt - 1 : -1]
            logs = torch.log_softmax(logits, dim=-1).gather(2, ids[:, prompt:, None])[..., 0]
            return [float(v) for v in (logs * mask[:, prompt:]).sum(1)]

        def ask(questions: Sequence[Question]) -> list[Probabilities]:
            (question,) = questions
            prompt = list(renderer.tokens(question.messages))
            rows = [prompt + list(renderer.answer_tokens(str(o.number))) for o in question.options]
            with torch.no_grad():
                values = read(rows, len(prompt))
            return [torch.tensor(values).softmax(0).tolist()]

        return Scripted(walks, ask)

    def ours(self, walks: Sequence[Recorded], *, together: bool, **settings: Any) -> Scripted:
        """The library, with nothing in its caches."""
        llm = TransformersLLM.of(self.model, self.tokenizer, **settings)

        def ask(questions: Sequence[Question]) -> list[Probabilities]:
            found: list[Probabilities] = []
            for outcome in llm.answer_all(questions):
                assert isinstance(outcome, Answer)
                assert outcome.probabilities is not None
                found.append([outcome.probabilities[n] for n in sorted(outcome.probabilities)])
            return found

        return (ScriptedTogether if together else Scripted)(walks, ask)


def difference(one: Scripted, other: Scripted) -> float:
    """The largest difference between the probabilities that two ways gave to the same answers."""
    both = one.found.keys() & other.found.keys()
    pairs = [(one.found[place], other.found[place]) for place in sorted(both)]
    return max(abs(a - b) for p, q in pairs if p and q for a, b in zip(p, q, strict=True))


def measure(bench: Bench, walks: Sequence[Recorded], slow: int, rounds: int, console: Console) -> float:
    """Measure all ways and show them; the largest difference between probabilities.

    Args:
        bench: what is measured on.
        walks: all walks.
        slow: how many of them the ways without batches get, which take long and gain nothing from more.
        rounds: measurements of each way; the best is shown.
        console: where the table goes.
    """
    few = walks[:slow]
    minimal, naive = "generate(), fewest tokens", "naive forward, all answers in a batch"
    ways: Ways = {
        "generate(), 30 tokens": lambda: bench.generate(few, 30),
        minimal: lambda: bench.generate(few, None),
        naive: lambda: bench.naive(few),
        "formal_llm, one walk at a time": lambda: bench.ours(few, together=False),
        f"formal_llm, {len(walks)} walks together": lambda: bench.ours(walks, together=True),
    }
    rates: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    done: dict[str, Scripted] = {}
    for _ in range(rounds):  # interleaved, so that a busy moment of the machine hits all alike
        for name, make in ways.items():
            done[name] = make()
            rates[name].append(bench.run(done[name]))
    rate = {name: max(found for found, _ in both) for name, both in rates.items()}
    cost = {name: min(found for _, found in both) for name, both in rates.items()}
    tasks = len({walk.task for walk in walks})
    table = Table(title=f"{len(walks)} walks over {tasks} tasks, {len(walks[0].answers)} decisions each")
    columns = ("way", "choices/s", "CPU ms/choice", "times generate(), 30 tokens", "times generate(), fewest")
    for column in columns:
        table.add_column(column, justify="left" if column == "way" else "right")
    first = next(iter(cost.values()))
    for name in ways:
        table.add_row(
            name, f"{rate[name]:,.1f}", f"{cost[name]:.2f}", f"{first / cost[name]:.1f}",
            f"{cost[minimal] / cost[name]:.1f}",
        )  # fmt: skip
    console.print(table)
    *_, together = done.values()
    return difference(done[naive], together)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=32, help="the size of the model's hidden states")
    parser.add_argument("--layers", type=int, default=2, help="the model's layers")
    parser.add_argument("--decisions", type=int, default=8, help="decisions in each walk")
    parser.add_argument("--walks", type=int, default=64, help="walks that are made together")
    parser.add_argument("--slow", type=int, default=4, help="walks for the ways that take one question at a time")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each way; the best is shown")
    parser.add_argument("--threads", type=int, default=1, help="for torch")
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(arguments.threads)
    tiny_decoder.quiet()
    pack = TaskPack.load("openagi")
    planner = Planner(pack.cfg, RandomLLM(0), wording=pack.wording)
    tokenizer = tiny_decoder.tokenizer(tiny_decoder.questions(planner, pack.tasks))
    model = tiny_decoder.decoder(arguments.width, arguments.layers)
    bench = Bench(planner, model, tokenizer)
    console = Console(width=120)
    console.print(tiny_decoder.machine(), highlight=False)
    console.print(f"{tiny_decoder.told(model)}; best of {arguments.rounds} rounds each", highlight=False)
    worst = 0.0
    for each in (1, 8):
        walks = bench.record(pack.tasks, arguments.decisions, arguments.walks, each)
        worst = max(worst, measure(bench, walks, arguments.slow, arguments.rounds, console))
    console.print(f"Largest difference between probabilities, naive against all walks together: {worst:.1e}")
    if worst > 1e-5:
        raise SystemExit("the ways disagree")


if __name__ == "__main__":
    main()
