"""Wording: how a question is phrased.

The default follows the prompt of Formal-LLM (arXiv 2402.00798, appendix): the task, the progress written backwards from
step n, the current target, the numbered choices. Each part is a template that a task pack, or code, may replace.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from formal_llm.authored.tables import Items, Keys, Shape, problems, read_toml
from formal_llm.automata import Transition
from formal_llm.automata.models.repetition import parse_repetition
from formal_llm.automata.models.symbols import selection_members
from formal_llm.errors import NotationError
from formal_llm.llms.llm import LLM
from formal_llm.llms.question import Message
from formal_llm.planning.plans.steps import Order, read_steps
from formal_llm.planning.plans.tree import Node, is_nested, only_terminal, path_to_open, production_of, text_of
from formal_llm.planning.walks.choices import Choice

_PROMPT = dict.fromkeys(("task", "progress", "target", "options", "instruction"), "")
_DRAFT = dict.fromkeys(("names", "rules", "limits"), "")
#: The templates of a wording, each with the placeholders that it may use.
FIELDS: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("prompt", _PROMPT), ("follow_up", _PROMPT), ("system", {"task": "", "rules": ""}),
    ("instruction", {"count": 1}), ("instruction_several", {"count": 1}),
    ("selection_sets", {"sets": ""}), ("selection_not", {"sets": ""}), ("selection_with", {"options": ""}),
    ("selection_sum", {"amount": "", "quantity": ""}), ("selection_sum_later", {"amount": "", "quantity": ""}),
    ("target", {"label": "", "tool": "", "ordinal": ""}), ("first_target", {"label": ""}),
    ("next_target", {"label": ""}), ("tool_option", {"label": ""}), ("another_option", {"label": ""}),
    ("enough_option", {"label": ""}), ("none_option", {"label": ""}), ("step", {"text": ""}),
    ("question_target", {"question": ""}), ("decision", {"question": "", "answer": ""}), ("draft", _DRAFT),
    ("more_option", {"count": 1}), ("group_option", {"group": "", "count": 1}), ("page_taken", {"options": ""}),
    ("uncertain_option", {"option": ""}),
    ("page_wanted", {"count": 1}), ("look", {"task": "", "options": "", "instruction": ""}),
    ("draft_task", {"task": ""}), ("draft_wanted", {"plan": ""}),
)  # fmt: skip
_PLACEHOLDER = re.compile(r"\{(\w*)\}")


def fill_template(template: str, values: Mapping[str, object]) -> str:
    """Replace each ``{name}`` in ``template``.

    Raises:
        ValueError: a name is not in ``values``; the message lists the known ones.
    """
    form, names = _compile_template(template)
    try:
        return form % tuple([values[name] for name in names])
    except KeyError as name:
        known = ", ".join(f"{{{one}}}" for one in values)
        raise ValueError(f"unknown placeholder {{{name.args[0]}}}; there are: {known}") from None


@lru_cache(maxsize=256)
def _compile_template(template: str) -> tuple[str, tuple[str, ...]]:
    """Convert a template to a format for Python's ``%``, and list its placeholders in order."""
    pieces = _PLACEHOLDER.split(template)
    return "%s".join(text.replace("%", "%%") for text in pieces[::2]), tuple(pieces[1::2])


def find_duplicates(texts: Iterable[str]) -> set[str]:
    """Find the texts that occur more than once."""
    return {text for text, count in Counter(texts).items() if count > 1}


#: The endings of questions that need no colon.
_ASKING = ("?", ":", "!", ".", "…", "？", "؟")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")

#: The text that :meth:`Wording.with_rules` adds to the system message.
RULES = (
    "A plan is made by answering one question after the other. Each question offers the choices that the rules allow "
    "next. These are the rules, texts in quotes being the labels of the symbols before them:\n\n{rules}"
)


