"""What the text tools of OpenAGI are worth: those of ``classical`` beside those of a language model (``smollm2``).

    python benchmarks/text_tools.py [--llm smollm2] [--only question_answering ...]

On the texts of the task data (``tasks/openagi/texts.toml``) and on more questions and sentences that nothing was chosen
on (``text_tools.toml``). Summaries, answers and continuations are compared with what a person wrote, by BERTScore
(MiniLM) and, for answers, by the F-score of words. A gap counts as filled where the word is the one that was taken out:
five words of each passage, drawn once. A passage is to be continued after its second sentence, by the third.
The last row shows why there is no translation: the chrF of what the model writes when it is asked for German, beside
that of the English sentence left as it is. CPU seconds are those of one text.
"""

from __future__ import annotations

import argparse
import random
import time
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from formal_llm.llms import resolve
from formal_llm.packs.openagi.classical.language import split_sentences
from formal_llm.packs.openagi.data.making import mask_word
from formal_llm.packs.openagi.data.sources import load_opinions, load_passages
from formal_llm.packs.openagi.scores.text import BERTScore, ChrF, TokenF1
from formal_llm.packs.openagi.text_tools import TextTools
from formal_llm.packs.openagi.toolkits import CLASSICAL

#: What goes in and what a person says.
Row = tuple[tuple[str, ...], str]
HELD_OUT = tomllib.loads(Path(__file__).with_name("text_tools.toml").read_text(encoding="utf-8"))


def same(output: str, expected: str) -> float:
    """1 for equal texts, else 0."""
    return float(output == expected)


def cases() -> list[tuple[str, str, list[Row], dict[str, Callable[[str, str], float]]]]:
    """For each line of the table: the tool, what it is measured on, the rows, and the scores."""
    texts = [passage.text for passage in load_passages()]
    bert, words = BERTScore(), TokenF1()
    draw = random.Random(0)
    begun = [(split_sentences(text)[:2], split_sentences(text)[2]) for text in texts]
    more: list[Row] = [((texts[one["passage"]], one["question"]), one["answer"]) for one in HELD_OUT["questions"]]
    felt: list[Row] = [((text,), name) for name in ("positive", "negative") for text in HELD_OUT[name]]
    opinion: list[Row] = [((one.text["English"],), one.sentiment["English"]) for one in load_opinions()]
    return [
        ("sentiment", "task data", opinion, {"right": same}),
        ("sentiment", "held out", felt, {"right": same}),
        (
            "summarization",
            "task data",
            [((one.text,), one.summary["English"]) for one in load_passages()],
            {"BERTScore": bert},
        ),
        (
            "question_answering",
            "task data",
            [((one.text, one.question), one.answer["English"]) for one in load_passages()],
            {"BERTScore": bert, "F1": words},
        ),
        ("question_answering", "held out", more, {"BERTScore": bert, "F1": words}),
        (
            "fill_mask",
            "task data",
            [((mask_word(text, draw),), text) for text in texts for _ in range(5)],
            {"right": same},
        ),
        ("text_generation", "task data", [((" ".join(two),), third) for two, third in begun], {"BERTScore": bert}),
    ]


def measured(tool: Callable[..., str], rows: Iterable[Row]) -> tuple[list[str], float]:
    """What a tool gives for each row, and the CPU seconds for one of them."""
    begun = time.process_time()
    outputs = [tool(*given) for given, _ in rows]
    return outputs, (time.process_time() - begun) / len(outputs)


def translated(llm: str) -> tuple[float, float, float, int]:
    """The chrF of English left as it is, of what the model writes, the CPU seconds, and on how many sentences."""
    model, score = resolve(llm), ChrF()
    begun = time.process_time()
    made = [
        model.generate(f"Translate this sentence into German.\n\n{one.text['English']}", max_tokens=48).text  # type: ignore[attr-defined]
        for one in load_opinions()
    ]
    seconds = (time.process_time() - begun) / len(made)
    values = [score(text, one.text["German"]) for text, one in zip(made, load_opinions(), strict=True)]
    left = [score(one.text["English"], one.text["German"]) for one in load_opinions()]
    return sum(left) / len(left), sum(values) / len(values), seconds, len(values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llm", default="smollm2", help="the language model: smollm2, or transformers:FOLDER")
    parser.add_argument("--only", action="append", help="a tool, again for more; all where left out")
    parser.add_argument("--show", action="store_true", help="what the model said, text by text")
    args = parser.parse_args()
    tools = TextTools(args.llm).functions
    table = Table(title=f"Text tools: classical and {args.llm}")
    for column in ("tool", "measured on", "texts", "score", "classical", args.llm, "CPU s", "CPU s"):
        table.add_column(column, justify="left" if column in ("tool", "measured on", "score") else "right")
    for tool, on, rows, scores in cases():
        if args.only and tool not in args.only:
            continue
        tools[tool](*rows[0][0])  # loaded before the clock runs
        pairs = [measured(CLASSICAL[tool], rows), measured(tools[tool], rows)]
        if args.show:
            for (given, expected), mine in zip(rows, pairs[1][0], strict=True):
                print(tool, "|", given[-1][-60:], "|", expected[:80], "|", mine[-120:])
        # A filled text stands for its one word, which is all that may be other.
        for name, score in scores.items():
            means = [
                sum(score(output, expected) for output, (_, expected) in zip(outputs, rows, strict=True)) / len(rows)
                for outputs, _ in pairs
            ]
            values = [f"{mean:.3f}" if score is not same else f"{mean:.0%}" for mean in means]
            table.add_row(tool, on, str(len(rows)), name, *values, *(f"{seconds:.2f}" for _, seconds in pairs))
    if not args.only or "translation" in args.only:
        left, made, seconds, count = translated(args.llm)
        values = [f"{left:.3f} *", f"{made:.3f}", "", f"{seconds:.2f}"]
        table.add_row("(translation)", "task data", str(count), "chrF", *values)
    Console(width=120).print(table)
    print("* left in English")


if __name__ == "__main__":
    main()
