"""Run the tests of hosted models with the lowest and the highest versions of the SDKs that pyproject.toml allows.

    python tests/end_to_end/use_sdk_versions.py [lowest] [highest] [-- ARGUMENTS OF PYTEST]

The versions are installed into a folder that shadows those of this environment. Run by ``make sdks``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
#: What the adapters use, and what is tried with it.
PACKAGES = ("anthropic", "openai", "httpx2", "pydantic-ai-slim")
TESTS = "tests/llms/hosted"


def read_requirements() -> dict[str, Requirement]:
    """Return what pyproject.toml demands of the packages."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {one.name: one for one in map(Requirement, project["dependencies"]) if one.name in PACKAGES}


def choose_versions(which: str) -> list[str]:
    """Return the requirements for pip: each at its lower bound, or as new as it may be."""
    found = read_requirements()
    if which == "highest":
        return [str(one) for one in found.values()]
    lower = {name: next(s.version for s in one.specifier if s.operator == ">=") for name, one in found.items()}
    return [f"{name}=={version}" for name, version in lower.items()]


def main() -> None:
    given, _, arguments = " ".join(sys.argv[1:]).partition("--")
    for which in given.split() or ["lowest", "highest"]:
        with tempfile.TemporaryDirectory() as folder:
            # Without dependencies: what they share is installed here, and checked by pip when a user installs them.
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder]
            subprocess.run([*pip, *choose_versions(which)], check=True)
            path = os.pathsep.join([folder, str(ROOT)])
            names = sorted(one.name.removesuffix(".dist-info") for one in Path(folder).glob("*.dist-info"))
            print(f"{which}: {', '.join(names)}", flush=True)
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", TESTS, *arguments.split()]
            subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, check=True)


if __name__ == "__main__":
    main()
