"""What tests of local models share: one thread, and tiny models that are made once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests import tiny_models
from tests.llms.local import families


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)  # two threads get in each other's way on tiny models
    families.decoder("cohere", {})  # what is imported for the first model counts for no test
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def spoken() -> Callable[..., Any]:
    """Makes a tokenizer (see :func:`tiny_models.tokenizer`), the same one for the same settings."""
    made: dict[Any, Any] = {}

    def get(**settings: Any) -> Any:
        key = tuple(sorted(settings.items()))
        if key not in made:
            made[key] = tiny_models.tokenizer(**settings)
        return made[key]

    return get


@pytest.fixture(scope="session")
def network() -> Callable[..., Any]:
    """Makes a tiny model by its kind, the same one each time; nobody changes its weights."""
    made: dict[str, Any] = {}

    def get(kind: str) -> Any:
        if kind not in made:
            make = tiny_models.seq2seq if kind in ("t5", "bart") else tiny_models.causal
            made[kind] = make(kind, tiny_models.VOCABULARY)
        return made[kind]

    return get


@pytest.fixture(scope="session")
def llama(network: Callable[..., Any]) -> Any:
    return network("llama")
