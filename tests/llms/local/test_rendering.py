from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from formal_llm.errors import LLMError, ModelError
from formal_llm.llms.local.rendering import Renderer
from formal_llm.llms.question import Message, Question
from tests import tiny_models
from tests.llms.local import token_by_token

SYSTEM, ASKED, SAID = Message("system", "Be short."), Message("user", "Which?"), Message("assistant", "2")
CHATS = [(ASKED,), (SYSTEM, ASKED), (SYSTEM, ASKED, SAID, ASKED), (ASKED, SAID, ASKED, SAID, ASKED)]


def with_template(template: str) -> Any:
    tokenizer = tiny_models.tokenizer()
    tokenizer.chat_template = template
    return tokenizer


def applied(tokenizer: Any, chat: tuple[Message, ...]) -> str:
    """What the template itself makes of a chat."""
    said = [{"role": message.role, "content": message.content} for message in chat]
    return str(tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=True))


# -- chats -----------------------------------------------------------------------------------------------------------

LLAMA2 = (
    "{% for m in messages %}{% if m.role == 'user' %}{{ '<s>[INST] ' + m.content + ' [/INST]' }}"
    "{% elif m.role == 'assistant' %}{{ ' ' + m.content + ' </s>' }}{% endif %}{% endfor %}"
)
ALTERNATING = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system message') }}{% endif %}"
    "{% for m in messages %}{{ '[' + m.role + ']' + m.content + '</s>' }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


@pytest.mark.parametrize("template", [tiny_models.CHAT_TEMPLATE, ALTERNATING, LLAMA2], ids=["plain", "raises", "drops"])
@pytest.mark.parametrize("chat", CHATS, ids=lambda chat: "-".join(message.role for message in chat))
def test_a_chat_is_what_the_template_makes_of_it(template: str, chat: tuple[Message, ...]) -> None:
    tokenizer = with_template(template)
    expected = chat
    if chat[0].role == "system" and template != tiny_models.CHAT_TEMPLATE:  # it knows none: it goes before the first
        expected = (Message("user", f"{chat[0].content}\n\n{chat[1].content}"), *chat[2:])
    renderer = Renderer(tokenizer, "chat")
    text = applied(tokenizer, expected)
    assert renderer.text(chat) == text
    assert list(renderer.tokens(chat)) == tokenizer(text, add_special_tokens=False)["input_ids"]


def test_the_settings_of_a_template() -> None:
    tokenizer = with_template(tiny_models.CHAT_TEMPLATE + "{% if not thinking %}<think></think>{% endif %}")
    assert Renderer(tokenizer, "chat").text([ASKED]).endswith("<think></think>")
    assert not Renderer(tokenizer, "chat", template_settings={"thinking": True}).text([ASKED]).endswith("</think>")


#: As of Qwen 3: an answer begins with a thought, which is empty where thinking is turned off.
QWEN3 = (
    "{% for m in messages %}{{ '<|start|>' + m.role + '\n' }}"
    "{% if m.role == 'assistant' and loop.last %}{{ '<think>\n\n</think>\n\n' }}{% endif %}"
    "{{ m.content + '<|end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start|>assistant\n' }}"
    "{% if enable_thinking is defined and enable_thinking is false %}{{ '<think>\n\n</think>\n\n' }}{% endif %}"
    "{% endif %}"
)
#: As of gpt-oss: an answer says in which channel it is.
GPT_OSS = (
    "{{ '<|start|>system<|message|>Reasoning: ' + (reasoning_effort or 'medium') + '<|end|>' }}"
    "{% for m in messages %}{% if m.role == 'assistant' %}"
    "{{ '<|start|>assistant<|channel|>final<|message|>' + m.content + ('<|return|>' if loop.last else '<|end|>') }}"
    "{% else %}{{ '<|start|>' + m.role + '<|message|>' + m.content + '<|end|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant{% endif %}"
)


