"""A server that speaks what is used of vLLM's protocol, backed by a tiny model: adapters and log-probabilities.

What it answers is computed by transformers and peft from the adapters that it was given, so it is what a real server
would say of that model. It reads texts one by one, in full, without anything of the library.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests import tiny_models

BASE = "tiny/llama"


class Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        self.status = status
        self.message = message
        super().__init__(message)


@dataclass
class VLLMServer:
    """The server.

    Attributes:
        updating, lora: whether it was started with VLLM_ALLOW_RUNTIME_LORA_UPDATING, and with --enable-lora.
        rank: of --max-lora-rank.
        names_tokens: what it does with ``logprob_token_ids``: "yes", "ignored" (older versions), "refused".
        failing: how many of the next requests fail with status 503.
        refusing: the status and message by which adapters are refused.
        adapters: the paths of the adapters on it.
        asked: the requests so far: their path, and their body.
        frozen: the adapter that answers instead of all that are asked for: weights that are not the newest.
    """

    updating: bool = True
    lora: bool = True
    rank: int = 16
    names_tokens: str = "yes"
    failing: int = 0
    refusing: tuple[int, str] | None = None
    adapters: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    frozen: str | None = None
    url: str = ""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._networks: dict[str, Any] = {}

    # -- what vLLM does ---------------------------------------------------------------------------------------------

    def models(self) -> dict[str, Any]:
        listed = [{"id": BASE, "root": BASE, "parent": None}]
        listed += [{"id": name, "root": path, "parent": BASE} for name, path in self.adapters.items()]
        return {"object": "list", "data": listed}

    def load_lora_adapter(self, body: dict[str, Any]) -> str:
        name, path = body["lora_name"], body["lora_path"]
        if self.refusing is not None:
            raise Refused(*self.refusing)
        if not self.lora:
            raise Refused(400, "Call to add_lora method failed: LoRA is not enabled.")
        if name in self.adapters:
            raise Refused(400, f"The lora adapter '{name}' has already been loaded. If you want to load the adapter in "
                               "place, set 'load_inplace' to True.")  # fmt: skip
        if not (Path(path) / "adapter_config.json").is_file():
            raise Refused(404, f"Loading lora {name} failed: No adapter found for {path}")
        rank = json.loads((Path(path) / "adapter_config.json").read_text(encoding="utf-8"))["r"]
        if rank > self.rank:
            raise Refused(400, f"LoRA rank {rank} is greater than max_lora_rank {self.rank}.")
        self._networks[name] = self._network(path)
        self.adapters[name] = path
        return f"Success: LoRA adapter '{name}' added successfully."

    def unload_lora_adapter(self, body: dict[str, Any]) -> str:
        name = body["lora_name"]
        if name not in self.adapters:
            raise Refused(404, f"The lora adapter '{name}' cannot be found.")
        del self.adapters[name]
        return f"Success: LoRA adapter '{name}' removed successfully."

    def completions(self, body: dict[str, Any]) -> dict[str, Any]:
        name = body["model"]
        if name not in self.adapters and name != BASE:
            raise Refused(404, f"The model `{name}` does not exist.")
        if "logprob_token_ids" in body and self.names_tokens == "refused":
            raise Refused(400, "extra_forbidden: logprob_token_ids")
        network = self._networks[self.frozen or name] if (self.frozen or name) != BASE else self._network(None)
        choices = []
        for index, text in enumerate(body["prompt"]):
            logs = self._logs(network, text)
            if body.get("echo"):
                told = [None, *(logs[place, token] for place, token in enumerate(text[1:])), -1.0]
                found: dict[str, Any] = {"token_logprobs": [None if one is None else float(one) for one in told]}
            else:
                best = int(logs[-1].argmax())
                numbers = {best, *body["logprob_token_ids"]} if self.names_tokens == "yes" else {best}
                found = {"top_logprobs": [{f"token_id:{one}": max(float(logs[-1, one]), -9999.0) for one in numbers}]}
            choices.append({"index": index, "text": "?", "logprobs": found})
        return {"choices": choices[::-1]}

    # -- the model --------------------------------------------------------------------------------------------------

    def _network(self, path: str | None) -> Any:
        from peft import PeftModel

        base = tiny_models.causal("llama", len(tiny_models.tokenizer()))
        return base if path is None else PeftModel.from_pretrained(base, path).eval()

    def _logs(self, network: Any, text: list[int]) -> Any:
        import torch

        with torch.no_grad():
            return torch.log_softmax(network(input_ids=torch.tensor([text])).logits[0].float(), dim=-1)

    # -- HTTP -------------------------------------------------------------------------------------------------------

    def answered(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, object]:
        """The status, and what is said."""
        with self._lock:
            self.asked.append((path, body))
            if self.failing:
                self.failing -= 1
                return 503, {"error": {"message": "the engine is busy"}}
            try:
                if (method, path) == ("GET", "/v1/models"):
                    return 200, self.models()
                if path == "/v1/completions":
                    return 200, self.completions(body)
                if self.updating and path == "/v1/load_lora_adapter":
                    return 200, self.load_lora_adapter(body)
                if self.updating and path == "/v1/unload_lora_adapter":
                    return 200, self.unload_lora_adapter(body)
            except Refused as refused:
                return refused.status, {"error": {"message": refused.message, "code": refused.status}}
            return 404, {"detail": "Not Found"}

    @contextmanager
    def running(self) -> Iterator[VLLMServer]:
        """The server, at its address."""
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.reply({})

            def do_POST(self) -> None:
                self.reply(json.loads(self.rfile.read(int(self.headers["content-length"]))))

            def reply(self, body: dict[str, Any]) -> None:
                status, said = server.answered(self.command, self.path, body)
                plain = isinstance(said, str)
                data = (str(said) if plain else json.dumps(said)).encode()
                self.send_response(status)
                self.send_header("content-type", "text/plain" if plain else "application/json")
                self.send_header("content-length", str(len(data)))
                if status == 503:
                    self.send_header("retry-after", "0.01")
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None: ...

        class Http(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None: ...  # a client that does not wait hangs up

        http = Http(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        self.url = f"http://127.0.0.1:{http.server_port}"
        try:
            yield self
        finally:
            http.shutdown()
            http.server_close()
            thread.join()