@dataclass(frozen=True)
class Wording:
    """The templates of a question.

    Attributes:
        conversation: False: each question is asked on its own; True: after all earlier ones and their answers.
        system: a system message; empty for none. May use ``{task}`` and ``{rules}``, the rules in their
            notation. It is the same for every question of a task, so providers can read it from their
            prompt cache.
        examples: few-shot examples, pairs of a question and its answer.
        prompt: the question. May use ``{task}``, ``{progress}``, ``{target}``, ``{options}``, ``{instruction}``.
        follow_up: a later question in a conversation; as ``prompt``, but ``{progress}`` has only the new steps.
        instruction, instruction_several: the form of an answer, for one number and for several; may use ``{count}``.
        selection_sets, selection_with, selection_not: what may be chosen together, before the instruction for several
            numbers: the only sets, the options that each set has, the sets that are ruled out; may use ``{sets}``
            (``selection_with``: ``{options}``).
        selection_sum, selection_sum_later: the required sum over the choices, and over the choices and everything
            after them; may use ``{amount}`` ("between 3 and 5") and ``{quantity}``.
        target: the current target, for an argument of a tool; may use ``{label}``, ``{tool}``, ``{ordinal}``.
        first_target: the same for the whole of a prefix plan; may use ``{label}``.
        next_target: the same in a forward plan, and in a plan that is not nested; may use ``{label}``.
        tool_option: an option that begins with a tool; may use ``{label}``.
        stop_option: the option to stop here.
        another_option, enough_option: for a repetition (``X*``): another ``X``, no more; may use ``{label}``.
        none_option: for ``X?``: none; may use ``{label}``.
        more_option, group_option: the option to see more options (may use ``{count}``), a group (``{group}``).
        uncertain_option: an option after which it is not known that a plan can be finished; empty for no mark; may use
            ``{option}``.
        page_wanted, page_taken: when several options are chosen page by page, the target (may use ``{count}``) and the
            choices of earlier pages (``{options}``).
        step: a step in the progress; may use ``{text}``.
        question_target: the target when the automaton asks a question of its own (a decision of a flowchart); may use
            ``{question}``.
        decision: a decision in the progress; may use ``{question}`` and ``{answer}``. A question without end
            punctuation gets a colon.
        look: the question for all steps of a plan (``search="exact"``); may use ``{task}``, ``{options}`` and
            ``{instruction}``. The task comes last, so that a model reads what comes before only once.
        draft: the request for a draft of the whole plan (``search="draft"``). May use ``{names}`` (the names that
            plans consist of), ``{limits}`` and ``{rules}`` (both end with an empty line). It is the same for all tasks,
            and stands in the system message.
        draft_task: the task in that request, as the message of the user.
        draft_wanted: the note in a question at which the draft breaks the rules; may use ``{plan}``.
    """

    conversation: bool = False
    system: str = ""
    examples: tuple[tuple[str, str], ...] = ()
    prompt: str = (
        "Task description: {task}\n\nCurrent progress:\n{progress}\n\n"
        "To get {target}, we have the following choices:\n{options}\n\n{instruction}"
    )
    follow_up: str = "{progress}\n\nTo get {target}, we have the following choices:\n{options}\n\n{instruction}"
    instruction: str = "Answer with the number of your choice, an integer from 1 to {count}, and nothing else."
    instruction_several: str = (
        "Answer with the numbers of all your choices, from 1 to {count}, separated by commas, and nothing else."
    )
    selection_sets: str = "Only these can be chosen together: {sets}."
    selection_with: str = "Among your choices must be: {options}."
    selection_not: str = "These cannot be chosen together any more: {sets}."
    selection_sum: str = "Your choices together must come to {amount} in {quantity}."
    selection_sum_later: str = "Your choices, with all that comes after them, must come to {amount} in {quantity}."
    target: str = 'the {ordinal}input {label} of "{tool}"'
    first_target: str = "the output {label}"
    next_target: str = "the next part, {label}"
    tool_option: str = 'the output of "{label}"'
    stop_option: str = "nothing more: the plan is finished"
    another_option: str = "another {label}"
    enough_option: str = "no more {label}"
    none_option: str = "no {label}"
    more_option: str = "more: {count} other options"
    group_option: str = "{group}: {count} options"
    uncertain_option: str = ""
    page_wanted: str = "some of {count} options"
    page_taken: str = "You have chosen before: {options}."
    step: str = "{text};"
    question_target: str = 'the answer to "{question}"'
    decision: str = "{question} {answer};"
    look: str = (
        "A plan is made of these steps:\n{options}\n\nWhich of them does the best plan for the task have?\n"
        "{instruction}\n\nTask description: {task}"
    )
    draft: str = (
        "You choose the steps of a plan for a task. The steps are:\n{names}\n\n{limits}{rules}"
        "Answer with the names of just the steps that are needed, in the order in which they are carried out, as few "
        "as possible, with commas between them, and nothing else."
    )
    draft_task: str = "{task}"
    draft_wanted: str = "Your draft of the plan was: {plan}."

    def __post_init__(self) -> None:
        object.__setattr__(self, "examples", tuple((str(q), str(a)) for q, a in self.examples))
        for name, known in FIELDS:
            try:
                fill_template(getattr(self, name), known)
            except ValueError as error:
                raise ValueError(f"wording, {name}: {error}") from None

    @classmethod
    def from_mapping(cls, data: Mapping[str, object], *, file: str | None = None) -> Wording:
        """Create a wording from the keys of a TOML table; missing keys keep their defaults.

        Raises:
            NotationError: a key is unknown, or a value is invalid.
        """
        found = next(problems(data, SHAPE, _CALLED), None)
        if found is not None:
            raise NotationError(found.problem, file=file, expected=found.expected, suggestion=found.suggestion)
        values: dict[str, Any] = dict(data)
        try:
            return replace(cls(), **values)
        except (TypeError, ValueError) as error:
            raise NotationError(str(error), file=file) from None

    @classmethod
    def from_file(cls, path: str | Path) -> Wording:
        """Read a wording from a TOML file.

        Raises:
            NotationError: the file cannot be read, or as in :meth:`from_mapping`; with the line.
        """
        return cls.from_mapping(read_toml(path, SHAPE, _CALLED), file=str(path))

    def ask(
        self,
        task: str,
        tree: Node,
        options: Sequence[str],
        order: Order,
        *,
        several: bool,
        shown: Node | None = None,
        question: str = "",
        wanted: str = "",
        hints: Iterable[str] = (),
    ) -> str:
        """Write the text of a question, given the tree of the plan so far, and which way its word is read.

        In a conversation ``shown`` is the tree at the previous question, whose steps were shown there; ``question`` is
        the question of the automaton itself, if it has one; ``wanted`` replaces the label of the target;
        ``hints`` are lines before the instruction.
        """
        instruction = self.instruction_several if several else self.instruction
        values = {
            "task": task,
            "progress": self.progress(
                tree, order, 0 if shown is None else len(self._write_progress_lines(shown, order))
            ),
            "target": fill_template(self.question_target, {"question": question})
            if question
            else self.goal(tree, order, wanted),
            "options": "\n".join(f"{number}: {text}" for number, text in enumerate(options, 1)),
            "instruction": "\n".join([*hints, fill_template(instruction, {"count": len(options)})]),
        }
        return fill_template(self.prompt if shown is None else self.follow_up, values)

    def before(
        self, earlier: Iterable[tuple[str, str]], task: str = "", rules: Callable[[], str] = str
    ) -> tuple[Message, ...]:
        """List the messages before a question: system, examples, in a conversation the earlier questions and answers.

        ``rules`` creates the text of the rules; it is called only if the system message shows them.
        """
        system = self.system
        if "{" in system:
            system = fill_template(system, {"task": task, "rules": rules() if "{rules}" in system else ""})
        pairs = [*self.examples, *earlier]
        conversation = [
            Message(role, text) for pair in pairs for role, text in zip(("user", "assistant"), pair, strict=True)
        ]
        return (*([Message("system", system)] if system else []), *conversation)

    def with_rules(self) -> Wording:
        """Return the same wording with the automaton's rules at the end of the system message."""
        if "{rules}" in self.system:
            return self
        return replace(self, system=f"{self.system}\n\n{RULES}" if self.system else RULES)

    def ask_draft(self, task: str, parts: Mapping[str, str], rules: Callable[[], str] = str) -> tuple[Message, ...]:
        """Write the request for a draft; ``parts`` has names, rules and limits, ``rules`` is as of :meth:`before`."""
        before = replace(self, examples=()).before((), task, rules)
        system = "\n\n".join([*(message.content for message in before), fill_template(self.draft, parts)])
        return Message("system", system), Message("user", fill_template(self.draft_task, {"task": task}))

    def ask_steps(self, task: str, options: Sequence[str]) -> str:
        """Write the question for all steps of a plan at once."""
        listed = "\n".join(f"{number}: {text}" for number, text in enumerate(options, 1))
        instruction = fill_template(self.instruction_several, {"count": len(options)})
        return fill_template(self.look, {"task": task, "options": listed, "instruction": instruction})

    def progress(self, tree: Node, order: Order, skip: int = 0) -> str:
        """Write the steps so far, in the order in which they were chosen, and the one to choose now."""
        now = f"{_step_name(len(read_steps(tree, order)), order)}: ?"
        return "\n".join([*self._write_progress_lines(tree, order)[skip:], now])

    def _write_progress_lines(self, tree: Node, order: Order) -> list[str]:
        """Write the lines of the progress: the numbered steps as they were chosen, and the decisions between them."""
        steps = read_steps(tree, order)
        chosen = steps[::-1] if order == "prefix" else steps
        lines = [
            f"{_step_name(n, order)}: {fill_template(self.step, {'text': step.text})}" for n, step in enumerate(chosen)
        ]
        if tree.symbol != "plan" or all(node.question is None for node in tree.children):
            return lines
        # Only flat trees have decisions; there every other node is a step.
        numbered = iter(lines)
        return [next(numbered) if node.question is None else self._write_decision(node) for node in tree.children]

    def _write_decision(self, node: Node) -> str:
        question = node.question or ""
        colon = "" if question.endswith(_ASKING) else ":"
        return fill_template(self.decision, {"question": f"{question}{colon}", "answer": node.text or node.label})

    def goal(self, tree: Node, order: Order, wanted: str = "") -> str:
        """Write the current target: the leftmost symbol without a chosen production, by its label or as ``wanted``."""
        path = path_to_open(tree)
        if path is None:
            return fill_template(self.next_target, {"label": "a step"}) if tree.symbol == "plan" else "the rest"
        node = path[-1]
        while len(path) > 1 and len(path[-2].children) == 1 and parse_repetition(path[-2].symbol) is None:
            path.pop()  # a renaming: the target is its parent
        if len(path) == 1 and order == "prefix":
            return fill_template(self.first_target, {"label": wanted or node.label})
        if order == "forward" or not is_nested(tree):
            return fill_template(self.next_target, {"label": wanted or node.label})
        parent, child = path[-2], path[-1]
        if parse_repetition(parent.symbol) is not None:
            above = path[-3].children if len(path) > 2 else []
            tool = only_terminal(above[0]) if len(above) > 1 else None
            if tool is None:
                return fill_template(self.next_target, {"label": wanted or child.label})
            return fill_template(self.target, {"label": wanted or child.label, "tool": tool.label, "ordinal": ""})
        tool = only_terminal(parent.children[0])
        if tool is None or child is parent.children[0]:
            return fill_template(self.next_target, {"label": wanted or node.label})
        same_label = [sibling for sibling in parent.children[1:] if sibling.label == child.label]
        place = next(number for number, sibling in enumerate(same_label) if sibling is child)
        ordinal = f"{_ORDINALS[place]} " if 1 < len(same_label) <= len(_ORDINALS) else ""
        return fill_template(self.target, {"label": wanted or child.label, "tool": tool.label, "ordinal": ordinal})

    def option(self, choice: Choice, label: Callable[[str], str], order: Order) -> str:
        """Write the text of an option; ``label`` gives the text of a symbol, ``order`` says how words are read."""
        if not choice.moves:
            return self.stop_option
        first = choice.moves[0]
        production = production_of(first)
        if text := text_of(first):
            return text
        if production is None:
            if choice.reads:
                return label(choice.reads[0])
            return f"go on to {first.target}" if isinstance(first, Transition) else str(first)
        body = production.body
        again = parse_repetition(production.head)
        if again is not None:
            alone = production.head.endswith("?")
            more, enough = ("{label}", self.none_option) if alone else (self.another_option, self.enough_option)
            if body and choice.reads and again.of != choice.reads[0]:
                return label(choice.reads[0])  # one of a class
            return fill_template(more if body else enough, {"label": label(again.of)})
        if not body:
            return "nothing"
        if not choice.reads or selection_members(body[0]) is not None:
            return ", ".join(map(label, body))
        if len(body) == 1:
            return label(choice.reads[0])
        if order == "prefix":
            return fill_template(self.tool_option, {"label": label(choice.reads[0])})
        return ", ".join([label(choice.reads[0]), *map(label, body[1:])])

    def options(self, choices: Sequence[Choice], label: Callable[[str], str], order: Order) -> tuple[str, ...]:
        """Write the texts of the options, adding what distinguishes those that would read the same."""
        texts = with_questions(choices, [self.option(choice, label, order) for choice in choices])
        if len(set(texts)) == len(texts):
            return tuple(texts)
        alike = find_duplicates(texts)
        added: dict[tuple[str, ...], str] = {(): " alone"}
        for number, choice in enumerate(choices):
            production = production_of(choice.moves[0]) if choice.moves and texts[number] in alike else None
            if production is not None:
                rest = production.body[1:]
                texts[number] += added.get(rest) or added.setdefault(rest, f" from {' and '.join(map(label, rest))}")
        alike = find_duplicates(texts)
        for number, text in enumerate(texts):
            if text in alike:
                # Equal labels for different symbols: only the names distinguish them.
                names = [*choices[number].reads] or [str(move) for move in choices[number].moves[:1]]
                texts[number] = f"{text} [{', '.join(names)}]"
        return tuple(texts)


