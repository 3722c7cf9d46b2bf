"""A small LLaMA-style model with random weights and a tokenizer trained on the spot, for benchmarks without a network.

Speed does not depend on what the weights say, so nothing has to be downloaded to measure it.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from typing import Any

from formal_llm import Planner, RandomLLM, Task

#: As in many chat models: a start of turn, the role, the text, an end of turn.
CHAT_TEMPLATE = (
    "{% for message in messages %}<|start|>{{ message.role }}\n{{ message.content | trim }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)


def questions(planner: Planner, tasks: Sequence[Task], seed: int = 0) -> list[str]:
    """The prompts of one random walk for each task: what a tokenizer is trained on."""
    found = []
    for number, task in enumerate(tasks):
        walk = planner.start(task)
        llm = RandomLLM(seed + number)
        while (question := walk.question) is not None:
            found.append(question.prompt)
            walk.answer(llm.ask(question))
    return found


def tokenizer(texts: Sequence[str], vocabulary: int = 1_000) -> Any:
    """A byte-level BPE tokenizer with a chat template; each digit is a token, as in LLaMA 2 and Vicuna."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE(unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False),
    ])  # fmt: skip
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=["<pad>", "<s>", "</s>", "<unk>", "<|start|>", "<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    ready = PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>",
        extra_special_tokens=["<|start|>", "<|end|>"],
    )  # fmt: skip
    ready.chat_template = CHAT_TEMPLATE
    return ready


def decoder(width: int, layers: int, vocabulary: int = 1_000, *, heads: int = 0, inner: int = 0, seed: int = 0) -> Any:
    """A LLaMA with random weights in float32 on the CPU, ready to be asked.

    Args:
        width: the size of its hidden states.
        layers: how many layers.
        vocabulary: how many tokens it knows.
        heads: attention heads; as many as make them 64 wide (at least 4) where left out.
        inner: the width inside the feed-forward part; 8/3 of the width where left out.
        seed: of the weights.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=width, num_hidden_layers=layers,
        intermediate_size=inner or (width * 8 // 3 + 15) // 16 * 16, num_attention_heads=heads or max(width // 64, 4),
        max_position_embeddings=4_096, bos_token_id=1, eos_token_id=2, pad_token_id=0,
        initializer_range=0.08,  # wide enough that answers differ in probability
    )  # fmt: skip
    torch.manual_seed(seed)
    return LlamaForCausalLM(config).eval()


def told(model: Any) -> str:
    """The size of a model in words."""
    config = model.config
    weights = sum(parameter.numel() for parameter in model.parameters())
    return (
        f"LLaMA-style, {config.num_hidden_layers} layers, width {config.hidden_size}, {weights / 1e6:,.2f}M "
        f"parameters, {str(model.dtype).removeprefix('torch.')}"
    )


def machine() -> str:
    """The machine in words: what a figure depends on besides the code."""
    import torch
    import transformers

    return (
        f"{platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} thread(s) used, "
        f"Python {platform.python_version()}, torch {torch.__version__}, transformers {transformers.__version__}"
    )


def quiet() -> None:
    """No bars while models are loaded and saved."""
    from transformers.utils import logging

    logging.disable_progress_bar()
