"""What a local model writes under a mask: a whole plan in one completion, or an object of a schema.

A planner asks a question for each choice. Here the model writes the plan as text, and the mask holds each token to the
rules: the same guarantee with one request, for models that run here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from formal_llm.agents.decoding.automaton_masks import AutomatonMasks
from formal_llm.agents.decoding.contents import Grammar, SegmentPattern
from formal_llm.agents.decoding.masked_logits import MaskedLogits
from formal_llm.agents.decoding.plan_texts import PlanTexts
from formal_llm.agents.decoding.token_vocabulary import TokenVocabulary
from formal_llm.agents.decoding.xgrammar_masks import XGrammarMasks
from formal_llm.automata import Word
from formal_llm.errors import LLMError, ModelError
from formal_llm.llms.generation import GeneratedObject, Messages, chat
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.llms.schemas import Schema, check_schema
from formal_llm.llms.usage import TokenUsage


@dataclass(frozen=True, slots=True)
class WrittenPlan:
    """A plan as a model wrote it. It keeps the rules and the limits.

    Attributes:
        word: its terminals. Where several words are written alike, one of them.
        text: the text, with what was added.
        added: what was added at the end where the tokens ran out: the shortest way to a whole plan. None where the
            model itself ended the plan.
    """

    word: Word
    text: str
    added: str | None = None
    usage: TokenUsage = field(default_factory=TokenUsage)


class PlanWriter:
    """Has a local model write whole plans.

    Args:
        texts: what may be written.

    Raises:
        ModelError: the texts of the model's tokens cannot be determined, they cannot spell the texts, or no token ends
            a text.
    """

    def __init__(self, llm: TransformersLLM, texts: PlanTexts) -> None:
        self.llm = llm
        self.texts = texts
        self.vocabulary = read_vocabulary(llm)
        self.engine = AutomatonMasks(self.vocabulary)
        self._begin = self.engine.compile(texts)

    def write(
        self, messages: Messages, *, max_tokens: int = 512, temperature: float = 0.0, beams: int = 1
    ) -> WrittenPlan:
        """A plan that keeps the rules, whatever the model would like to write.

        Args:
            messages: the chat, or a message of the user: the task, and how a plan is written.
            max_tokens: the most tokens that the model writes. A plan that is not whole then is ended on the shortest
                way, and says so.
            temperature: 0 for the most probable tokens.
            beams: how many plans are followed side by side.

        Raises:
            LLMError: the chat is too long for the model.
            Undecided: how the plan can continue was not found out within the budget of states.
        """
        read, tokens = self.llm.write_tokens(
            messages,
            max_tokens=max_tokens,
            temperature=temperature,
            processor=MaskedLogits(self._begin, beams=beams),
            beams=beams,
        )
        ended = next((at for at, token in enumerate(tokens) if token in self.vocabulary.stops), None)
        text = self.vocabulary.decode_tokens(tokens[:ended])
        state = self.texts.start.follow_text(text)
        if state is None or (ended is not None and not state.may_stop):
            raise LLMError(f"the model wrote what the mask forbids: {text!r}")
        added = self.texts.finish_text(state) if ended is None else b""
        text += added
        word = self.texts.read_word(text)
        assert word is not None, "what the mask allows is the text of a word"
        usage = TokenUsage(1, read, len(tokens))
        return WrittenPlan(word, text.decode(), added.decode(errors="replace") if ended is None else None, usage)


def read_vocabulary(llm: TransformersLLM) -> TokenVocabulary:
    """The tokens of a local model, and those that end its texts.

    Raises:
        ModelError: as of :meth:`TokenVocabulary.from_tokenizer`; or no token ends a text.
    """
    model, tokenizer = llm.scorer.model, llm.scorer.tokenizer
    ends = getattr(model.generation_config, "eos_token_id", None)
    stops = [ends] if isinstance(ends, int) else list(ends or ())
    vocabulary = TokenVocabulary.from_tokenizer(tokenizer, int(model.get_output_embeddings().weight.shape[0]), stops)
    if not vocabulary.stops:
        raise ModelError("no token of this model ends a text: neither its tokenizer nor its settings name one")
    return vocabulary


class MaskedObjects:
    """A local model that writes objects (:class:`~formal_llm.llms.generation.ObjectLLM`).

    A mask allows the tokens that lead to an object of the schema. What the tokens do not suffice for is no object, and
    an error as of any model.

    Raises:
        MissingDependency: xgrammar is not installed (``pip install 'formal-llm[xgrammar]'``).
        ModelError: the texts of the model's tokens cannot be determined.
    """

    def __init__(self, llm: TransformersLLM) -> None:
        self.llm = llm
        self.name = llm.name
        self.vocabulary = read_vocabulary(llm)
        self.engine = XGrammarMasks(self.vocabulary)

    def generate_object(
        self, messages: Messages, schema: Schema, *, max_tokens: int = 2048, temperature: float = 0.0
    ) -> GeneratedObject:
        """The object that comes next in a chat.

        Raises:
            InvalidAnswer: it was not whole when the tokens ran out.
            LLMError: the chat is too long for the model.
            ValueError: the schema is none that is known.
        """
        check_schema(schema)
        matcher = self.engine.compile(SegmentPattern(_build_grammar(schema), may_end=True))
        talk = chat(messages)
        read, tokens = self.llm.write_tokens(
            talk, max_tokens=max_tokens, temperature=temperature, processor=MaskedLogits(matcher)
        )
        ended = next((at for at, token in enumerate(tokens) if token in self.vocabulary.stops), None)
        text = self.vocabulary.decode_tokens(tokens[:ended]).decode(errors="replace")
        return GeneratedObject.read(text, schema, TokenUsage(1, read, len(tokens)), talk[-1].content)


def _build_grammar(schema: Schema) -> Grammar:
    """The texts of a schema, written on one line: a small model that may write blanks writes blanks for ever."""
    import xgrammar  # optional; that it is there is known by now

    # With its bounds, those of texts too: else a small model writes one text until the tokens run out.
    return Grammar(str(xgrammar.Grammar.from_json_schema(json.dumps(schema), any_whitespace=False)))
