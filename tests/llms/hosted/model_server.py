"""A server with a real (tiny, random) model behind it, that tells how probable texts are as vLLM and llama.cpp do.

What it computes it computes the slow way: one text at a time, each token from the logits before it.
"""

from __future__ import annotations

import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

import torch


class ModelServer:
    """Serves a model between ``start`` and ``stop``; ``paths`` are those of the requests so far."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.paths: list[str] = []
        self._one = Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        with self._one, torch.no_grad():
            self.paths.append(path)
            return {
                "/tokenize": self.tokenize,
                "/apply-template": lambda asked: {"prompt": self.template(asked["messages"], opened=True)},
                "/v1/completions": self.echo,
                "/completion": self.held,
            }[path](body)

    def template(self, messages: list[dict[str, str]], *, opened: bool) -> str:
        return str(self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=opened))

    def tokenize(self, body: dict[str, Any]) -> dict[str, Any]:
        if "messages" in body:
            text = self.template(body["messages"], opened=body["add_generation_prompt"])
        else:
            text = body["prompt"] if "prompt" in body else body["content"]
        return {"tokens": self.tokenizer(text, add_special_tokens=False)["input_ids"]}

    def logs(self, ids: list[int]) -> torch.Tensor:
        return torch.log_softmax(self.model(input_ids=torch.tensor([ids])).logits[0].float(), dim=-1)

    def echo(self, body: dict[str, Any]) -> dict[str, Any]:
        prompts = body["prompt"] if isinstance(body["prompt"][0], list) else [body["prompt"]]
        choices = []
        for index, ids in enumerate(prompts):
            table = self.logs(ids)
            told = [None, *(float(table[place - 1, ids[place]]) for place in range(1, len(ids))), -1.0]
            choices.append({"index": index, "logprobs": {"token_logprobs": told}})
        return {"choices": choices[::-1]}  # in any order: they are numbered

    def held(self, body: dict[str, Any]) -> dict[str, Any]:
        ids, found = list(body["prompt"]), []
        for token in map(int, re.findall(r"<\[(\d+)\]>", body["grammar"])):
            found.append({"id": token, "logprob": float(self.logs(ids)[-1, token])})
            ids.append(token)
        return {"completion_probabilities": found}


def _handler(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            page = json.dumps(server.answer(self.path, body)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *args: Any) -> None:
            """Say nothing on stderr."""

    return Handler
