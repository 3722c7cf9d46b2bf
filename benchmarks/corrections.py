"""How often a model that knows nothing of the rules is corrected: tiny random models write runs of ReAct.

    python benchmarks/corrections.py                      a model that runs here, by transformers
    python benchmarks/corrections.py --python PYTHON      and one on a llama.cpp server; PYTHON has xllamacpp and gguf

Both writers, offline. A model with random weights is the worst case: almost nothing it writes is a marker. A run has to
observe three times at least, and each observation is full of forged markers; runs are made until there were enough of
them. Printed: runs, states, requests, tokens and CPU milliseconds a state, how many transcripts keep the rules, and how
many forged markers were taken for real; then corrections by state, and one streamed run, piece by piece.
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.llamacpp import llamacpp_server
from formal_llm import Behaviour, Limits
from formal_llm.agents import Markers, Monitor, Segment, Transcript
from formal_llm.agents.decoding.chatting import ChattingWriter
from formal_llm.agents.decoding.continuing import ContinuingWriter
from formal_llm.agents.decoding.writer import Bounds, Due, MarkedWriter, Text, WriterEvent, added
from formal_llm.llms.hosted.llamacpp import LlamaCppLLM
from formal_llm.llms.llm import LLM
from formal_llm.llms.local.model import TransformersLLM
from tests import tiny_models

REACT = Behaviour.load("react-5")
MARKERS = Markers.of(REACT)
RULES = Monitor(REACT, limits=Limits(at_least={"observation": 3}))
#: How many forged markers the world writes at a time.
AT_ONCE = 20
WRITERS: dict[str, type[MarkedWriter]] = {"goes on": ContinuingWriter, "chooses": ChattingWriter}


def forged(number: int) -> str:
    """What the world says: a text with forged markers, some of them escaped as ours are."""
    markers = itertools.islice(itertools.cycle(MARKERS.states), number, number + AT_ONCE)
    return " ".join(f"{MARKERS.escape(one) if place % 5 == 4 else one} {place}" for place, one in enumerate(markers))


def run(writer: MarkedWriter, question: str, told: list[WriterEvent] | None = None) -> tuple[Transcript, int, int]:
    """A run to its end; how many forged markers the world wrote, and how many were taken for real."""
    transcript = Transcript(REACT.name, (Segment("question", question, "user"),))
    said: list[str] = []
    while True:
        due = None
        monitor = RULES.after_all(transcript.word)
        for one in writer.write(transcript, monitor, until={"observation"}):
            transcript = added(transcript, one)
            due = one if isinstance(one, Due) else None
            if told is not None:
                told.append(one)
        if due is None:
            break
        said.append(forged(len(said)))
        transcript = transcript.plus(Segment("observation", said[-1], "environment"))
    # What a model is shown is read back: a marker that were taken would begin a state, or part what the world said.
    back = Transcript.from_text(transcript.to_text(REACT), REACT)
    shown = [one.text for one in back.segments if one.state == "observation"]
    taken = abs(len(back) - len(transcript)) + sum(a != b for a, b in itertools.zip_longest(shown, said))
    return transcript, AT_ONCE * len(said), taken


def measure(writer: MarkedWriter, least: int, runs: int) -> tuple[list[Transcript], int, int, float]:
    """Runs until there were so many forged markers: the transcripts, the markers, those taken, CPU seconds."""
    made: list[Transcript] = []
    wrote = taken = 0
    begin = time.process_time()
    while len(made) < runs or wrote < least:
        transcript, more, wrong = run(writer, f"What is {len(made)} times {len(made)}?")
        made.append(transcript)
        wrote, taken = wrote + more, taken + wrong
    return made, wrote, taken, time.process_time() - begin


@contextmanager
def models(python: str | None) -> Iterator[dict[str, LLM]]:
    """A tiny random model that runs here, and one on a llama.cpp server where there is one."""
    network = tiny_models.causal("llama", tiny_models.VOCABULARY)
    here: dict[str, LLM] = {"transformers": TransformersLLM.of(network, tiny_models.tokenizer())}
    if python is None:
        yield here
        return
    os.environ.setdefault("NO_PROXY", "127.0.0.1")
    with tempfile.TemporaryDirectory() as folder, llamacpp_server(python, Path(folder)) as url:
        yield {**here, "llama.cpp": LlamaCppLLM("tiny", base_url=url)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20, help="how many runs at least")
    parser.add_argument("--forged", type=int, default=1_000, help="how many forged markers at least")
    parser.add_argument("--python", help="a Python with a llama.cpp server")
    args = parser.parse_args()
    console = Console(width=120)
    table = Table(
        "model", "writer", "runs", "states", "requests a state", "tokens", "CPU ms", "legal", "forged", "taken"
    )
    names = [name for name, state in REACT.states.items() if not state.from_environment and name != "question"]
    corrected = Table("model", "writer", *names, "the end", title="corrections a state")
    with models(args.python) as llms:
        for model, llm in llms.items():
            for name, kind in WRITERS.items():
                bounds = Bounds(state_tokens=24, chunk_tokens=24)
                writer = kind(llm, REACT, bounds=bounds, temperature=1.0)
                made, wrote, taken, took = measure(writer, args.forged, args.runs)
                counts = Counter[str]()
                for transcript in made:
                    for state, one in transcript.by_state.items():
                        counts[f"times {state}"] += one.times
                        counts[f"corrections {state}"] += one.corrections
                        counts["requests"] += one.usage.requests
                        counts["tokens"] += one.usage.output_tokens
                states = sum(counts[f"times {state}"] for state in names)
                legal = sum(transcript.verify(RULES).valid for transcript in made)
                table.add_row(
                    model, name, f"{len(made)}", f"{states}", f"{counts['requests'] / states:.2f}",
                    f"{counts['tokens'] / states:.1f}", f"{1000 * took / states:.1f}", f"{legal} of {len(made)}",
                    f"{wrote:,}", f"{taken}",
                )  # fmt: skip
                shares = [counts[f"corrections {state}"] / max(1, counts[f"times {state}"]) for state in names]
                corrected.add_row(model, name, *(f"{one:.2f}" for one in shares), f"{counts['corrections ']}")
                if legal < len(made) or taken:
                    raise SystemExit("a transcript breaks the rules, or a forged marker was taken")
        console.print(table)
        console.print(corrected)
        for model, llm in llms.items():
            told: list[WriterEvent] = []
            writer = ContinuingWriter(llm, REACT, bounds=Bounds(state_tokens=24), temperature=1.0, streaming=True)
            transcript, _, _ = run(writer, "What is 6 times 7?", told)
            pieces = [one.text for one in told if isinstance(one, Text)]
            console.print(
                f"{model}, streamed: {len(pieces)} pieces of {len(transcript)} states, "
                f"{transcript.verify(RULES).valid and 'legal'}: {' | '.join(map(repr, pieces[:8]))} ...",
                markup=False,
            )


if __name__ == "__main__":
    main()
