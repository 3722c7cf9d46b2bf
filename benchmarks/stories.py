"""What a model writes that nothing holds: the stories of the gallery, judged by their rules.

    python benchmarks/stories.py --llm qwen

The model reads the rules in words, the names of the steps and a request, and writes a plan as text. The plan is judged
as `formal-llm verify` judges it; the shell lines of a coding agent are judged by the guard. Printed are the text, the
first broken rule, and the nearest valid plan.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path

from formal_llm import Verifier
from formal_llm.authoring import author
from formal_llm.cli.sources import load
from formal_llm.errors import FormalLLMError
from formal_llm.guard import Call, Guard, GuardRules
from formal_llm.guard.shell.commands import add_effects
from formal_llm.llms import resolve
from formal_llm.llms.generation import TextLLM
from formal_llm.planning.checking.texts import verify_text
from formal_llm.planning.plans.vocabulary import write_word

STORIES = Path(__file__).with_suffix(".toml")
ROOT = STORIES.parent.parent


def judge_plan(text: str, verifier: Verifier) -> tuple[bool, str]:
    """Whether a text is a valid plan, and in words why not."""
    try:
        found = verify_text(text, verifier)
    except FormalLLMError as error:
        return False, f"not read: {error}"
    nearest = "" if found.valid or found.nearest is None else f"; nearest: {write_word(found.nearest)}"
    return found.valid, f"{found.reason}{nearest}"


def judge_lines(text: str, guard: Guard) -> tuple[bool, str]:
    """Whether an agent may run the lines of a text, if a person agrees, and which is refused or asked about."""
    run, asked = guard.start(), "every line is allowed"
    for line in (one.strip() for one in text.splitlines()):
        if line and not line.startswith(("```", "#")):
            call = Call("Bash", add_effects("Bash", {"command": line}, str(ROOT)))
            decision = run.check(call)
            if decision.action == "block":
                return False, f"{line} is refused: {', '.join(decision.rules)}"
            asked = f"a person is asked about: {line}" if decision.action == "ask" else asked
            run = run.after(call)
    return True, asked


def main() -> None:
    """Ask for each plan, and judge it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llm", default="qwen")
    parser.add_argument("--story", help="only the story of this name")
    arguments = parser.parse_args()
    llm = resolve(arguments.llm)
    if not isinstance(llm, TextLLM):
        parser.error(f"--llm {arguments.llm} writes no text; name a language model")
    verdicts = []
    for story in tomllib.loads(STORIES.read_text(encoding="utf-8"))["story"]:
        if arguments.story not in (None, story["name"]):
            continue
        judge: Callable[[str], tuple[bool, str]]
        if "guard" in story:
            judge = partial(judge_lines, guard=Guard(GuardRules.from_file(ROOT / story["guard"])))
            steps, what = "", "shell commands that you run, in order, one on each line, nothing else"
        else:
            written = "sentences" in story
            source = author(story["sentences"], notation=".agent").rules if written else load(story["rules"]).whole
            judge = partial(judge_plan, verifier=Verifier(source))
            steps = f"The steps that there are: {', '.join(story.get('steps', source.terminals))}.\n"
            what = "steps that you take, in order, one on each line, only their names"
        for request in story["requests"]:
            prompt = (
                f"{steps}Rules: {story['words']}\nRequest: {request}\nWrite the {what}, in order, one on each line, "
            )
            text = llm.generate(f"{prompt}and nothing else.\n", max_tokens=300).text
            valid, why = judge(text)
            verdicts.append(valid)
            print(
                f"## {story['name']}: {request}\n{text.strip()}\n-> {'valid' if valid else 'not valid'}: {why}\n",
                flush=True,
            )
    print(f"{sum(verdicts)} of {len(verdicts)} are valid")


if __name__ == "__main__":
    main()
