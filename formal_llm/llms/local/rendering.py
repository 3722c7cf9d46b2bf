"""Rendering: how a question is presented to a model as tokens, and how its answers are written.

A tokenizer with a chat template gets the chat, any other one a plain text that ends with a cue (``Answer:``). Then
comes the number of an option and the token that ends an answer: in a chat the one that the template puts after a
message, in an encoder-decoder model its end token, in a plain text the end of the line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from formal_llm.errors import LLMError, ModelError, did_you_mean
from formal_llm.llms.local.answer_tree import AnswerTree
from formal_llm.llms.question import Message, Question

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Style = Literal["chat", "plain", "seq2seq"]
#: The placeholder of a message, for finding the pieces of a template around it.
_MARK = "\u27e6Message {}\u27e7"
#: The maximum number of texts that are kept with their tokens.
_KEPT = 20_000


@dataclass(frozen=True, eq=False)
class Prompted:
    """A question as a model reads it: the tokens of the prompt, and the tree of the answers, in their order."""

    tokens: tuple[int, ...]
    tree: AnswerTree


class Renderer:
    """Converts questions to tokens.

    Args:
        tokenizer: a tokenizer of transformers.
        style: ``"chat"`` for the tokenizer's chat template, ``"plain"`` for a plain text that the model continues,
            ``"seq2seq"`` for a text that an encoder reads.
        cue: the end of a plain prompt.
        longest: the maximum number of tokens that the model reads, including the answer; None without a bound.
        template_settings: the settings of the chat template, such as ``{"enable_thinking": False}``.

    Raises:
        ModelError: the template cannot be used or does not read a setting, or numbers have the same tokens.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        style: Style,
        *,
        cue: str = "Answer:",
        longest: int | None = None,
        template_settings: Mapping[str, object] | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self.style = style
        self.cue = cue
        self.longest = longest
        self.template_settings = dict(template_settings or {})
        self._pieces: dict[tuple[str, ...], list[str]] = {}
        self._tokenize_text = lru_cache(_KEPT)(self._encode_prompt)
        self._find_tree = lru_cache(_KEPT)(self._build_tree)
        self._check_settings()
        self._tail, self._opening, self._separator, self._ending = self._find_surroundings()
        self.tree(("1", "2"))  # reports an unusable tokenizer now instead of at the first question

    # -- texts --------------------------------------------------------------------------------------------------

    def text(self, messages: Sequence[Message]) -> str:
        """Return the whole prompt for a chat whose last message is the question."""
        if self.style == "chat":
            pieces = self._render_surroundings(tuple(message.role for message in messages))
            parts = [pieces[0]]
            for message, piece in zip(messages, pieces[1:], strict=True):
                parts += (message.content.strip(), piece)
            return "".join(parts)
        plain = "".join(
            f" {message.content.strip()}\n\n" if message.role == "assistant"
            else f"{message.content.strip()}\n{self.cue}" if message.role == "user"
            else f"{message.content.strip()}\n\n"
            for message in messages
        )  # fmt: skip
        return plain.removesuffix(f"\n{self.cue}") if self.style == "seq2seq" and len(messages) == 1 else plain

    def _render_surroundings(self, roles: tuple[str, ...]) -> list[str]:
        """Return the pieces of a chat template before, between and after messages of these roles.

        A template takes as much time as a small model, so it is rendered once for each sequence of roles.
        """
        if roles not in self._pieces:
            marks = [_MARK.format(place) for place in range(len(roles))]
            placeholders = [{"role": role, "content": mark} for role, mark in zip(roles, marks, strict=True)]
            prompts = roles[-1] != "assistant"
            pieces = _split_at_marks(self._apply_template(placeholders, add_generation_prompt=prompts), marks)
            if pieces is None and roles[0] == "system" and len(roles) > 1:
                pieces = _split_at_marks(
                    self._apply_template(_merge_system(placeholders), add_generation_prompt=prompts), marks
                )
            if pieces is None:
                raise ModelError(
                    f"the chat template of {self._name} leaves out, repeats or changes a message; use style='plain'"
                )
            self._pieces[roles] = pieces
        return self._pieces[roles]

    def _apply_template(self, messages: list[dict[str, str]], *, add_generation_prompt: bool) -> str:
        settings: dict[str, Any] = {"add_generation_prompt": add_generation_prompt, **self.template_settings}
        try:
            return str(self.tokenizer.apply_chat_template(messages, tokenize=False, **settings))
        except Exception as error:  # a template is a program, which may raise anything
            if messages[0]["role"] == "system" and len(messages) > 1:  # many templates support no system message
                return self._apply_template(_merge_system(messages), add_generation_prompt=add_generation_prompt)
            raise ModelError(
                f"the chat template of {self._name} cannot be used ({error}); use style='plain'"
            ) from error

    # -- tokens -------------------------------------------------------------------------------------------------

    def prompt(self, question: Question) -> Prompted:
        """Return a question of exactly one option as tokens, with the numbers of its options as answers.

        Raises:
            LLMError: the question is too long for the model.
        """
        return self.answered(question.messages, tuple(map(str, range(1, len(question.options) + 1))))

    def answered(self, messages: Sequence[Message], answers: tuple[str, ...]) -> Prompted:
        """Return a chat and the answers to it, as tokens.

        Raises:
            LLMError: the chat is too long for the model.
            ModelError: two of the answers have the same tokens.
        """
        tree = self.tree(answers)
        tokens = self._tokenize_text(self.text(messages) + self._opening)
        length = len(tokens) + (max(tree.depths, default=0) if self.style != "seq2seq" else 0)
        if self.longest is not None and length > self.longest:
            raise LLMError(
                f"the question has {length:,} tokens and {self._name} reads {self.longest:,}; shorten the wording, or "
                "ask each question alone (wording.conversation)"
            )
        return Prompted(tokens, tree)

    def tokens(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the tokens of a chat up to where the model continues."""
        return self._tokenize_text(self.text(messages))

    def _encode_prompt(self, text: str) -> tuple[int, ...]:
        ids = self._encode_text(text, special=self.style != "chat")
        if self.style == "plain" and ids and ids[-1] == self.tokenizer.eos_token_id:
            del ids[-1]  # some tokenizers end every text, but this one continues
        return tuple(ids)

    def tree(self, answers: tuple[str, ...]) -> AnswerTree:
        """Return the tree of some answers.

        Raises:
            ModelError: two of them have the same tokens.
        """
        return self._find_tree(answers)

    def _build_tree(self, answers: tuple[str, ...]) -> AnswerTree:
        try:
            return AnswerTree.of([self.answer_tokens(answer) for answer in answers])
        except ValueError as error:
            raise ModelError(f"the tokenizer of {self._name} cannot distinguish answers: {error}") from error

    def answer_tokens(self, text: str) -> tuple[int, ...]:
        """Return the tokens of an answer after the prompt, including those that end it."""
        if self.style == "seq2seq":
            if self.tokenizer.eos_token_id is None:
                raise ModelError(f"the tokenizer of {self._name} has no end token")
            return (*self.continuation_tokens(text), int(self.tokenizer.eos_token_id))
        return self.continuation_tokens(text + self._ending, answering=True)

    def continuation_tokens(self, text: str, *, answering: bool = False) -> tuple[int, ...]:
        """Return the tokens of a text after the prompt; with ``answering`` after a template's opening of an answer."""
        if self.style == "seq2seq":  # in the form of the training targets: BART's begin with a special token
            ids = self._encode_text(text, special=True)
            return tuple(ids[:-1] if ids and ids[-1] == self.tokenizer.eos_token_id else ids)
        opened = self._tail + (self._opening if answering else "")
        before = self._encode_text(opened, special=False)
        whole = self._encode_text(f"{opened}{self._separator}{text}", special=False)
        if whole[: len(before)] == before:
            return tuple(whole[len(before) :])
        # The tokenizer merges the end of the prompt with the answer, so the model reads them separately.
        return tuple(self._encode_text(f"{self._separator}{text}", special=False))

    def _find_surroundings(self) -> tuple[str, str, str, str]:
        """Return the texts around an answer.

        Returns:
            The end of a prompt as far as it affects an answer's tokens; the text that a template writes at the start of
            an answer, which no model has to choose; a space before the number; and the end of the answer.
        """
        if self.style == "seq2seq":
            return "", "", "", ""
        if self.style == "plain":
            return f"\n{self.cue}", "", " ", "\n"
        tail = self._render_surroundings(("user",))[-1]
        _, between, after = self._render_surroundings(("user", "assistant"))
        # Some templates begin an answer with more than the end of a prompt: LLaMA 2 with a space, which is part of the
        # number's tokens; Qwen 3 with an (empty) thought; gpt-oss with the channel that people read.
        gap = between.removeprefix(tail) if between.startswith(tail) else ""
        opening = "" if gap.isspace() else gap.rstrip(" ")
        blank = gap.removeprefix(opening)
        ids = self._encode_text(after, special=False)
        end = self.tokenizer.eos_token
        if ids and ids[0] in self.tokenizer.all_special_ids:
            # The template, not the model, writes what follows the end of the message (usually a line feed).
            return tail, opening, blank, str(self.tokenizer.convert_ids_to_tokens(ids[0]))
        return tail, opening, blank, after.strip() or (str(end) if end is not None else "\n")

    def _check_settings(self) -> None:
        """Raise for a setting that the chat template does not read, since it would have no effect unnoticed."""
        template = str(getattr(self.tokenizer, "chat_template", None) or "")
        for name in self.template_settings:
            if self.style != "chat":
                raise ModelError(f"{self._name} is asked without a chat template, so {name} sets nothing")
            words = set(re.findall(r"[A-Za-z_]\w+", template))
            if name not in words:
                near = did_you_mean(name, sorted(words))
                hint = f"; did you mean {near}?" if near else ""
                raise ModelError(f"the chat template of {self._name} does not read {name}{hint}")

    def _encode_text(self, text: str, *, special: bool) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"])

    @property
    def _name(self) -> str:
        return str(getattr(self.tokenizer, "name_or_path", "") or type(self.tokenizer).__name__)


def _merge_system(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    """Move the system message of a chat to the beginning of the next message."""
    first = {"role": messages[1]["role"], "content": f"{messages[0]['content']}\n\n{messages[1]['content']}"}
    return [first, *messages[2:]]


def _split_at_marks(text: str, marks: Sequence[str]) -> list[str] | None:
    """Split a text at its marks; return None unless each occurs exactly once, in this order."""
    places = [text.find(mark) for mark in marks]
    if any(text.count(mark) != 1 for mark in marks) or places != sorted(places):
        return None
    ends = [place + len(mark) for place, mark in zip(places, marks, strict=True)]
    return [text[start:end] for start, end in zip([0, *ends], [*places, len(text)], strict=True)]
