"""The text of a model that runs here while it is written: the model writes in a thread, the text is taken from it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

#: What stands for the bytes of a sign that is not whole yet.
_NOT_WHOLE = "\ufffd"
#: How many of the tokens before it decide how a text begins.
_CONTEXT = 16


class _Closed(Exception):
    """No more tokens are wanted."""


class TokenStream:
    """Takes tokens from transformers as they are written (a *streamer*)."""

    def __init__(self) -> None:
        self.tokens: queue.SimpleQueue[list[int] | BaseException | None] = queue.SimpleQueue()
        self.closed = threading.Event()
        self._prompt = True

    def put(self, value: Any) -> None:
        """One more token; the prompt comes first, and is no part of the text."""
        if self.closed.is_set():
            raise _Closed
        if not self._prompt:
            self.tokens.put(value.flatten().tolist())
        self._prompt = False

    def end(self) -> None:
        """Nothing more comes."""


def written_pieces(
    write: Callable[[TokenStream], None],
    tokenizer: PreTrainedTokenizerBase,
    before: Sequence[int],
    new: list[int],
) -> Generator[str]:
    """The pieces of a text as a model writes it.

    Args:
        write: has the model write its tokens into a stream.
        tokenizer: of the model.
        before: the tokens before the text, as the model reads them.
        new: gets the tokens that are written.
    """
    stream = TokenStream()

    def work() -> None:
        try:
            write(stream)
        except _Closed:
            pass
        except BaseException as error:
            stream.tokens.put(error)
        finally:
            stream.tokens.put(None)

    thread = threading.Thread(target=work, name="formal_llm stream", daemon=True)
    thread.start()
    told = ""
    try:
        while (came := stream.tokens.get()) is not None:
            if isinstance(came, BaseException):
                raise came
            new += came
            text = after(tokenizer, before, new).rstrip(_NOT_WHOLE)
            if text.startswith(told) and text != told:
                yield text[len(told) :]
                told = text
        whole = after(tokenizer, before, new)
        if whole.startswith(told) and whole != told:
            yield whole[len(told) :]
    finally:
        stream.closed.set()
        thread.join()


def after(tokenizer: PreTrainedTokenizerBase, before: Sequence[int], new: Sequence[int]) -> str:
    """The text of new tokens behind others: some tokenizers drop a blank where a text begins."""
    before = before[-_CONTEXT:]
    first = str(tokenizer.decode(list(before), skip_special_tokens=True)) if before else ""
    whole = str(tokenizer.decode([*before, *new], skip_special_tokens=True))
    if whole.startswith(first):
        return whole[len(first) :]
    return str(tokenizer.decode(list(new), skip_special_tokens=True))


def open_tokens(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    """The tokens of a text that is not closed: with what begins texts, and without what ends them."""
    ids = [int(one) for one in tokenizer(text)["input_ids"]]
    if ids and ids[-1] in (tokenizer.eos_token_id, tokenizer.sep_token_id) and ids[-1] != tokenizer.bos_token_id:
        ids.pop()
    begins = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
    return ids or [int(begins or 0)]
