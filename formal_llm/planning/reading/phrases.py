"""The possible texts of lines of a plan, for an automaton and for a grammar."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from formal_llm.automata import CFG, PDA, Transition
from formal_llm.errors import NotationError
from formal_llm.planning.plans.steps import one_line
from formal_llm.planning.plans.vocabulary import Vocabulary
from formal_llm.planning.reading.candidates import write_step
from formal_llm.planning.reading.prose import STOPS, StepLine, StepPhrases, fold_text

_RESULT = re.compile(r"(?:the )?(?:result|output) of step \d+")


def strip_use(text: str) -> str:
    """A folded text without "use" before it."""
    return text.removeprefix("use ")


def list_spellings(text: str) -> tuple[str, ...]:
    """A text as it is compared, with and without what may come at its end."""
    return tuple(dict.fromkeys((fold_text(text), fold_text(text).rstrip(STOPS))))


class Naming:
    """Which terminals a text names: by label, or by name. A label goes before a name."""

    def __init__(self, vocabulary: Vocabulary, terminals: Iterable[str]) -> None:
        self.labels: dict[str, list[str]] = {}
        self.names: dict[str, list[str]] = {}
        self.shown: dict[str, None] = {}
        for name in terminals:
            label = vocabulary.label(name)
            self.shown.update(dict.fromkeys((name, label)))
            for form in list_spellings(label):
                self.labels.setdefault(form, []).append(name)
            for form in dict.fromkeys((fold_text(name), fold_text(name.replace("_", " ")))):
                self.names.setdefault(form, []).append(name)

    def find_terminals(self, text: str) -> tuple[str, ...]:
        """The terminals that a text names, with or without "Use" before it; none where it names none."""
        forms = dict.fromkeys(form for whole in list_spellings(text) for form in (whole, strip_use(whole)))
        for form in forms:
            labelled, named = self.labels.get(form, []), self.names.get(form, [])
            if labelled or named:
                return tuple(labelled or named)
        return ()

    def check_line(self, line: StepLine) -> None:
        """Raise where a line is the label of one terminal and the name of another, and not as it is printed.

        Raises:
            NotationError: it is.
        """
        labelled, named = (self._find_names(forms, line.text) for forms in (self.labels, self.names))
        if labelled and named and not set(named) <= set(labelled) and not line.printed:
            raise NotationError(
                f"{line.text!r} is the label of {' or '.join(labelled)} and the name of {' or '.join(named)}; "
                "write it as it is printed, 'Step 1: Use ...'",
                file="<plan>", line=line.place, source_line=line.source,
            )  # fmt: skip

    @staticmethod
    def _find_names(known: dict[str, list[str]], text: str) -> list[str]:
        forms = dict.fromkeys(form for whole in list_spellings(text) for form in (whole, strip_use(whole)))
        return next((known[form] for form in forms if form in known), [])


class MovePhrases:
    """The possible texts of lines for an automaton that comes from no grammar.

    A line is what a transition prints, to the letter; else what one prints but for blanks, capitals and stops at
    the end; else the name or label of a terminal, or a decision: its question with the answer.
    """

    def __init__(self, pda: PDA) -> None:
        self.pda = pda
        self.silent = frozenset(t for t in pda.transitions if write_step(t, "") is None)
        self.printed: dict[str, set[Transition]] = {}
        self._near: dict[str, set[Transition]] = {}
        self._decisions: dict[str, set[Transition]] = {}
        self.reading: dict[str, set[Transition]] = {}
        for transition in pda.transitions:
            name = transition.read
            text = write_step(transition, pda.label(name) if name is not None else "")
            if name is not None:
                self.reading.setdefault(name, set()).add(transition)
            if text is not None:
                self.printed.setdefault(one_line(text), set()).add(transition)
                for form in list_spellings(text):
                    self._near.setdefault(form, set()).add(transition)
            elif transition.decision:
                answer = transition.text or (pda.label(name) if name is not None else "")
                for phrase in list_decision_texts(transition.question, answer):
                    for form in list_spellings(phrase):
                        self._decisions.setdefault(form, set()).add(transition)
        self._naming = Naming(Vocabulary(pda), self.reading)

    def find_transitions(self, text: str, *, strict: bool = False) -> Collection[Transition]:
        """The transitions that a line may describe."""
        if strict or text in self.printed:
            return self.printed.get(text, set())
        for form in list_spellings(text):
            if found := self._near.get(form, set()) | self._decisions.get(form, set()):
                return found
        return {one for name in self._naming.find_terminals(text) for one in self.reading[name]}

    def collect_phrases(self) -> StepPhrases:
        """Collect the texts that a step may have, to find the steps among other lines."""
        questions = {t.question.rstrip("?: ") for t in self.pda.transitions if t.decision and t.question}
        steps = [name for name, moves in self.reading.items() if not all(move.decision for move in moves)]
        labels = [self.pda.label(name) for name in steps]
        return StepPhrases(
            lambda text: bool(self.find_transitions(text)),
            list(dict.fromkeys([*self.printed, *labels, *steps, *questions])),
        )


def list_decision_texts(question: str, answer: str) -> Iterator[str]:
    """The texts of a decision."""
    bare = question.rstrip("?: ")
    return (one for one in (f"{question} {answer}", f"{bare}: {answer}", f"{bare} {answer}", answer) if one.strip())


class ProductionPhrases:
    """The possible texts of lines for a grammar: texts of productions, tools with what they are applied to."""

    def __init__(self, cfg: CFG) -> None:
        self._cfg = cfg
        self._naming = Naming(Vocabulary(PDA.from_cfg(cfg)), cfg.terminals)
        self._texts = {form: p.text for p in cfg.productions if p.text for form in list_spellings(p.text)}

    def collect_phrases(self) -> StepPhrases:
        """Collect the texts that a step may have, to find the steps among other lines."""
        texts = [text for text in self._texts.values() if text]
        return StepPhrases(self._is_whole_step, list(dict.fromkeys([*texts, *self._naming.shown])))

    def is_printed(self, line: StepLine) -> bool:
        """Whether a line looks as a step is printed, to the letter."""
        if not line.printed:
            return False
        if any(line.text == text or line.text.startswith(f"{text}: ") for text in map(one_line, self._texts.values())):
            return True
        labels = [one_line(self._cfg.label(name)) for name in self._cfg.terminals]
        return any(line.text == f"Use {label}" or line.text.startswith(f"Use {label} on ") for label in labels)

    def has_inputs(self, line: StepLine) -> bool:
        """Whether a line names what a tool is applied to, and can mean nothing else."""
        return not self._is_step(line.text) and self._can_split(line.text, " on ")

    def _is_whole_step(self, text: str) -> bool:
        return self._is_step(text) or self._can_split(text, " on ")

    def _is_step(self, text: str) -> bool:
        """Whether a text is a terminal, or the text of a production with what was chosen for it or without."""
        return self._is_text(text) or bool(self._naming.find_terminals(text)) or self._can_split(text, ": ")

    def _can_split(self, text: str, separator: str) -> bool:
        """Whether a text is a tool and what it is applied to, or the text of a production and what was chosen."""
        form = fold_text(text).rstrip(STOPS)
        for split in re.finditer(re.escape(separator), form):
            head, rest = form[: split.start()], form[split.end() :]
            known = head in self._texts if separator == ": " else self._naming.find_terminals(head)
            if known and self._are_named(rest, ", " if separator == ": " else " and "):
                return True
        return False

    def _is_text(self, text: str) -> bool:
        return any(form in self._texts for form in list_spellings(text))

    def _are_named(self, text: str, separator: str) -> bool:
        """Whether a text is a list of terminals, and of results of steps. A label may itself hold the separator."""
        parts = text.split(separator)
        ends = [0]
        for end in range(1, len(parts) + 1):
            named = (separator.join(parts[start:end]) for start in ends)
            if any(self._naming.find_terminals(n) or (separator == " and " and _RESULT.fullmatch(n)) for n in named):
                ends.append(end)
        return ends[-1] == len(parts)
