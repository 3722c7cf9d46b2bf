"""The prompts for a model that drafts rules."""

from __future__ import annotations

from collections.abc import Sequence

from formal_llm.authoring.drafts import Draft
from formal_llm.authoring.examples import Example
from formal_llm.llms.question import Message

#: A short description of each notation, with an example.
NOTATIONS: dict[str, str] = {
    ".cfg": """A grammar (cfg): what is made of what. A symbol with a rule is a nonterminal, every other one is a step.
```cfg
%order forward
%limit 2 rinse
Plan -> fill Wash drain
Wash -> soap rinse | rinse Wash | ε
```
`|` separates alternatives; repetition is recursion; no * + ? and no quotes around symbols. `%limit N name` and
`%require N name` bound how often a step happens.""",
    ".mmd": """A flowchart (mermaid): questions with labelled answers, and steps. `{ }` is a question, `[ ]` a step.
```mermaid
flowchart TD
  start([Start]) --> paid{"Is it paid?"}
  paid -->|yes| ship[Ship it]
  paid -->|no| remind[Send a reminder]
  ship --> done([End])
  remind --> done
```""",
    ".pda": """An automaton (pda): states, and a line for each transition: state, step, popped -> state, pushed; ε is
nothing.
```pda
%start idle
%accept idle
idle, open, ε -> busy, ε
busy, work, ε -> busy, ε
busy, close, ε -> idle, ε
```""",
    ".agent": """A behaviour (agent): the steps, and a formula for the allowed sequences of them.
```agent
(define name
  (:states wash dry iron)
  (:limits "%limit 2 iron" "%require 1 wash")
  (:behavior (and
    (not (next (until (and any (not wash)) dry) (until any empty)))
    (not (eventually (next iron iron))))))
```
`(next a b)` is a, then b; `(or a b)`; `(and f g)` both hold of the whole sequence; `(not f)`; `any` is one step;
`empty` nothing; `(until a b)` a any number of times, then b; `(until_2_5 a b)` 2 to 5 times; `(eventually f)` somewhere
in the sequence.""",
}
_BEST = {
    ".cfg": "parts made of parts, recipes, typed steps",
    ".mmd": "questions and answers",
    ".pda": "clocks and counters",
    ".agent": "sentences about order and number",
}


def first_messages(words: str, ending: str | None, steps: Sequence[str], examples: Sequence[Example]) -> list[Message]:
    """Return the chat that requests a first draft.

    Args:
        words: the rules in plain words.
        ending: the notation; the model chooses if omitted.
        steps: the known names of steps; empty if the model may choose them.
        examples: plans that must be allowed, and plans that must not.
    """
    if ending is not None:
        instruction = NOTATIONS[ending]
    else:
        choices = "; ".join(f"{kind[1:]}: {best}" for kind, best in _BEST.items())
        instruction = "Pick the notation that fits best (" + choices + ").\n\n" + "\n\n".join(NOTATIONS.values())
    system = (
        "You write down which plans are valid, as formal rules. A plan is a sequence of steps. Every plan that the "
        "words allow must follow the rules, and no other plan. Name steps in small letters with underscores. Answer "
        f"with the rules alone, in one code block.\n\n{instruction}"
    )
    parts = [f"The rules in words:\n\n{words.strip()}"]
    if steps:
        parts.append(f"The steps are called: {', '.join(steps)}.")
    if examples:
        parts.append("Known plans:\n" + "\n".join(map(_describe_example, examples)))
    return [Message("system", system), Message("user", "\n\n".join(parts))]


def retry_messages(draft: Draft, problems: Sequence[str]) -> list[Message]:
    """Return the messages that continue the chat after a draft with problems."""
    listed = "\n".join(f"- {problem}" for problem in problems)
    draft_text = f"```{draft.ending[1:]}\n{draft.text.rstrip()}\n```" if draft.ending else draft.text
    instruction = "Write the whole rules again, mended, in one code block. What is meant so may stay."
    request = f"This was found in it:\n\n{listed}\n\n{instruction}"
    return [Message("assistant", draft_text or "(nothing)"), Message("user", request)]


def _describe_example(example: Example) -> str:
    return f"- {'must be allowed' if example.allowed else 'must not be allowed'}: {example}"
