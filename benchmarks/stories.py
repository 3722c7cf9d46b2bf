"""What a model writes that nothing holds: the stories of the gallery, judged by their rules.

    python benchmarks/stories.py --llm qwen

The model reads the rules in words, the names of the steps and a request, and writes a plan as text. The plan is judged
as `formal-llm verify` judges it. Printed are the plan, the first broken rule and the nearest valid plan.
"""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path

from formal_llm.authoring import author
from formal_llm.cli.sources import load
from formal_llm.errors import FormalLLMError
from formal_llm.llms import resolve
from formal_llm import Verifier
from formal_llm.planning.checking.texts import verify_text
from formal_llm.planning.plans.vocabulary import write_word

STORIES = Path(__file__).with_suffix(".toml")


def main() -> None:
    """Ask for each plan, and judge it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llm", default="qwen")
    parser.add_argument("--story", help="only the story of this name")
    arguments = parser.parse_args()
    llm = resolve(arguments.llm)
    valid = asked = 0
    for story in tomllib.loads(STORIES.read_text(encoding="utf-8"))["story"]:
        if arguments.story not in (None, story["name"]):
            continue
        written = "sentences" in story
        source = author(story["sentences"], notation=".agent").rules if written else load(story["rules"]).whole
        verifier = Verifier(source)
        steps = story.get("steps") or [one.name for one in source.terminals]
        for request in story["requests"]:
            prompt = (
                f"The steps that there are: {', '.join(steps)}.\nRules: {story['words']}\nRequest: {request}\n"
                "Write the steps that you take, in order, one on each line, only their names.\n"
            )
            text = llm.generate(prompt, max_tokens=300).text
            print(f"## {story['name']}: {request}\n{text.strip()}")
            asked += 1
            try:
                found = verify_text(text, verifier)
            except FormalLLMError as error:
                print(f"-> not read: {error}\n", flush=True)
                continue
            valid += found.valid
            nearest = "" if found.valid or found.nearest is None else f"; nearest: {write_word(found.nearest)}"
            print(f"-> {'valid' if found.valid else f'not valid: {found.reason}'}{nearest}\n", flush=True)
    print(f"{valid} of {asked} plans are valid")


if __name__ == "__main__":
    main()
