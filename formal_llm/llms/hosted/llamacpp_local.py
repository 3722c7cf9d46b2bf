"""``llamacpp-local:FILE.gguf``, ``qwen``: llama.cpp in this process, without a server of one's own.

``xllamacpp`` carries llama.cpp's server as a library. It is started here on a free port of the loopback interface with
a random key, and :class:`~formal_llm.llms.hosted.llamacpp.LlamaCppLLM` asks it: so grammars, probabilities, texts,
streams and the cache of prefixes are the same as with any other server. It ends with this process.
"""

from __future__ import annotations

import os
import secrets
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypedDict

from formal_llm.errors import MissingDependency, ModelError, ResourceNotFound
from formal_llm.llms.hosted.llamacpp import LlamaCppLLM
from formal_llm.llms.packaged import QWEN

_HOW = "pip install 'formal-llm[llamacpp-local]'"
#: The tokens that a prompt and its answer may have together.
CONTEXT = 8192
#: Running servers by what they were started with.
_SERVERS: dict[tuple[Path, int, int, int], tuple[Any, str]] = {}
_LOCK = threading.Lock()


class LocalLlamaCppLLM(LlamaCppLLM):
    """A model in a GGUF file, run by llama.cpp in this process.

    Args:
        file: the file.
        name: the name of the model; by default that of the file.
        context: the maximum number of tokens of a prompt with its answer.
        threads: the number of threads; None: one for each core.
        temperature: the sampling temperature; 0 takes the most probable token.

    Raises:
        MissingDependency: ``xllamacpp`` is not installed.
        ResourceNotFound, ModelError: there is no such file, or llama.cpp cannot load it.
    """

    provider = "llamacpp-local"

    def __init__(
        self,
        file: str | Path,
        *,
        name: str | None = None,
        context: int = CONTEXT,
        threads: int | None = None,
        temperature: float = 0.0,
    ) -> None:
        path = Path(file).expanduser().resolve()
        address, key = start_server(path, context, threads or os.cpu_count() or 1)
        # A question waits for those before it, since there is one slot: no bound on the time of a single one.
        super().__init__(
            path.name, temperature=temperature, base_url=f"{address}/v1", api_key=key, timeout=3600, max_retries=0
        )
        if name is not None:
            self.name = name
        # The port changes each time, the file is what answers.
        del self.settings["address"]
        self.settings |= {"bytes": path.stat().st_size, "context": context}

    @classmethod
    def from_text(cls, text: str) -> LocalLlamaCppLLM:
        """Create the model of ``FILE`` or ``FILE?context=4096&threads=2``.

        Raises:
            ModelError: a setting is unknown, or its value no number above 0.
        """
        file, _, rest = text.partition("?")
        return cls(file, **read_settings(rest))

    @classmethod
    def qwen(cls, text: str | None) -> LocalLlamaCppLLM:
        """Create the model ``qwen``, with settings or none.

        Raises:
            MissingDependency: its packages are not installed.
        """
        return cls(QWEN.find(), name="qwen", **read_settings((text or "").removeprefix("?")))


class LocalSettings(TypedDict, total=False):
    """The settings behind the name of a file."""

    context: int
    threads: int


def read_settings(text: str) -> LocalSettings:
    """Read ``context=4096&threads=2``."""
    found: LocalSettings = {}
    for part in filter(None, text.split("&")):
        name, _, value = part.partition("=")
        if name not in LocalSettings.__annotations__ or not value.isdecimal() or int(value) < 1:
            raise ModelError(f"{part!r} is no setting of llama.cpp here; write context=NUMBER or threads=NUMBER")
        found[name] = int(value)  # type: ignore[literal-required]  # checked above
    return found


def start_server(file: Path, context: int, threads: int) -> tuple[str, str]:
    """Start llama.cpp's server for a file in this process, or return the one that runs already.

    Returns:
        its address and its key.
    """
    if find_spec("xllamacpp") is None:
        raise MissingDependency(f"llama.cpp in this process needs xllamacpp: {_HOW}")
    if not file.is_file():
        raise ResourceNotFound("model file", str(file), [])
    with file.open("rb") as opened:
        if opened.read(4) != b"GGUF":
            raise ModelError(f"the model {file} is no GGUF file")
    import xllamacpp

    # A forked process has none of the threads of its parent's server.
    known = file, context, threads, os.getpid()
    with _LOCK:
        if known not in _SERVERS:
            key = secrets.token_urlsafe(16)
            how = xllamacpp.CommonParams()
            how.model.path, how.n_ctx, how.n_parallel = str(file), context, 1
            how.cpuparams.n_threads = how.cpuparams_batch.n_threads = threads
            how.hostnames, how.port, how.api_keys = ["127.0.0.1"], 0, [key]
            how.ui, how.verbosity = False, 0
            try:
                server = xllamacpp.Server(how)
            except Exception as error:  # a runtime error of its own
                raise ModelError(f"llama.cpp cannot load {file}: {str(error).strip()}") from error
            _SERVERS[known] = server, key
        server, key = _SERVERS[known]
    return str(server.listening_address), key
