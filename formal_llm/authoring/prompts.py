"""What a model that drafts rules reads: the notations, the words, what was found in its last draft."""

from __future__ import annotations

from collections.abc import Sequence

from formal_llm.authoring.drafts import Draft
from formal_llm.authoring.examples import Example
from formal_llm.llms.question import Message

#: A short description of each notation, with an example.
NOTATIONS: dict[str, str] = {
    ".rules": """Sentences (rules), one on each line, of these forms and no others. A, B and C are steps, or several
with "or".
```rules
steps: find order, ask manager, pay back, close
find order before pay back
ask manager before each pay back
at most 1 pay back
last close
```
The first line lists all steps. The forms: `first A`; `last A`; `never A`; `at most N A`, `at least N A`, `exactly N A`;
`A before B`; `A before each B` (one since the last B); `A after each B`; `A directly after each B`; `A if B` (where B
happens, A does, too); `never A after B`; `never A directly after B`; `only A after B`; `never A between B and C`;
`A only between B and C`; `at most one of A, B, C`, `at least one of ...`, `exactly one of ...`;
`in this order: A, B, C`; `at most N steps`.""",
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
    ".rules": "sentences about order and number",
    ".cfg": "parts made of parts, recipes, typed steps",
    ".mmd": "questions and answers",
    ".pda": "clocks and counters",
    ".agent": "formulas about sequences",
}


def write_first_messages(
    words: str, ending: str | None, steps: Sequence[str], examples: Sequence[Example]
) -> list[Message]:
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
        "with the rules alone, in one code block that begins with ``` and the name of the notation.\n\n"
        f"{instruction}"
    )
    parts = [f"The rules in words:\n\n{words.strip()}"]
    if steps:
        parts.append(f"The steps are called: {', '.join(steps)}.")
    if examples:
        listed = (f"- {'must be allowed' if one.allowed else 'must not be allowed'}: {one}" for one in examples)
        parts.append("Known plans:\n" + "\n".join(listed))
    return [Message("system", system), Message("user", "\n\n".join(parts))]


def write_retry_messages(draft: Draft, problems: Sequence[str]) -> list[Message]:
    """Return the messages that continue the chat after a draft with problems."""
    listed = "\n".join(f"- {problem}" for problem in problems)
    draft_text = f"```{draft.ending[1:]}\n{draft.text.rstrip()}\n```" if draft.ending else draft.text
    instruction = "Write the whole rules again, mended, in one code block. What is meant so may stay."
    request = f"This was found in it:\n\n{listed}\n\n{instruction}"
    return [Message("assistant", draft_text or "(nothing)"), Message("user", request)]
