"""The words of a language as texts: the labels of their terminals, parted by separators.

With labels ``wash``, ``wash hot`` and ``dry`` and the separator ``", "`` the word (wash_hot, dry) is
``wash hot, dry``. Which texts those are is followed byte by byte. Several readings may be open at a time: after
``wash`` a label may be finished, or continue as ``wash hot``; a label may contain the separator, and two terminals may
have the same label. So the position is a set of readings, as in the subset construction: where the word has led,
and how much of what comes next is written (a node of the prefix tree of these texts).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property

from formal_llm.automata import Limits, Lookahead, Source, Word
from formal_llm.automata.languages.fronts import ConfigurationSet, ConfigurationSets
from formal_llm.automata.models.automaton import HasTerminals
from formal_llm.errors import AutomatonError, NoValidPlan, Undecided
from formal_llm.planning.plans.vocabulary import Vocabulary

#: How many states are known at a time.
_CACHE = 50_000
#: In a prefix tree: the text ends here with no terminal.
_END = None


class _PrefixNode:
    """A node of a prefix tree of texts: its continuations, and the terminals whose text ends at it, or after it."""

    __slots__ = ("after", "ends", "next")

    def __init__(self) -> None:
        self.next: dict[int, _PrefixNode] = {}
        self.ends: list[str | None] = []
        self.after = 0

    def add_text(self, text: bytes, name: str | None, bit: int) -> None:
        node = self
        node.after |= bit
        for byte in text:
            node = node.next.setdefault(byte, _PrefixNode())
            node.after |= bit
        node.ends.append(name)

    def iter_texts(self) -> Iterator[tuple[bytes, str | None]]:
        """What can be written from here, each with the terminal whose text it ends; it need not be allowed."""
        todo: list[tuple[bytes, _PrefixNode]] = [(b"", self)]
        while todo:
            text, node = todo.pop()
            yield from ((text, name) for name in node.ends)
            todo += [(text + bytes((byte,)), after) for byte, after in node.next.items()]


#: A reading: where the word has led, and the node reached in what may be written there; None: the text has ended.
_Reading = tuple[ConfigurationSet, _PrefixNode] | None


class TextState:
    """Where one is in a text: after all texts that lead here, the same may come.

    What follows the text of a terminal is looked at only where it is asked for: many labels begin as another one ends.
    """

    def __init__(self, texts: PlanTexts, written: frozenset[_Reading]) -> None:
        self._texts = texts
        self._written = written
        self._after: dict[int, TextState] = {}

    @cached_property
    def readings(self) -> frozenset[_Reading]:
        """How what is written may be meant."""
        return self._texts.close_readings(self._written)

    @property
    def may_stop(self) -> bool:
        """Whether the text is whole as it is."""
        return None in self.readings

    @property
    def complete(self) -> bool:
        """Whether nothing is left out because a budget of states ran out."""
        return all(self._texts.find_next_terminals(reading[0])[1] for reading in self.readings if reading is not None)

    @property
    def possible_bytes(self) -> Collection[int]:
        """The bytes that continue some text, and some of those that may follow a terminal elsewhere."""
        nodes = [reading[1] for reading in self._written if reading is not None]
        found = {byte for node in nodes for byte in node.next}
        return found | self._texts.following_bytes if any(node.ends for node in nodes) else found

    def follow_byte(self, byte: int, *, keep: bool = True) -> TextState | None:
        """Where a byte leads; None where it continues no text. With ``keep``, that is kept."""
        found = self._after.get(byte)
        if found is None:
            readings = self.readings if byte in self._texts.following_bytes else self._written
            found = self._texts.advance_readings(readings, byte, keep)
            if found is not None and keep:
                self._after[byte] = found
        return found

    def follow_text(self, text: Iterable[int]) -> TextState | None:
        """Where some bytes lead; None where they continue no text."""
        state: TextState | None = self
        for byte in text:
            if state is None:
                return None
            state = state.follow_byte(byte)
        return state


class PlanTexts:
    """What may be written where a plan is written as text: the texts of the words of a language.

    Args:
        source: rules, or an automaton of one's own; with their limits.
        limits: more limits.
        separator: what comes between the texts of two terminals.
        begin, end: what comes before the first and after the last one, also in the text of a plan without a step.
        texts: the texts of terminals that are not written as their labels.
        max_states: the budget of states of the lookahead.

    Raises:
        NoValidPlan: there is no word.
        Undecided: whether there is one was not found out within the budget.
        AutomatonError: a terminal and the separator have no text; a text for a terminal that there is not.
    """

    def __init__(
        self,
        source: Source,
        limits: Limits | None = None,
        *,
        separator: str = "\n",
        begin: str = "",
        end: str = "",
        texts: Mapping[str, str] | None = None,
        max_states: int = 20_000,
    ) -> None:
        self.lookahead = Lookahead(source, limits, max_states=max_states)
        automaton = self.lookahead.automaton
        if not isinstance(automaton, HasTerminals):
            raise AutomatonError("plans are written with the texts of terminals, which this automaton does not have")
        self.separator, self.begin, self.end = separator, begin, end
        self._names = Vocabulary(automaton)
        self._given = dict(texts or {})
        if strange := [name for name in self._given if name not in automaton.terminals]:
            raise AutomatonError(f"a text is given for what is no terminal: {', '.join(strange)}")
        front = ConfigurationSets(self.lookahead).start
        if front.is_viable is False:
            raise NoValidPlan("no word keeps the rules and the limits")
        if front.is_viable is None:
            raise Undecided("whether there is any plan was not found out within the budget of states; raise max_states")
        #: The bytes that may follow the text of a terminal, here or elsewhere.
        between = [separator] if separator else map(self.get_terminal_text, automaton.terminals)
        self.following_bytes = frozenset(text.encode()[0] for text in (end, *between) if text)
        self._states: dict[frozenset[_Reading], TextState] = {}
        self._following: dict[ConfigurationSet, tuple[Word, bool, int]] = {}
        self._bits = {name: 1 << place for place, name in enumerate((_END, *automaton.terminals))}
        self._later = self._make_prefix_tree(separator, end)
        self._first = front, self._make_prefix_tree(begin, begin + end)
        self.start = self._get_state(frozenset((self._first,)))

    def get_terminal_text(self, name: str) -> str:
        """How a terminal is written."""
        if name in self._given:
            return self._given[name]
        return self._names.label(name)

    def write_word(self, word: Word) -> str:
        """How a word is written."""
        return self.begin + self.separator.join(map(self.get_terminal_text, word)) + self.end

    def list_characters(self) -> str:
        """All the characters that texts are written with."""
        written = [self.begin, self.end, self.separator, *map(self.get_terminal_text, self._names.terminals)]
        return "".join(dict.fromkeys("".join(written)))

    def read_word(self, text: str | bytes) -> Word | None:
        """A word that is written so, within the limits; None where there is none.

        Where several words have the same text, it is one of them.
        """
        words: dict[_Reading, Word] = self._expand_readings({self._first: ()})
        for byte in text.encode() if isinstance(text, str) else text:
            after: dict[_Reading, Word] = {}
            for reading, word in words.items():
                if (moved := self._advance_reading(reading, byte)) is not None:
                    after.setdefault(moved, word)
            words = self._expand_readings(after)
        return words.get(None)

    def finish_text(self, state: TextState) -> bytes:
        """What makes a whole text of what is written, with the fewest terminals.

        Raises:
            Undecided: it was not found within the budget of states.
        """
        ways: list[tuple[int, bytes]] = []
        for reading in state.readings:
            if reading is None:
                return b""
            front, node = reading
            for rest, name in node.iter_texts():
                if not self._allows_terminals(front, self._bits[name]):
                    continue
                if name is _END:
                    ways.append((0, rest))
                else:
                    after = self._find_shortest_word(front.after_terminal(name))
                    more = "".join(self.separator + self.get_terminal_text(one) for one in after) + self.end
                    ways.append((1 + len(after), rest + more.encode()))
        return min(ways)[1]

    def _find_shortest_word(self, front: ConfigurationSet) -> Word:
        """The fewest terminals after a front."""
        word = []
        while not front.may_stop:
            lengths = {name: front.after_terminal(name).shortest_length for name in self.find_next_terminals(front)[0]}
            known = {name: length for name, length in lengths.items() if length is not None}
            if not known:
                raise Undecided("the shortest way to the end was not found within the budget of states")
            name = min(known, key=known.__getitem__)
            word.append(name)
            front = front.after_terminal(name)
        return tuple(word)

    # -- readings -----------------------------------------------------------------------------------------------

    def _allows_terminals(self, front: ConfigurationSet, bits: int) -> bool:
        """Whether some of these terminals may come at a front, or the end, where its bit is among them."""
        return bool(bits & 1 and front.may_stop) or bool(bits >> 1 and bits & self.find_next_terminals(front)[2])

    def _advance_reading(self, reading: _Reading, byte: int) -> _Reading:
        """Where a byte leads that continues a reading; None where it does not."""
        node = None if reading is None else reading[1].next.get(byte)
        if reading is None or node is None or not self._allows_terminals(reading[0], node.after):
            return None
        return reading[0], node

    def advance_readings(self, readings: Iterable[_Reading], byte: int, keep: bool) -> TextState | None:
        """Where a byte leads; None where it continues none of the readings."""
        moved = frozenset(found for reading in readings if (found := self._advance_reading(reading, byte)) is not None)
        return None if not moved else self._get_state(moved) if keep else TextState(self, moved)

    def _get_state(self, written: frozenset[_Reading]) -> TextState:
        state = self._states.get(written)
        if state is None:
            if len(self._states) > _CACHE:
                self._states.clear()
            state = self._states[written] = TextState(self, written)
        return state

    def close_readings(self, readings: Iterable[_Reading]) -> frozenset[_Reading]:
        """The readings, with those in which what is written is followed by something new."""
        return frozenset(self._expand_readings(dict.fromkeys(readings, ())))

    def _expand_readings(self, words: Mapping[_Reading, Word]) -> dict[_Reading, Word]:
        """As :meth:`close_readings`, each with a word that leads there."""
        found = dict(words)
        todo = list(found)
        for reading in todo:  # it grows
            if reading is None:
                continue
            front, node = reading
            for name in node.ends:
                if not self._allows_terminals(front, self._bits[name]):
                    continue
                after: _Reading = None
                word = found[reading]
                if name is not _END:
                    there, word = front.after_terminal(name), (*word, name)
                    after = there, self._later
                if after not in found:
                    found[after] = word
                    todo.append(after)
        return found

    def find_next_terminals(self, front: ConfigurationSet) -> tuple[Word, bool, int]:
        """(the terminals after which a word can be completed for certain, whether there are no more, their bits)."""
        found = self._following.get(front)
        if found is None:
            if len(self._following) > _CACHE:
                self._following.clear()
            judged = {name: front.can_continue_with(name) for name in front.next_terminals}
            names = tuple(name for name, viable in judged.items() if viable)
            found = names, None not in judged.values(), sum(map(self._bits.__getitem__, names))
            self._following[front] = found
        return found

    def _make_prefix_tree(self, before: str, end: str) -> _PrefixNode:
        """The prefix tree of the texts of all terminals, and of the end."""
        tree = _PrefixNode()
        for name, bit in self._bits.items():
            if name is not _END and not (self.separator or self.get_terminal_text(name)):
                raise AutomatonError(f"the terminal {name} has no text, and there is no separator; give it a label")
            text = end if name is _END else before + self.get_terminal_text(name)
            tree.add_text(text.encode(), name, bit)
        return tree
