"""Whether a word that nests can be completed while other rules are kept, however deep its stack is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast

from formal_llm.automata.models.automaton import Configuration, Word
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.tabulation import Tabulation
from formal_llm.automata.models.transition import Transition
from formal_llm.control.component import Component, MachineMove, Vector, apply_moves
from formal_llm.control.machines import ConfigurationMachine, measure_effort
from formal_llm.errors import Undecided

if TYPE_CHECKING:
    from formal_llm.automata.languages.prefixes import ConfigurationSet

#: The maximum number of steps to tabulate for one query, and of cached vectors of states.
_TABULATED, _KEPT = 4_000, 100_000
#: The terminal and the state that end a word.
_END = "end of the word"


class _Reading(NamedTuple):
    """A position of the table before a word that was read: what is left of it, and where the other rules are then."""

    word: Word
    vector: Vector


class WordTable:
    """Whether the rules without keys can be kept, of which one is about words; exact, and shared by all queries.

    The automaton of the words is tabulated with the states of the other rules as positions. Rules with keys are
    ignored, and any result may come: what is impossible is so without.

    Args:
        component: the rules.
        place: the index of the rule about words.
        doubtful: whether events count of which it is unknown if they exist.
    """

    def __init__(self, component: Component, place: int, *, doubtful: bool) -> None:
        self._machines, self._place = component.plain_machines, place
        machine = cast("ConfigurationMachine", self._machines[place])
        pda = cast("PDA", machine.pda)
        self._pda_start = pda.start()
        self._moves: dict[str, list[MachineMove]] = {}
        #: The terminal that a step reads, by the name of the step.
        self._reads: dict[str, str | None] = {}
        reading: dict[str | None, list[str]] = {}
        for number, step in enumerate(component.steps):
            if doubtful or not step.symbol.doubtful:
                read = next((machine.select_letter(move.letters) for move in step.plain if move.place == place), None)
                reading.setdefault(read, []).append(f"{number}")
                self._reads[f"{number}"] = read
                self._moves[f"{number}"] = [move for move in step.plain if move.place != place]
        self._unread = frozenset(reading.get(None, ()))
        read_by = [(one, reading.get(one.read, ()) if one.read else [None]) for one in pda.transitions]
        transitions = [replace(one, read=name) for one, names in read_by for name in names]
        transitions += [Transition(state, name, None, state) for state in pda.states for name in self._unread]
        transitions += [Transition(state, _END, None, _END) for state in pda.accepting_states]
        self._pda = PDA(transitions, start=pda.start_state, accepting=[_END], check=False)
        self._clear()

    def _clear(self) -> None:
        self._table = Tabulation(self._pda.transitions_at, self._pda.accepting_states, self._advance)
        self._positions: list[Vector | _Reading] = []
        self._numbers: dict[Vector | _Reading, int] = {}

    def can_complete(self, plain: Vector) -> bool | None:
        """Return whether the rules can be kept from their states; None if that takes too many steps."""
        words = cast("ConfigurationSet", plain[self._place])
        if len(self._positions) > _KEPT:
            self._clear()
        self._left = _TABULATED
        here: Vector | _Reading = (*plain[: self._place], None, *plain[self._place + 1 :])
        configurations = words.configurations
        if configurations is None:  # too many: the word is read again from the start, and all that it leads to counts
            here = _Reading(words.word, here) if words.word else here
            configurations = frozenset((self._pda_start,))
        at = self._number_position(here)
        try:
            return any(self._can_end(cast("Configuration", one), at) for one in configurations)
        except Undecided:
            self._clear()  # what is half filled cannot be used
            return None

    def _can_end(self, start: Configuration, at: int) -> bool:
        reached = {(start.state, at): None}
        for symbol in (*start.stack, None):
            if any(self._table.may_accept(state, symbol, place) for state, place in reached):
                return True
            reached = {one: None for state, place in reached for one in self._table.find_exits(state, symbol, place)}
        return False

    def _number_position(self, position: Vector | _Reading) -> int:
        number = self._numbers.setdefault(position, len(self._positions))
        if number == len(self._positions):
            self._positions.append(position)
        return number

    def _advance(self, name: str, position: int) -> int | None:
        here = self._positions[position]
        if isinstance(here, _Reading):
            return self._read_again(name, here)
        self._left -= measure_effort(*here)
        if self._left < 0:
            raise Undecided("too many steps")
        if name == _END:
            pairs = zip(self._machines, here, strict=True)
            return position if all(state is None or machine.is_accepting(state) for machine, state in pairs) else None
        after = apply_moves(self._machines, here, self._moves[name])
        return None if after is None or (after == here and name in self._unread) else self._number_position(after)

    def _read_again(self, name: str, here: _Reading) -> int | None:
        """The position after a step that reads the next terminal of the word; None for any other step."""
        self._left -= 1
        if self._left < 0:
            raise Undecided("too many steps")
        if self._reads.get(name) != here.word[0]:
            return None
        rest = here.word[1:]
        return self._number_position(_Reading(rest, here.vector) if rest else here.vector)