@pytest.mark.parametrize(
    ("template", "settings", "opening"),
    [
        (QWEN3, {}, "<think>\n\n</think>\n\n"),
        (QWEN3, {"enable_thinking": False}, ""),  # the prompt has it already
        (GPT_OSS, {"reasoning_effort": "low"}, "<|channel|>final<|message|>"),
        (tiny_models.CHAT_TEMPLATE, {}, ""),
    ],
)
@pytest.mark.parametrize("chat", CHATS, ids=lambda chat: "-".join(message.role for message in chat))
def test_what_a_template_opens_an_answer_with_is_read_and_not_scored(
    template: str, settings: dict[str, object], opening: str, chat: tuple[Message, ...]
) -> None:
    """Prompt and answer are what the template writes when the answer is there, up to what ends it."""
    tokenizer = with_template(template)
    tokenizer.add_special_tokens({"extra_special_tokens": ["<|return|>"]})
    renderer = Renderer(tokenizer, "chat", template_settings=settings)
    said = [{"role": message.role, "content": message.content} for message in chat]
    before = tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=True, **settings)
    prompt = renderer.prompt(Question(chat[-1].content, [f"tool {n}" for n in range(12)], messages=chat[:-1]))
    assert tokenizer.decode(prompt.tokens) == before + opening
    for number, path in enumerate(prompt.tree.paths, 1):
        answered = [*said, {"role": "assistant", "content": str(number)}]
        whole = tokenizer.apply_chat_template(answered, tokenize=False, **settings).removesuffix("\n")
        assert tokenizer.decode([*prompt.tokens, *(token for _, token in path)]) == whole
    # What is written freely begins where the template's prompt ends: a model may think there.
    assert renderer.text(chat) == before


def test_a_setting_that_the_template_does_not_read_is_told() -> None:
    with pytest.raises(ModelError, match="does not read enable_thinkng; did you mean enable_thinking"):
        Renderer(with_template(QWEN3), "chat", template_settings={"enable_thinkng": False})
    for style in ("plain", "seq2seq"):
        with pytest.raises(ModelError, match="without a chat template, so enable_thinking sets nothing"):
            Renderer(with_template(QWEN3), style, template_settings={"enable_thinking": False})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "template",
    [
        "{{ messages[-1].content }}",  # forgets what was said before
        "{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}",
        "{% for m in messages %}{{ m.content | upper }}{% endfor %}",
        "{% for m in messages | reverse %}{{ m.content }}{% endfor %}",
        "{{ raise_exception('not today') }}",
        "{{ nonsense.of.mine }}",
        "{% for m in",
    ],
)
def test_a_template_that_cannot_be_used_is_told_at_once(template: str) -> None:
    with pytest.raises(ModelError, match=r"chat template.*use style='plain'"):
        Renderer(with_template(template), "chat")


def test_what_ends_an_answer() -> None:
    """The template's own token behind a message; where there is none, the end token."""
    cases = {
        tiny_models.CHAT_TEMPLATE: "<|end|>",
        LLAMA2: "</s>",
        "{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}{% endfor %}"
        "{% if add_generation_prompt %}assistant: {% endif %}": "</s>",
        "{% for m in messages %}{{ '[' + m.content + ']' }}{% endfor %}{% if add_generation_prompt %}[{% endif %}": "]",
    }
    for template, ending in cases.items():
        tokenizer = with_template(template)
        ids = Renderer(tokenizer, "chat").answer_tokens("2")
        assert tokenizer.decode(ids).strip() == f"2{ending}", template


def test_a_blank_that_the_template_writes_before_an_answer() -> None:
    tokenizer = with_template(LLAMA2)
    renderer = Renderer(tokenizer, "chat")
    said = [{"role": "user", "content": "Which?"}, {"role": "assistant", "content": "12"}]
    whole = tokenizer(tokenizer.apply_chat_template(said, tokenize=False).replace(" </s>", "</s>"))["input_ids"]
    assert [*renderer.tokens([ASKED]), *renderer.answer_tokens("12")] == whole


# -- plain texts and encoder-decoders --------------------------------------------------------------------------------


@pytest.mark.parametrize("chat", CHATS, ids=lambda chat: "-".join(message.role for message in chat))
@pytest.mark.parametrize("joined", [False, True])
def test_prompt_and_answer_are_the_tokens_of_the_whole_text(
    chat: tuple[Message, ...], joined: bool, spoken: Callable[..., Any]
) -> None:
    for style in ("plain", "chat"):
        tokenizer = spoken(chat=style == "chat", joined_digits=joined)
        renderer = Renderer(tokenizer, style)
        question = Question(chat[-1].content, [f"tool {n}" for n in range(110)], messages=chat[:-1])
        before, whole = token_by_token.texts(tokenizer, question, style)
        prompt = renderer.prompt(question)
        assert list(prompt.tokens) == tokenizer(before)["input_ids"]
        for text, path in zip(whole, prompt.tree.paths, strict=True):
            assert [*prompt.tokens, *(token for _, token in path)] == tokenizer(text)["input_ids"]


