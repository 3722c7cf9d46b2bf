"""Settings: recipes, their errors, and that the paper's figures are the defaults."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm.errors import NotationError, ResourceNotFound
from formal_llm.rltf.settings import Settings


def recipe(folder: Path, text: str) -> Path:
    path = folder / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_paper_s_settings_are_the_defaults() -> None:
    settings = Settings()
    assert (settings.advantage, settings.decay) == ("reinforce", 0.8)
    assert (settings.learning_rate, settings.weight_decay, settings.schedule) == (1e-3, 0.0, "constant")
    assert settings.epochs == 30
    assert (settings.rank, settings.targets) == (8, ())


def test_tables_only_put_in_order(tmp_path: Path) -> None:
    flat = Settings.read(recipe(tmp_path, 'rank = 4\nadvantage = "rloo"\nsamples = 8\n'))
    tables = Settings.read(recipe(tmp_path, '[policy]\nrank = 4\n[update]\nadvantage = "rloo"\nsamples = 8\n'))
    assert flat == tables
    assert flat.rank == 4
    assert Settings.read(recipe(tmp_path, "rank = 4"), {"rank": 2}).rank == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("rank = 0", "rank: .*greater than or equal to 1, not 0"),
        ("rnk = 4", "there is no setting rnk; did you mean rank?"),
        ('advantage = "rlo"', "no advantage 'rlo'; did you mean rloo?"),
        ("learning_rate = nan", "learning_rate: .*finite"),
        ('schedule = "steps"', "schedule: .*'constant'"),
        ("[a]\nrank = 1\n[b]\nrank = 2", "the setting rank is there twice"),
        ("rank 4", "this is no TOML"),
        ("seed = -1", "seed: "),
        ('updates = "many"', "updates: .*integer.*'many'"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, told: str) -> None:
    path = recipe(tmp_path, text)
    with pytest.raises(NotationError, match=told) as caught:
        Settings.read(path)
    assert str(path) in str(caught.value)


def test_a_recipe_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFound, match="recipe"):
        Settings.read(tmp_path / "none.toml")


def test_every_setting_is_described() -> None:
    assert all(field.description for field in Settings.model_fields.values())
