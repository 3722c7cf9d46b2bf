"""The brute force that scorers are compared with: each answer behind its prompt, read alone, token by token.

Nothing of ``formal_llm.llms.local`` is used here. Texts are put together and tokenized as a whole.
"""

from __future__ import annotations

from typing import Any

import torch

from formal_llm.llms.question import Message, Question

SYSTEM = Message("system", "You choose tools.")
EARLIER = (SYSTEM, Message("user", "Which tool comes first?\n1: a\n2: b"), Message("assistant", "2"))


def question(options: int, task: str = "restore the image", *, chat: bool = False) -> Question:
    """A question that is short however many options it has."""
    prompt = f"Task: {task}.\nChoices from 1 to {options}. Answer with the number of your choice."
    return Question(prompt, [f"tool {n}" for n in range(options)], task=task, messages=EARLIER if chat else ())


def batch(sizes: tuple[int, ...] = (2, 9, 12, 110)) -> list[Question]:
    """Sixteen questions, with much and with little in common; those of many options once."""
    long = "restore the noisy, blurry and grayscale image step by step, then say what is on it"
    tasks = [long, f"{long}, in German", "restore the image", "translate", long[:40]]
    made = [question(size) for size in sizes]
    small = [size for size in sizes if size <= 12]
    number = 0
    while len(made) < 16:
        made.append(question(small[number % len(small)], tasks[number % 5], chat=number % 3 == 2))
        number += 1
    return made


def texts(tokenizer: Any, asked: Question, style: str) -> tuple[str, list[str]]:
    """The text before the answer, and the text with each answer and what ends it."""
    numbers = range(1, len(asked.options) + 1)
    if style == "chat":
        said = [{"role": m.role, "content": m.content} for m in asked.messages]
        before = tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=True)
        answered = [[*said, {"role": "assistant", "content": str(n)}] for n in numbers]
        whole = [tokenizer.apply_chat_template(one, tokenize=False).removesuffix("\n") for one in answered]
        assert all(text.startswith(before) and text.endswith("<|end|>") for text in whole)
        return before, whole
    written = {"system": "{}\n\n", "user": "{}\nAnswer:", "assistant": " {}\n\n"}
    before = "".join(written[message.role].format(message.content) for message in asked.messages)
    return before, [f"{before} {n}\n" for n in numbers]


def causal_probabilities(model: Any, tokenizer: Any, asked: Question, style: str) -> list[float]:
    """One reading of the whole text for each answer."""
    before, whole = texts(tokenizer, asked, style)
    prompt = tokenizer(before, add_special_tokens=False)["input_ids"]
    sums = []
    for text in whole:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert ids[: len(prompt)] == prompt, "the tokenizer joins prompt and answer"
        sums.append(_sum(model(input_ids=torch.tensor([ids])).logits[0], ids, len(prompt)))
    return _normalised(sums)


def causal_sums(model: Any, tokenizer: Any, asked: Question, style: str) -> Any:
    """As :func:`causal_probabilities`, log-probabilities as a tensor with its gradients."""
    before, whole = texts(tokenizer, asked, style)
    prompt = tokenizer(before, add_special_tokens=False)["input_ids"]
    sums = []
    for text in whole:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        logs = torch.log_softmax(model(input_ids=torch.tensor([ids]), use_cache=False).logits[0], dim=-1)
        sums.append(sum(logs[place - 1, ids[place]] for place in range(len(prompt), len(ids))))
    return torch.log_softmax(torch.stack(sums), dim=0)


def seq2seq_text(asked: Question) -> str:
    """What the encoder reads."""
    if len(asked.messages) == 1:
        return asked.prompt
    return texts(None, asked, "plain")[0]


def seq2seq_probabilities(model: Any, tokenizer: Any, asked: Question) -> list[float]:
    """One reading by encoder and decoder for each answer."""
    read = seq2seq_text(asked)
    numbers = range(1, len(asked.options) + 1)
    return _normalised([float(seq2seq_sum(model, tokenizer, read, f"{n}", ends=True)) for n in numbers])


def seq2seq_sum(model: Any, tokenizer: Any, read: str, written: str, *, ends: bool) -> Any:
    """The log-probability of a text, with or without the end token."""
    target = tokenizer(text_target=written)["input_ids"]
    if target[-1] == tokenizer.eos_token_id:
        target = target[:-1]
    ids = [model.config.decoder_start_token_id, *target, *([tokenizer.eos_token_id] if ends else [])]
    inputs = tokenizer(read, return_tensors="pt")
    logits = model(
        input_ids=inputs["input_ids"],
        attention_mask=inputs["attention_mask"],
        decoder_input_ids=torch.tensor([ids]),
        use_cache=False,
    ).logits[0]
    logs = torch.log_softmax(logits.double(), dim=-1)
    return sum(logs[place - 1, ids[place]] for place in range(1, len(ids)))


def _sum(logits: Any, ids: list[int], begin: int) -> float:
    logs = torch.log_softmax(logits.double(), dim=-1)
    return float(sum(logs[place - 1, ids[place]] for place in range(begin, len(ids))))


def _normalised(sums: list[float]) -> list[float]:
    return [float(p) for p in torch.softmax(torch.tensor(sums, dtype=torch.float64), dim=0)]
