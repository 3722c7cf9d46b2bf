"""A real peer: all 17 test tasks of OpenAGI through ``llamacpp:``, with a real llama.cpp server and a random model.

Run: make llamacpp   (installs the server in an environment of its own)
or:  python benchmarks/llamacpp.py --python PYTHON, where PYTHON has xllamacpp (or llama-cpp-python[server]) and gguf.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from formal_llm.llms.hosted.scoring import at_root

from formal_llm import Lookahead, Planner, TaskPack
from formal_llm.llms.generation import chat
from formal_llm.llms.hosted.llamacpp import LlamaCppLLM


@contextmanager
def llamacpp_server(python: str, folder: Path, model: Path | None = None) -> Iterator[str]:
    """The address of a server with a model, a tiny random one where none is named; it ends with the block."""
    if model is None:
        model = folder / "tiny.gguf"
        subprocess.run([python, str(Path(__file__).with_name("tiny_gguf.py")), str(model)], check=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [python, str(Path(__file__).with_name("llama_server.py")), str(model), str(port)],
            stdout=output,
            stderr=output,
        )
    try:
        for _ in range(300):
            if process.poll() is not None:
                raise RuntimeError(f"the server ended:\n{log.read_text(errors='replace')[-2000:]}")
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=1).close()
                break
            except OSError:
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(20)


def probabilities(llm: LlamaCppLLM) -> None:
    """Log-probabilities of given texts, beside those that the server tells of all tokens, one request for each."""
    texts = ["12", "the image of 7", "Image Denoising"]
    found = llm.log_probabilities("Which image?", texts)
    assert found is not None
    for text, (value, count) in zip(texts, found, strict=True):
        before, tokens = llm._chat_tokens(chat("Which image?")), llm._text_tokens(text)
        other = 0.0
        for place, token in enumerate(tokens):
            asked = {"prompt": before + tokens[:place], "n_predict": 1, "n_probs": 1_000, "temperature": 0.0}
            made = llm._post_json(llm.client, at_root(llm.client.base_url, "/completion"), asked)
            (told,) = made["completion_probabilities"]
            other += next(one["logprob"] for one in told["top_logprobs"] if one["id"] == token)
        print(f"log-probability of {text!r}: {value:.4f}, {count} tokens; token by token: {other:.4f}")
        if abs(value - other) > 1e-3:
            raise SystemExit("they differ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    python = parser.parse_args().python
    pack = TaskPack.load("openagi")
    with tempfile.TemporaryDirectory() as folder, llamacpp_server(python, Path(folder)) as url:
        os.environ["LLAMACPP_BASE_URL"] = url
        planner = Planner(pack.cfg, "llamacpp:tiny", wording=pack.wording)
        begun = time.perf_counter()
        outcomes = planner.plan_all(pack.split("test"), concurrency=2)
        seconds = time.perf_counter() - begun
        probabilities(LlamaCppLLM("tiny", base_url=url))
    valid = questions = likely = 0
    for outcome in outcomes:
        plan, task = outcome.unwrap(), outcome.task
        cfg = pack.cfg if task.goal is None else pack.cfg.with_start(task.goal)
        valid += Lookahead(cfg, task.limits).automaton.accepts(plan.word)
        questions += plan.usage.questions
        likely += plan.probability is not None
    print(
        f"{valid} of {len(outcomes)} plans valid, {likely} with a probability, "
        f"{questions} questions, {outcomes[0].usage.input_tokens} tokens read for the first plan, {seconds:.1f} s"
    )
    if valid < len(outcomes) or likely < len(outcomes):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
