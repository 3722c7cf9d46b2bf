"""Experts that turn a text into another: its sentiment, its summary, its translation, its continuation."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from formal_llm.packs.openagi.classical.language import sentences
from formal_llm.packs.openagi.experts.expert import Expert, Tensors, batches, likeliest
from formal_llm.packs.openagi.experts.loaded import LoadedModel

#: So many tokens are read where neither model nor tokenizer say how many can be.
_USUAL = 512


class TextClassification(Expert):
    """Names the class of a text, as its sentiment (any ``AutoModelForSequenceClassification``)."""

    auto = "AutoModelForSequenceClassification"

    def run(self, loaded: LoadedModel, *columns: Sequence[str]) -> list[str]:
        """The most probable class of the beginning of each text, in small letters: ``"positive"``."""
        return [name.lower() for name in likeliest(loaded, loaded.model(**read(loaded, columns[0])).logits)]


class SequenceToSequence(Expert):
    """Writes a text for a text: a summary, a translation (any ``AutoModelForSeq2SeqLM``).

    Settings:
        prefix: what is put before each text, where a model has many tasks (T5).
        by_sentence: whether each sentence goes through the model by itself; for models that were trained on sentences.
    """

    auto = "AutoModelForSeq2SeqLM"
    writes = True
    defaults = MappingProxyType({"prefix": "", "by_sentence": False})

    def run(self, loaded: LoadedModel, *columns: Sequence[str]) -> list[str]:
        """What the model writes for each text; of a text that is too long for the beginning. Nothing for nothing."""
        pieces = [
            sentences(text) if self.settings["by_sentence"] else [text][: bool(text.strip())] for text in columns[0]
        ]
        flat = [self.settings["prefix"] + piece for some in pieces for piece in some]
        made: list[str] = []
        for some in batches(flat, self.batch):
            ids = loaded.model.generate(**read(loaded, some), **self.generation)
            made += loaded.tokenizer.batch_decode(ids, skip_special_tokens=True)
        told = iter(made)
        return [" ".join(next(told).strip() for _ in some) for some in pieces]


class Continuation(Expert):
    """Goes on with a text (GPT-2, Radford et al. 2019; any ``AutoModelForCausalLM``)."""

    auto = "AutoModelForCausalLM"
    writes = True

    def load(self) -> LoadedModel:
        """The model, and its tokenizer set to write to the right of what was read."""
        loaded = super().load()
        loaded.tokenizer.padding_side = loaded.tokenizer.truncation_side = "left"
        if loaded.tokenizer.pad_token is None:
            loaded.tokenizer.pad_token = loaded.tokenizer.eos_token
        return loaded

    def run(self, loaded: LoadedModel, *columns: Sequence[str]) -> list[str]:
        """Each text with its continuation; of a text that is too long the end is gone on with."""
        begin = loaded.tokenizer.bos_token or loaded.tokenizer.eos_token or ""
        texts = [text.rstrip() for text in columns[0]]
        new = self.generation.get("max_new_tokens", 20)
        given = read(loaded, [text or begin for text in texts], less=new)
        ids = loaded.model.generate(**given, pad_token_id=loaded.tokenizer.pad_token_id, **self.generation)
        ends = loaded.tokenizer.batch_decode(ids[:, given["input_ids"].shape[1] :], skip_special_tokens=True)
        return [(text + end).strip() for text, end in zip(texts, ends, strict=True)]


def longest(loaded: LoadedModel) -> int:
    """How many tokens the model can read."""
    config = loaded.model.config
    told = [getattr(config, name, None) for name in ("max_position_embeddings", "n_positions")]
    told.append(loaded.tokenizer.model_max_length)
    # Tokenizers that do not know say a number of thirty digits.
    return min((number for number in told if isinstance(number, int) and 0 < number < 1_000_000), default=_USUAL)


def read(loaded: LoadedModel, texts: Sequence[str], *, less: int = 0) -> Tensors:
    """Texts as tokens where the model is, cut to what it can read, less the tokens that it is to write.

    ``input_ids`` and ``attention_mask`` and nothing else: many models have no use for ``token_type_ids``.
    """
    most = max(longest(loaded) - less, 1)
    found = loaded.tokenizer(list(texts), padding=True, truncation=True, max_length=most, return_tensors="pt")
    return {name: found[name].to(loaded.device) for name in ("input_ids", "attention_mask")}