@pytest.mark.parametrize("unigram", [False, True], ids=["merges", "unigram"])
@pytest.mark.parametrize("joined", [False, True], ids=["split", "joined"])
@pytest.mark.parametrize("style", ["plain", "chat"])
def test_prompt_and_answer_of_sentence_pieces(style: Any, joined: bool, unigram: bool) -> None:
    """Tokenizers that begin each text with a blank, and with a token of its own where a chat does not write it."""
    tokenizer = tiny_models.sentence_pieces(unigram=unigram, joined_digits=joined)
    if style == "chat":
        tokenizer.chat_template = tiny_models.CHAT_TEMPLATE
    question = Question("Which tool comes first?", [f"tool {n}" for n in range(110)], messages=(SYSTEM,))
    prompt = Renderer(tokenizer, style).prompt(question)
    before, whole = token_by_token.texts(tokenizer, question, style)
    assert list(prompt.tokens) == tokenizer(before, add_special_tokens=style == "plain")["input_ids"]
    for text, path in zip(whole, prompt.tree.paths, strict=True):
        ids = tokenizer(text, add_special_tokens=style == "plain")["input_ids"]
        assert [*prompt.tokens, *(token for _, token in path)] == ids


def test_a_plain_prompt_goes_on(spoken: Callable[..., Any]) -> None:
    """A tokenizer that ends every text does not end a prompt."""
    ends = spoken(end_after=True)
    assert ends("Which?")["input_ids"][-1] == ends.eos_token_id
    renderer = Renderer(ends, "plain", cue="Choice:")
    assert renderer.text([ASKED]) == "Which?\nChoice:"
    assert renderer.tokens([ASKED])[-1] != ends.eos_token_id


def test_an_encoder_reads_the_question_and_a_decoder_ends_the_answer(spoken: Callable[..., Any]) -> None:
    for ending in (True, False):
        tokenizer = spoken(end_after=ending)
        renderer = Renderer(tokenizer, "seq2seq")
        assert renderer.text([ASKED]) == "Which?"
        assert renderer.text([ASKED, SAID, ASKED]) == "Which?\nAnswer: 2\n\nWhich?\nAnswer:"
        assert (renderer.tokens([ASKED])[-1] == tokenizer.eos_token_id) is ending
        assert tokenizer.decode(renderer.answer_tokens("12")) == "12</s>"
        assert tokenizer.decode(renderer.continuation_tokens("12")) == "12"


def test_too_long(spoken: Callable[..., Any]) -> None:
    tokenizer = spoken()
    length = len(Renderer(tokenizer, "plain").prompt(Question("Which?", ["a", "b"])).tokens)
    # The answer " 1" without what ends it is read too.
    assert Renderer(tokenizer, "plain", longest=length + 2).prompt(Question("Which?", ["a", "b"]))
    with pytest.raises(LLMError, match=f"{length + 2} tokens.* reads {length + 1}"):
        Renderer(tokenizer, "plain", longest=length + 1).prompt(Question("Which?", ["a", "b"]))


def test_tokenizers_that_cannot_be_used() -> None:
    blind = tiny_models.tokenizer()
    blind.add_tokens([f" {n}\n" for n in range(1, 10)])
    real = blind.__class__.__call__

    class Blind(blind.__class__):  # type: ignore[misc,name-defined]
        """Reads all digits as one."""

        def __call__(self, text: str, **settings: Any) -> Any:
            return real(self, text.replace("2", "1"), **settings)

    blind.__class__ = Blind
    with pytest.raises(ModelError, match="cannot distinguish answers"):
        Renderer(blind, "plain")
    endless = tiny_models.tokenizer()
    endless.eos_token = None
    with pytest.raises(ModelError, match="no end token"):
        Renderer(endless, "seq2seq")
