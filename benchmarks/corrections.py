"""How often a model that knows nothing of the rules is corrected: a tiny random model writes runs of ReAct.

    python benchmarks/corrections.py --runs 20

Both writers, the same model, offline. A model with random weights is the worst case: almost nothing it writes is a
marker. Printed: runs, states, corrections a state, requests a state, tokens a state, CPU milliseconds a state, and how
many transcripts keep the rules.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from formal_llm import Behaviour
from formal_llm.agents import Monitor, Segment, Transcript
from formal_llm.agents.decoding.choosing import ChoosingWriter
from formal_llm.agents.decoding.continuing import ContinuingWriter
from formal_llm.agents.decoding.writer import Bounds, Due, Writer, added
from formal_llm.llms.local.model import TransformersLLM
from tests import tiny_models

REACT = Behaviour.load("react-5")
OBSERVED = "Nothing was found. [Answer] 42"


def run(writer: Writer, question: str) -> Transcript:
    """A run to its end."""
    transcript = Transcript("react-5", (Segment("question", question, "user"),))
    while True:
        due = None
        monitor = Monitor(REACT).after_all(transcript.word)
        for told in writer.write(transcript, monitor, until={"observation"}):
            transcript = added(transcript, told)
            due = told if isinstance(told, Due) else None
        if due is None:
            return transcript
        transcript = transcript.plus(Segment("observation", OBSERVED, "environment"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    args = parser.parse_args()
    llm = TransformersLLM.of(tiny_models.causal("llama", tiny_models.VOCABULARY), tiny_models.tokenizer())
    bounds = Bounds(state_tokens=24, chunk_tokens=24)
    ways: dict[str, Callable[..., Writer]] = {"goes on": ContinuingWriter, "chooses": ChoosingWriter}
    print(
        f"{'writer':10} {'runs':>5} {'states':>7} {'corrections':>12} {'requests':>9} {'tokens':>7} {'CPU ms':>7}  legal"
    )
    for name, kind in ways.items():
        writer = kind(llm, REACT, bounds=bounds, temperature=1.0)
        begin = time.process_time()
        made = [run(writer, f"What is {number} times {number}?") for number in range(args.runs)]
        took = time.process_time() - begin
        states = sum(one.source in ("model", "forced") for transcript in made for one in transcript.segments)
        corrections = sum(len(transcript.corrections) for transcript in made)
        requests = sum(transcript.usage.requests for transcript in made)
        tokens = sum(transcript.usage.output_tokens for transcript in made)
        legal = sum(bool(transcript.verify(REACT)) for transcript in made)
        print(
            f"{name:10} {len(made):5} {states:7} {corrections / states:12.2f} {requests / states:9.2f} "
            f"{tokens / states:7.1f} {1000 * took / states:7.1f}  {legal} of {len(made)}"
        )


if __name__ == "__main__":
    main()
