"""The finished plan: word, derivation tree, nested calls, readable steps, and usage."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

from formal_llm.authored.files import parse_json
from formal_llm.automata import PDA, Source, Word
from formal_llm.automata.models.automaton import Move
from formal_llm.errors import AutomatonError
from formal_llm.pictures.drawable import Drawable
from formal_llm.pictures.picture import Picture
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.steps import Order, Step, read_steps
from formal_llm.planning.plans.tree import Call, Node, read_call
from formal_llm.planning.plans.usage import Usage
from formal_llm.planning.plans.vocabulary import write_word

if TYPE_CHECKING:
    import networkx
    from rich.console import RenderableType

    from formal_llm.planning.plans.overlay import Overlay
    from formal_llm.planning.plans.schedule import ScheduledStep

_FORMAT = "formal_llm.plan/1"


class Plan(Drawable):
    """A plan. Plans are equal if task, tree, order and completeness are; their parts are computed on access.

    Args:
        task: the description of the task.
        tree: the derivation tree, or a function that builds it.
        order: ``forward`` if the word is the order in which the steps are carried out, ``prefix`` if it is read from
            last to first, as nested calls are.
        usage: what was used to make it.
        complete: False for the partial plan of an unfinished walk.
        log_probability: see the attribute.
        run: a function that returns the automaton and its moves, for :meth:`certificate`.

    Attributes:
        log_probability: the natural logarithm of the probability that the answers gave this plan: the sum, over the
            questions that led to it, of the logarithm of the probability of the chosen option, normalised over the
            offered options. 0.0 if no question was asked, minus infinity if an option of probability 0 was chosen,
            None if an answer had no probabilities (as answers to selections never have).
    """

    def __init__(
        self,
        task: str,
        tree: Node | Callable[[], Node],
        *,
        order: Order = "forward",
        usage: Usage | None = None,
        complete: bool = True,
        log_probability: float | None = None,
        run: Callable[[], tuple[Source, Sequence[Move]]] | None = None,
    ) -> None:
        self.task = task
        self._tree = tree
        self.order: Order = order
        self.usage = usage or Usage()
        self.complete = complete
        self.log_probability = log_probability
        self._run = run
        self._timed = False

    @property
    def probability(self) -> float | None:
        """The probability that the answers gave this plan; None if it is not known (:attr:`log_probability`)."""
        return None if self.log_probability is None else math.exp(self.log_probability)

    @property
    def rules(self) -> Source | None:
        """The rules it was made under, with all limits, as one automaton; None for a plan that was read from a file."""
        return None if self._run is None else self._run()[0]

    def with_rules(self, rules: Source) -> Plan:
        """Return the same plan under rules: for one that was read from a file, which does not contain them.

        Raises:
            AutomatonError: it is not a plan of these rules, or they are an automaton of one's own.
        """
        from formal_llm.automata.lookahead.limited import as_automaton
        from formal_llm.planning.plans.certificates import find_run

        source = as_automaton(rules)
        if not isinstance(source, PDA):
            raise AutomatonError("a plan takes rules that are a grammar, a flowchart, a behaviour or a PDA")
        if not source.accepts(self.word):
            raise AutomatonError(f"it is no plan of these rules: {write_word(self.word, self.order)}")
        return self._with(_run=lambda: (source, find_run(source.without_limits, self.word)))

    def _with(self, **changes: object) -> Plan:
        made = object.__new__(Plan)
        made.__dict__.update(self.__dict__ | changes)
        made.__dict__.pop("schedule", None)
        return made

    @property
    def is_timed(self) -> bool:
        """Whether its rules say when steps may be: by a clock with windows, deadlines or gaps."""
        return self._timed or bool(getattr(self.rules, "times", None))

    @cached_property
    def schedule(self) -> tuple[ScheduledStep, ...]:
        """When each step is by the clock of the rules, one right after the other; empty where they have none."""
        from formal_llm.planning.plans.schedule import schedule_word

        return schedule_word(self.rules, self.word)

    @property
    def tree(self) -> Node:
        """The derivation tree; a flat one for an automaton without a grammar."""
        if not isinstance(self._tree, Node):
            self._tree = self._tree()
        return self._tree

    @cached_property
    def word(self) -> Word:
        """The terminals as the rules write them; where :attr:`order` is ``prefix``, the last one comes first."""
        return tuple(leaf.symbol for leaf in self.tree.leaves)

    @cached_property
    def call(self) -> Call | None:
        """The nested calls of a plan of a prefix grammar (each production a tool, then its arguments)."""
        return read_call(self.tree) if self.complete and self.order == "prefix" else None

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps from first to last."""
        return read_steps(self.tree, self.order)

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps)) if self.steps else write_word(self.word, self.order) if self.word else ""

    def __repr__(self) -> str:
        state = "" if self.complete else "unfinished, "
        return f"<Plan: {state}{' '.join(self.word)}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        mine = (self.task, self.order, self.complete, self.tree)
        return mine == (other.task, other.order, other.complete, other.tree)

    def __hash__(self) -> int:
        return hash((self.task, self.word))

    def __reduce__(self) -> tuple[object, ...]:
        return Plan.from_json, (self.to_json(),)

    def with_usage(self, usage: Usage) -> Plan:
        """Return the same plan with another usage."""
        return self._with(usage=usage)

    def certificate(self, rules: Source | None = None) -> dict[str, JSON]:
        """Return the proof that this plan follows its rules, as JSON data that can be checked without this library.

        It contains the derivation or run, the run of each constraint and the sum of each limit. It refers to the rules
        as :func:`~formal_llm.planning.plans.certificates.compiled_rules` returns them;
        :mod:`~formal_llm.planning.checking.certificate_checker` checks one against the other.

        Args:
            rules: the rules with all their limits; needed for a plan that was read from a file.

        Raises:
            ValueError: the plan is not finished, or the rules are not known.
            AutomatonError: it is not a plan of the rules, or they are a custom automaton.
        """
        from formal_llm.planning.plans.certificates import certificate  # few plans are proven or drawn

        if not self.complete:
            raise ValueError("the plan is not finished: there is nothing to prove yet")
        if rules is not None:
            return certificate(rules, self.word)
        if self._run is None:
            raise ValueError("this plan was not made here: name its rules, plan.certificate(rules)")
        source, moves = self._run()
        return certificate(source, self.word, moves)

    def compiled_rules(self) -> dict[str, JSON]:
        """Return the rules to which :meth:`certificate` refers, as JSON data.

        Raises:
            ValueError, AutomatonError: as in :meth:`certificate`; for a plan from a file, compile its rules directly.
        """
        from formal_llm.planning.plans.certificates import compiled_rules

        if self._run is None:
            raise ValueError("this plan was not made here: name its rules, compiled_rules(rules)")
        return compiled_rules(self._run()[0])

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the plan as JSON: ``word``, ``call`` and ``steps`` for readers, ``tree`` for :meth:`from_json`.

        ``probability`` and ``log_probability`` are null if they are not known; for a plan of probability 0 only
        ``log_probability`` is null, as JSON has no infinity.
        """
        impossible = self.log_probability == -math.inf
        data = {
            "format": _FORMAT,
            "task": self.task,
            "complete": self.complete,
            "order": self.order,
            "timed": self.is_timed,
            "word": self.word,
            "call": None if self.call is None else str(self.call),
            "steps": [asdict(step) for step in self.steps],
            "usage": asdict(self.usage),
            "probability": self.probability,
            "log_probability": None if impossible else self.log_probability,
            "tree": self.tree.flat(),
        }
        return json.dumps(data, indent=indent, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read a plan that :meth:`to_json` wrote.

        Raises:
            ValueError: the text is not such a plan.
        """
        try:
            data: Any = parse_json(text)
            if data["format"] != _FORMAT:
                raise ValueError(f"unknown format {data['format']!r}")
            likely = data.get("log_probability")  # not in the plans of earlier versions
            if likely is None and data.get("probability") is not None:
                likely = -math.inf
            plan = cls(
                data["task"],
                Node.from_flat(data["tree"]),
                order=data["order"],
                usage=Usage(**data["usage"]),
                complete=data["complete"],
                log_probability=likely,
            )
            plan._timed = bool(data.get("timed"))
            return plan
        except (KeyError, TypeError, IndexError) as error:
            raise ValueError(f"this is no plan: {error!r}") from error

    @property
    def picture(self) -> Picture:
        """The flow of data through the plan's steps, or a chain of them."""
        from formal_llm.planning.plans.drawing import plan_picture

        return plan_picture(self)

    def to_networkx(self) -> networkx.DiGraph:
        """Return the nested calls as a graph; the derivation tree where the plan is no nesting of calls.

        Nodes are numbers, counted from 0 in the order of the word (in a tree: from the root on), with ``name``,
        ``label`` and ``kind``: ``tool`` or ``input``; in a tree ``nonterminal``, ``terminal`` or ``open``. Edges lead
        from an argument to its tool, in a tree from a node to its children; ``position`` counts arguments and children
        from 0.
        """
        from formal_llm.planning.plans.drawing import plan_graph

        return plan_graph(self)

    def over(self, rules: Source) -> Overlay:
        """Draw the plan over the rules that it follows: a picture of the rules with the parts that it uses marked.

        Args:
            rules: a grammar, flowchart, behaviour or automaton; see
                :class:`~formal_llm.planning.plans.overlay.Overlay`.

        Raises:
            AutomatonError: it is not a plan of these rules.
        """
        from formal_llm.planning.plans.overlay import Overlay

        return Overlay(self.word, rules)

    def __rich__(self) -> RenderableType:
        from formal_llm.planning.plans.drawing import plan_rich

        return plan_rich(self)
