"""Models that write, as answerers: choices, identity and settings; free text, and how probable a text is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from formal_llm.errors import LLMError, ModelError, ResourceNotFound
from formal_llm.llms.local.model import (
    TokenStream,
    TransformersLLM,
    after,
    fingerprint,
    open_tokens,
    with_adapter,
    written_pieces,
)
from formal_llm.llms.question import Message
from formal_llm.llms.recorded import RecordedLLM
from formal_llm.llms.text_request import TextRequest
from formal_llm.llms.usage import TokenUsage
from formal_llm.rltf.policy import LoRA, Policy
from tests import tiny_models
from tests.llms.local import token_by_token


@pytest.fixture
def llm(llama: Any, spoken: Callable[..., Any]) -> TransformersLLM:
    return TransformersLLM.of(llama, spoken(), name="tiny")


def test_an_answer(llm: TransformersLLM, llama: Any, spoken: Callable[..., Any]) -> None:
    assert llm.can == {"choose", "write", "continue", "object", "grammar", "score"} and llm.at_once > 1
    asked = token_by_token.question(12)
    answer = llm.ask(asked)
    with torch.no_grad():
        wanted = token_by_token.causal_probabilities(llama, spoken(), asked, "plain")
    assert list(answer.probabilities) == list(range(1, 13))
    assert list(answer.probabilities.values()) == pytest.approx(wanted, abs=1e-5)
    assert answer.number == 1 + max(range(12), key=wanted.__getitem__)
    assert (answer.usage.requests, answer.usage.output_tokens) == (1, 0)
    assert answer.usage.input_tokens == len(spoken()(token_by_token.texts(spoken(), asked, "plain")[0])["input_ids"])


def test_identity(llama: Any, spoken: Callable[..., Any], tmp_path: Path) -> None:
    thinks = tiny_models.tokenizer(chat=True)
    thinks.chat_template += "{% if thinking %}{% endif %}"  # a setting that the template reads
    named = [
        TransformersLLM.of(llama, thinks, name="tiny", **settings)
        for settings in ({}, {"style": "plain"}, {"cue": "Choice:"}, {"template_settings": {"thinking": True}})
    ]
    identities = [llm.identity for llm in named]
    assert all(identities.count(identity) == 1 for identity in identities)
    assert identities[0] == TransformersLLM.of(llama, spoken(chat=True), name="tiny", batch_tokens=9).identity
    assert repr(named[0]) == "<TransformersLLM tiny>"
    # Two models in memory cannot be told apart, so a cache wants a name.
    unnamed = TransformersLLM.of(llama, spoken())
    assert unnamed.identity is None and repr(unnamed) == "<TransformersLLM in memory>"
    with pytest.raises(ValueError, match="give it a name in the file"):
        RecordedLLM(unnamed, tmp_path / "cache")


def test_unknown_settings_are_told_before_anything_is_loaded() -> None:
    with pytest.raises(TypeError, match="unknown settings: bach_tokens"):
        TransformersLLM("/there/is/no/such/folder", bach_tokens=0)  # type: ignore[call-arg]


@pytest.fixture(params=["llama", "gpt2", "mamba", "chat", "t5"])
def writer(request: pytest.FixtureRequest, network: Callable[..., Any], spoken: Callable[..., Any]) -> TransformersLLM:
    kind = request.param
    tokenizer = spoken(chat=kind == "chat", end_after=kind == "t5")
    return TransformersLLM.of(network("llama" if kind == "chat" else kind), tokenizer, name=kind)


def test_text_without_temperature_is_the_same_each_time(writer: TransformersLLM) -> None:
    chat = [Message("system", "Be short."), Message("user", "restore the image")]
    written = writer.ask(TextRequest(chat, max_tokens=9))
    assert writer.ask(TextRequest(chat, max_tokens=9)) == written
    assert (written.usage.requests, written.usage.input_tokens) == (1, len(writer.renderer.tokens(chat)))
    assert 0 < written.usage.output_tokens <= 9
    assert writer.ask(TextRequest("restore the image", max_tokens=3)).usage.output_tokens <= 3


def test_text_is_the_likeliest_at_each_step(llama: Any, llm: TransformersLLM, spoken: Callable[..., Any]) -> None:
    ids = list(llm.renderer.tokens([Message("user", "restore the image")]))
    begin = len(ids)
    with torch.no_grad():
        for _ in range(8):
            ids.append(int(llama(input_ids=torch.tensor([ids])).logits[0, -1].argmax()))
            if ids[-1] == spoken().eos_token_id:
                break
    expected = spoken().decode(ids[begin:], skip_special_tokens=True)
    assert llm.ask(TextRequest("restore the image", max_tokens=8)).text == expected


def test_text_with_temperature_is_drawn_from_torchs_numbers(writer: TransformersLLM) -> None:
    written = []
    for seed in (1, 1, 2, 3):
        torch.manual_seed(seed)
        written.append(writer.ask(TextRequest("restore", max_tokens=8, temperature=2.0)).text)
    assert written[0] == written[1]
    assert len(set(written)) > 1


def test_text_ends_before_a_stop(writer: TransformersLLM) -> None:
    prompts = [f"restore the {thing}" for thing in ("image", "text", "picture", "caption", "film", "song", "1", "2")]
    texts = {prompt: writer.ask(TextRequest(prompt, max_tokens=12)).text for prompt in prompts}
    prompt = max(prompts, key=lambda prompt: len(texts[prompt]))
    whole = texts[prompt]
    middle = len(whole) // 2
    stop = whole[middle : middle + 2]
    assert len(stop) == 2
    cut = writer.ask(TextRequest(prompt, max_tokens=12, stop=[stop, "never written"])).text
    assert cut == whole[: whole.find(stop)]


def test_text_ends_where_the_model_ends(spoken: Callable[..., Any]) -> None:
    llm = TransformersLLM.of(tiny_models.causal("gpt2"), spoken())
    room = 2_048 - len(llm.renderer.tokens([Message("user", "image " * 1_000)]))
    longer = "image " * (1_000 + room - 60)
    while 2_048 - len(llm.renderer.tokens([Message("user", longer)])) > 5:
        longer += "image "
    assert llm.ask(TextRequest(longer, max_tokens=50)).usage.output_tokens <= 5
    with pytest.raises(LLMError, match="2,048"):
        llm.ask(TextRequest("image " * 3_000))


def test_the_score_of_a_text_is_the_sum_over_its_tokens(
    llm: TransformersLLM, llama: Any, network: Callable[..., Any], spoken: Callable[..., Any]
) -> None:
    before = spoken()("restore the image\nAnswer:")["input_ids"]
    ids = spoken()("restore the image\nAnswer: Colorization, then 12")["input_ids"]
    with torch.no_grad():
        logs = torch.log_softmax(llama(input_ids=torch.tensor([ids])).logits[0].double(), -1)
    wanted = sum(float(logs[place - 1, ids[place]]) for place in range(len(before), len(ids)))
    texts = ["Colorization, then 12", "Colorization"]
    found = llm.log_probabilities("restore the image", texts)
    assert [length for _, length in found] == [len(llm.renderer.continuation_tokens(text)) for text in texts]
    assert found[0][0] == pytest.approx(wanted, abs=1e-4) and found[0][0] < found[1][0]

    t5 = TransformersLLM.of(network("t5"), spoken(end_after=True))
    with torch.no_grad():
        own = token_by_token.seq2seq_sum(network("t5"), spoken(end_after=True), "restore", "then 12", ends=False)
    assert t5.log_probabilities("restore", ["then 12"])[0][0] == pytest.approx(float(own), abs=1e-4)
    with pytest.raises(ValueError, match="a text has no token"):
        t5.log_probabilities("restore the image", ["12", ""])


def test_scores_and_choices_agree(llm: TransformersLLM) -> None:
    """Of answers of one digit, whose ends are scored too, the distribution follows from the scores."""
    asked = token_by_token.question(9)
    found = llm.log_probabilities(asked.messages, [f"{number}\n" for number in range(1, 10)])
    sums = torch.tensor([value for value, _ in found])
    assert list(llm.ask(asked).probabilities.values()) == pytest.approx(torch.softmax(sums, 0).tolist(), abs=1e-4)


def test_a_text_is_gone_on_with(llama: Any, llm: TransformersLLM, spoken: Callable[..., Any]) -> None:
    ids = list(spoken()("[Thought] restore the")["input_ids"])
    begin = len(ids)
    with torch.no_grad():
        for _ in range(8):
            ids.append(int(llama(input_ids=torch.tensor([ids])).logits[0, -1].argmax()))
            if ids[-1] == spoken().eos_token_id:
                break
    expected = spoken().decode(ids[begin:], skip_special_tokens=True)
    made = llm.ask(TextRequest("[Thought] restore the", continues=True, max_tokens=8))
    assert made.text == expected
    assert made.usage == TokenUsage(1, begin, len(ids) - begin)
    assert made.ended == ("" if ids[-1] == spoken().eos_token_id else None)
    stop = expected[len(expected) // 2 :][:2]
    cut = llm.ask(TextRequest("[Thought] restore the", continues=True, max_tokens=8, stop=[stop]))
    assert (cut.text, cut.ended) == (expected[: expected.find(stop)], stop)


def test_a_text_piece_by_piece_is_the_same(writer: TransformersLLM) -> None:
    ways = [False]
    if writer.renderer.style == "seq2seq":
        with pytest.raises(LLMError, match="encoder-decoder"):
            writer.ask(TextRequest("restore", continues=True))
    else:
        ways.append(True)
    for continues in ways:
        asked = TextRequest("restore the image", max_tokens=12, continues=continues)
        stop = writer.ask(asked).text[3:5]
        for request in (asked, asked.replace(stop=[stop] if len(stop) == 2 else [])):
            *pieces, last = writer.stream(request)
            expected = writer.ask(request)
            assert "".join(pieces) == last.text == expected.text
            assert last.ended == expected.ended
    stream = writer.stream(TextRequest("restore the image", max_tokens=200))
    assert next(stream)
    stream.close()
    assert writer.ask(TextRequest("restore the image", max_tokens=12)) == writer.ask(
        TextRequest("restore the image", max_tokens=12)
    )


def test_pieces_are_whole_signs(spoken: Callable[..., Any]) -> None:
    tokenizer = spoken()
    text = " naïve ☃ 🙂 end"
    ids = tokenizer(text)["input_ids"]

    def write(stream: TokenStream) -> None:
        stream.put(torch.tensor([[1, 2, 3]]))
        for one in ids:
            stream.put(torch.tensor([one]))
        stream.end()

    new: list[int] = []
    pieces = list(written_pieces(write, tokenizer, tokenizer("I am")["input_ids"], new))
    assert "".join(pieces) == text
    assert new == ids
    assert len(pieces) > 5
    assert not any("\ufffd" in piece for piece in pieces)


def test_one_that_is_closed_writes_no_further(spoken: Callable[..., Any]) -> None:
    written: list[int] = []
    asked = threading.Event()
    image = spoken()("image")["input_ids"][-1]

    def write(stream: TokenStream) -> None:
        stream.put(torch.tensor([[1]]))
        for _ in range(10):
            stream.put(torch.tensor([image]))
        asked.wait(10)
        while True:
            stream.put(torch.tensor([image]))
            written.append(image)

    pieces = written_pieces(write, spoken(), [], [])
    assert next(pieces)
    threading.Timer(0.05, asked.set).start()
    pieces.close()  # waits for the writer, which would go on for ever
    assert not written


def test_what_fails_while_it_writes_is_raised(spoken: Callable[..., Any]) -> None:
    def write(stream: TokenStream) -> None:
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        list(written_pieces(write, spoken(), [], []))


def test_a_blank_behind_a_text_stays() -> None:
    tokenizer = tiny_models.sentence_pieces()
    before, new = tokenizer("restore the")["input_ids"], tokenizer("image")["input_ids"]
    if new[0] == tokenizer.bos_token_id:
        new = new[1:]
    assert after(tokenizer, before, new) == " image"


def test_an_open_text(spoken: Callable[..., Any]) -> None:
    plain, ended = spoken(), spoken(end_after=True)
    assert open_tokens(ended, "restore") == open_tokens(plain, "restore") == plain("restore")["input_ids"]
    assert open_tokens(plain, "") == [plain.bos_token_id]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A tiny decoder, and the folder of adapters for it."""
    spoken = tiny_models.tokenizer()
    folder = tmp_path_factory.mktemp("tiny")
    base = Path(tiny_models.save(folder / "base", tiny_models.causal(vocabulary=len(spoken)), spoken))
    Policy(str(base), LoRA(2)).save(folder / "run" / "best")
    return base, folder / "run" / "best"


def test_adapters_of_a_run(trained: tuple[Path, Path]) -> None:
    base, adapter = trained
    made = with_adapter(f"transformers:{base}?dtype=float32", adapter)
    assert made.settings["dtype"] == "torch.float32"  # type: ignore[attr-defined]
    assert any("lora_" in name for name, _ in made.scorer.model.named_modules())  # type: ignore[attr-defined]


def test_adapters_for_another_model_are_refused(trained: tuple[Path, Path], tmp_path: Path) -> None:
    _, adapter = trained
    with pytest.raises(ModelError, match=r"were trained on .*base, not on transformers:other"):
        with_adapter("transformers:other", adapter)
    with pytest.raises(ModelError, match="takes no adapters"):
        with_adapter("openai:some", adapter)
    with pytest.raises(ResourceNotFound, match="folder of adapters"):
        with_adapter("minilm", tmp_path)
    with pytest.raises(ResourceNotFound, match="adapter file"):
        fingerprint(tmp_path)
