"""Objects of a schema from a local model: a mask allows the tokens that lead to one."""

from __future__ import annotations

import json

from formal_llm.agents.decoding.contents import Grammar, SegmentPattern
from formal_llm.agents.decoding.masked_logits import MaskedLogits
from formal_llm.agents.decoding.token_vocabulary import TokenVocabulary
from formal_llm.agents.decoding.xgrammar_masks import XGrammarMasks
from formal_llm.errors import ModelError
from formal_llm.llms.llm import LLM
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.llms.question import Answer
from formal_llm.llms.schemas import Schema, check_schema
from formal_llm.llms.text_request import TextRequest
from formal_llm.llms.usage import TokenUsage


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


class MaskedObjects(LLM):
    """A local model that writes objects, and nothing else.

    A mask allows the tokens that lead to an object of the schema. What the tokens do not suffice for is no object, and
    an error as of any model.

    Raises:
        MissingDependency: xgrammar is not installed (``pip install 'formal-llm[xgrammar]'``).
        ModelError: the texts of the model's tokens cannot be determined.
    """

    def __init__(self, llm: TransformersLLM) -> None:
        self.llm = llm
        self.name = llm.name
        self.can = frozenset({"object"})
        self.vocabulary = read_vocabulary(llm)
        self.engine = XGrammarMasks(self.vocabulary)

    def answer(self, request: TextRequest, /) -> Answer:
        """The object that comes next in a chat.

        Raises:
            LLMError: the chat is too long for the model.
            ValueError: the schema is none that is known.
        """
        assert request.schema is not None
        check_schema(request.schema)
        matcher = self.engine.compile(SegmentPattern(_build_grammar(request.schema), may_end=True))
        read, tokens = self.llm.write_tokens(
            request.messages, max_tokens=request.max_tokens, temperature=request.temperature,
            processor=MaskedLogits(matcher),
        )  # fmt: skip
        ended = next((at for at, token in enumerate(tokens) if token in self.vocabulary.stops), None)
        text = self.vocabulary.decode_tokens(tokens[:ended]).decode(errors="replace")
        return Answer((), text=text, usage=TokenUsage(1, read, len(tokens)))


def _build_grammar(schema: Schema) -> Grammar:
    """The texts of a schema, written on one line: a small model that may write blanks writes blanks for ever."""
    import xgrammar  # optional; that it is there is known by now

    # With its bounds, those of texts too: else a small model writes one text until the tokens run out.
    return Grammar(str(xgrammar.Grammar.from_json_schema(json.dumps(schema), any_whitespace=False)))