def _step_name(place: int, order: Order) -> str:
    """Name the step that is chosen after ``place`` others."""
    if order == "forward":
        return f"Step {place + 1}"
    return f"Step n-{place}" if place else "Step n"


def with_questions(choices: Sequence[Choice], texts: list[str]) -> list[str]:
    """Add their questions to the texts of choices that answer different questions."""
    first = [choice.moves[0] if choice.moves else None for choice in choices]
    asked = [move.question if isinstance(move, Transition) and move.decision else "" for move in first]
    if len(set(asked)) < 2:
        return texts
    return [f"{question} {text}" if question else text for question, text in zip(asked, texts, strict=True)]


_CALLED = "in a wording"
_OTHER_SHAPES: dict[str, Shape] = {"conversation": bool, "examples": Items(Items(str))}
#: The keys of a file with a wording.
SHAPE = Keys({name: _OTHER_SHAPES.get(name, str) for name in Wording.__annotations__})


_SHORT = {
    "tool_option": "{label}",
    "instruction": "Which number, 1 to {count}?",
    "instruction_several": "Which numbers from 1 to {count}, separated by commas?",
}
#: The templates of named wordings.
NAMED: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "terse": {
            **_SHORT,
            "prompt": "Task: {task}\n{progress}\nTo get {target}:\n{options}\n{instruction}",
            "follow_up": "{progress}\nTo get {target}:\n{options}\n{instruction}",
        },
        "unlisted": {
            **_SHORT,
            "prompt": "Task: {task}\n{progress}\nTo get {target}, what is needed?",
            "follow_up": "{progress}\nTo get {target}, what is needed?",
        },
    }
)


def shortened(wording: Wording, name: str = "terse") -> Wording:
    """Replace the question templates of a wording by short ones.

    Args:
        wording: the wording; everything outside the questions (system message, examples, conversation) stays.
        name: ``terse``: few words around the task, the steps and the options; ``unlisted``: without the options, for
            models whose options are scored by their texts and so need no list
            (:mod:`~formal_llm.llms.scoring`); other models could only guess what the numbers mean.

    Raises:
        ValueError: there is no such wording.
    """
    if name not in NAMED:
        raise ValueError(f"there is no wording {name!r}; there are: {', '.join(NAMED)}")
    changes: dict[str, Any] = {**NAMED[name]}
    return replace(wording, **changes)


def adapt_wording(wording: Wording, llm: LLM) -> Wording:
    """Shorten a default wording for an LLM that prefers a short one (its attribute ``wording``)."""
    return shortened(wording, llm.wording) if llm.wording else wording
