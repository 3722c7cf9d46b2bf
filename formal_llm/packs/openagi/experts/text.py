"""Experts that map a text to another: its sentiment, its summary, its translation, its continuation."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from formal_llm.packs.openagi.classical.language import split_sentences
from formal_llm.packs.openagi.experts.expert import Expert, Tensors, name_likeliest, split_batches
from formal_llm.packs.openagi.experts.loaded import LoadedModel

#: The number of tokens to read if neither the model nor the tokenizer states a limit.
_USUAL = 512


class TextClassification(Expert):
    """Names the class of a text, such as its sentiment (any ``AutoModelForSequenceClassification``)."""

    auto = "AutoModelForSequenceClassification"

    def run_batch(self, loaded: LoadedModel, *columns: Sequence[str]) -> list[str]:
        """Return the most probable class of the beginning of each text, in lower case: ``"positive"``."""
        return [
            name.lower() for name in name_likeliest(loaded, loaded.model(**tokenize_texts(loaded, columns[0])).logits)
        ]


class SequenceToSequence(Expert):
    """Writes a text for a text: a summary, a translation (any ``AutoModelForSeq2SeqLM``).

    Settings:
        prefix: a text to put before each input, for models with many tasks (T5).
        by_sentence: whether to process each sentence separately, for models that were trained on sentences.
    """

    auto = "AutoModelForSeq2SeqLM"
    writes = True
    defaults = MappingProxyType({"prefix": "", "by_sentence": False})

    def run_batch(self, loaded: LoadedModel, *columns: Sequence[str]) -> list[str]:
        """Write a text for each text, or for its beginning if it is too long; the output of an empty text is empty."""
        pieces = [
            split_sentences(text) if self.settings["by_sentence"] else [text][: bool(text.strip())]
            for text in columns[0]
        ]
        flat = [self.settings["prefix"] + piece for some in pieces for piece in some]
        outputs: list[str] = []
        for some in split_batches(flat, self.batch):
            ids = loaded.model.generate(**tokenize_texts(loaded, some), **self.generation)
            outputs += loaded.tokenizer.batch_decode(ids, skip_special_tokens=True)
        remaining = iter(outputs)
        return [" ".join(next(remaining).strip() for _ in some) for some in pieces]


class Continuation(Expert):
    """Continues a text (GPT-2, Radford et al. 2019; any ``AutoModelForCausalLM``)."""

    auto = "AutoModelForCausalLM"
    writes = True

    def load_model(self) -> LoadedModel:
        """Load the model, and its tokenizer with padding and truncation on the left."""
        loaded = super().load_model()
        loaded.tokenizer.padding_side = loaded.tokenizer.truncation_side = "left"
        if loaded.tokenizer.pad_token is None:
            loaded.tokenizer.pad_token = loaded.tokenizer.eos_token
        return loaded

    def run_batch(self, loaded: LoadedModel, *columns: Sequence[str]) -> list[str]:
        """Return each text with its continuation; if a text is too long, only its end is read."""
        begin = loaded.tokenizer.bos_token or loaded.tokenizer.eos_token or ""
        texts = [text.rstrip() for text in columns[0]]
        new = self.generation.get("max_new_tokens", 20)
        prompt = tokenize_texts(loaded, [text or begin for text in texts], less=new)
        ids = loaded.model.generate(**prompt, pad_token_id=loaded.tokenizer.pad_token_id, **self.generation)
        ends = loaded.tokenizer.batch_decode(ids[:, prompt["input_ids"].shape[1] :], skip_special_tokens=True)
        return [(text + end).strip() for text, end in zip(texts, ends, strict=True)]


def get_token_limit(loaded: LoadedModel) -> int:
    """Return how many tokens the model can read."""
    config = loaded.model.config
    limits = [getattr(config, name, None) for name in ("max_position_embeddings", "n_positions")]
    limits.append(loaded.tokenizer.model_max_length)
    # Tokenizers without a known limit return a number of thirty digits.
    return min((number for number in limits if isinstance(number, int) and 0 < number < 1_000_000), default=_USUAL)


def tokenize_texts(loaded: LoadedModel, texts: Sequence[str], *, less: int = 0) -> Tensors:
    """Tokenize texts on the model's device, cut to what it can read, less the tokens reserved for writing.

    Only ``input_ids`` and ``attention_mask`` are returned: many models do not take ``token_type_ids``.
    """
    most = max(get_token_limit(loaded) - less, 1)
    found = loaded.tokenizer(list(texts), padding=True, truncation=True, max_length=most, return_tensors="pt")
    return {name: found[name].to(loaded.device) for name in ("input_ids", "attention_mask")}
