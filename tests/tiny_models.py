"""Tiny models and tokenizers, built from configs on the spot: real architectures, random weights, no downloads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

#: How many tokens the models know: more than the tokenizers have.
VOCABULARY = 1_000

PROSE = """Given noisy blurry grayscale image, how to return the regular image step by step? Use Image Denoising; the
output of "Colorization" the input image of "Super Resolution" Current progress: Step n-1: To get the output text, we
have the following choices: Answer with the number of your choice, an integer from 1 to 12, and nothing else. Task
description: Visual Question Answering, Machine Translation, Text Summarization, Fill Mask, Sentiment Analysis."""

CHAT_TEMPLATE = (
    "{% for message in messages %}<|start|>{{ message.role }}\n{{ message.content | trim }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)


def tokenizer(*, chat: bool = False, joined_digits: bool = False, end_after: bool = False) -> Any:
    """A byte-level BPE tokenizer.

    Args:
        chat: whether it has a chat template.
        joined_digits: whether numbers of several digits may be one token (as for LLaMA 3); else each digit is one.
        end_after: whether it ends each text with its end token (as T5's does).
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<pad>", "<s>", "</s>", "<unk>", "<|start|>", "<|end|>"]
    made = Tokenizer(models.BPE(unk_token="<unk>"))
    levels = [] if joined_digits else [pre_tokenizers.Digits(individual_digits=True)]
    made.pre_tokenizer = pre_tokenizers.Sequence([*levels, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.decoder = decoders.ByteLevel()
    # Behind a blank and at the beginning of a line: answers stand in either place.
    numbers = " ".join(map(str, range(1, 130))) + "\n".join(map(str, range(1, 130))) if joined_digits else ""
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([PROSE, *[numbers] * 20], trainer)
    if end_after:
        end = (("</s>", made.token_to_id("</s>")),)
        made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=list(end))
    ready = PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>",
        extra_special_tokens=["<|start|>", "<|end|>"],
    )  # fmt: skip
    if chat:
        ready.chat_template = CHAT_TEMPLATE
    return ready


def sentence_pieces(*, unigram: bool = False, joined_digits: bool = False) -> Any:
    """A tokenizer as of SentencePiece: blanks are marks on words, and a text begins with one (LLaMA 2, T5).

    Args:
        unigram: whether pieces are chosen by their probabilities, or merged.
        joined_digits: whether numbers of several digits may be one token.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    shared: dict[str, Any] = {
        "special_tokens": ["<pad>", "<s>", "</s>", "<unk>", "<|start|>", "<|end|>"],
        "initial_alphabet": sorted({*PROSE, *map(chr, range(32, 127)), "\n"}),
        "vocab_size": 500,
        "show_progress": False,
    }
    made = Tokenizer(models.Unigram() if unigram else models.BPE(unk_token="<unk>"))
    levels = [] if joined_digits else [pre_tokenizers.Digits(individual_digits=True)]
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(prepend_scheme="first"), *levels])
    made.decoder = decoders.Metaspace(prepend_scheme="first")
    trainer = trainers.UnigramTrainer(unk_token="<unk>", **shared) if unigram else trainers.BpeTrainer(**shared)
    made.train_from_iterator([PROSE, " ".join(map(str, range(1, 130)))] * 3, trainer)
    made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>",
        extra_special_tokens=["<|start|>", "<|end|>"],
    )  # fmt: skip


def causal(
    kind: str = "llama", vocabulary: int = VOCABULARY, *, width: int = 32, layers: int = 2, seed: int = 0
) -> Any:
    """A decoder: ``llama``, ``gpt2``, ``qwen3``, ``mamba`` (no attention), ``bloom`` (positions by bias)."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    shapes: dict[str, dict[str, Any]] = {
        "llama": {
            "hidden_size": width, "intermediate_size": 2 * width, "num_hidden_layers": layers,
            "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 2048,
        },
        "qwen3": {
            "hidden_size": width, "intermediate_size": 2 * width, "num_hidden_layers": layers,
            "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 2048,
        },
        "gpt2": {"n_embd": width, "n_layer": layers, "n_head": 4, "n_positions": 2048},
        "mamba": {"hidden_size": width, "state_size": 4, "num_hidden_layers": layers},
        "bloom": {"hidden_size": width, "n_layer": layers, "n_head": 4},
    }  # fmt: skip
    ends = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    config = AutoConfig.for_model(kind, vocab_size=vocabulary, **ends, **shapes[kind])
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config)
    return _spread(model, 2 if kind == "mamba" else 6).eval()


def seq2seq(kind: str = "t5", vocabulary: int = VOCABULARY, *, width: int = 32, layers: int = 2, seed: int = 0) -> Any:
    """An encoder-decoder: ``t5`` or ``bart``."""
    import torch
    from transformers import AutoConfig, AutoModelForSeq2SeqLM

    shapes: dict[str, dict[str, Any]] = {
        "t5": {"d_model": width, "d_ff": 2 * width, "num_layers": layers, "num_heads": 4, "d_kv": width // 4},
        "bart": {
            "d_model": width, "encoder_layers": layers, "decoder_layers": layers, "encoder_attention_heads": 4,
            "decoder_attention_heads": 4, "encoder_ffn_dim": 2 * width, "decoder_ffn_dim": 2 * width,
            "max_position_embeddings": 1024, "bos_token_id": 1, "forced_eos_token_id": 2,
        },
    }  # fmt: skip
    config = AutoConfig.for_model(
        kind, vocab_size=vocabulary, eos_token_id=2, pad_token_id=0, decoder_start_token_id=0, **shapes[kind]
    )
    torch.manual_seed(seed)
    return _spread(AutoModelForSeq2SeqLM.from_config(config), 1 if kind == "t5" else 6).eval()


def encoder(vocabulary: int = VOCABULARY, *, width: int = 32, layers: int = 2, seed: int = 0, labels: int = 0) -> Any:
    """A BERT; with ``labels`` one that classifies."""
    import torch
    from transformers import AutoModelForSequenceClassification, BertConfig, BertModel

    config = BertConfig(
        vocab_size=vocabulary, hidden_size=width, num_hidden_layers=layers, num_attention_heads=4,
        intermediate_size=2 * width, max_position_embeddings=512, num_labels=labels or 2,
    )  # fmt: skip
    torch.manual_seed(seed)
    made = AutoModelForSequenceClassification.from_config(config) if labels else BertModel(config)
    return _spread(made).eval()


def save(folder: Path, model: Any, spoken: Any) -> str:
    """Put a model and its tokenizer into a folder; its name."""
    model.save_pretrained(folder)
    spoken.save_pretrained(folder)
    return str(folder)


def _spread(model: Any, factor: float = 6) -> Any:
    """Larger random weights: those of the usual start make all answers almost equally probable.

    Not too large ones either: sums of large numbers in another order differ by more.
    """
    import torch

    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(factor)
    return model
