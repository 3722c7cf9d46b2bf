"""Texts while they are written, and texts that are not closed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

from formal_llm.llms.local.token_stream import TokenStream, after, open_tokens, written_pieces
from tests import tiny_models


def test_pieces_are_whole_signs(spoken: Callable[..., Any]) -> None:
    tokenizer = spoken()
    text = " naïve ☃ 🙂 end"
    ids = tokenizer(text)["input_ids"]

    def write(stream: TokenStream) -> None:
        stream.put(torch.tensor([[1, 2, 3]]))
        for one in ids:
            stream.put(torch.tensor([one]))
        stream.end()

    new: list[int] = []
    pieces = list(written_pieces(write, tokenizer, tokenizer("I am")["input_ids"], new))
    assert "".join(pieces) == text
    assert new == ids
    assert len(pieces) > 5
    assert not any("\ufffd" in piece for piece in pieces)


def test_one_that_is_closed_writes_no_further(spoken: Callable[..., Any]) -> None:
    written: list[int] = []
    asked = threading.Event()
    image = spoken()("image")["input_ids"][-1]

    def write(stream: TokenStream) -> None:
        stream.put(torch.tensor([[1]]))
        for _ in range(10):
            stream.put(torch.tensor([image]))
        asked.wait(10)
        while True:
            stream.put(torch.tensor([image]))
            written.append(image)

    pieces = written_pieces(write, spoken(), [], [])
    assert next(pieces)
    threading.Timer(0.05, asked.set).start()
    pieces.close()  # waits for the writer, which would go on for ever
    assert not written


def test_what_fails_while_it_writes_is_raised(spoken: Callable[..., Any]) -> None:
    def write(stream: TokenStream) -> None:
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        list(written_pieces(write, spoken(), [], []))


def test_a_blank_behind_a_text_stays() -> None:
    tokenizer = tiny_models.sentence_pieces()
    before, new = tokenizer("restore the")["input_ids"], tokenizer("image")["input_ids"]
    if new[0] == tokenizer.bos_token_id:
        new = new[1:]
    assert after(tokenizer, before, new) == " image"


def test_an_open_text(spoken: Callable[..., Any]) -> None:
    plain, ended = spoken(), spoken(end_after=True)
    assert open_tokens(ended, "restore") == open_tokens(plain, "restore") == plain("restore")["input_ids"]
    assert open_tokens(plain, "") == [plain.bos_token_id]
