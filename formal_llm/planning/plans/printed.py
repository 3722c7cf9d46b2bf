"""What the steps of rules may be called, and how the plans of a grammar print them.

Of an automaton each move prints a step or none. Of a grammar a plan prints its steps by its tree
(:func:`~formal_llm.planning.plans.steps.read_steps`); here is an automaton with the same words whose moves print just
this, so that a list of steps stands for the words of its runs that print it.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, combinations_with_replacement
from typing import Any, NamedTuple

from formal_llm.automata import CFG, PDA, Production, Transition, Word
from formal_llm.automata.models.repetition import parse_repetition
from formal_llm.automata.models.symbols import selection_members
from formal_llm.errors import NotationError, Undecided
from formal_llm.planning.plans.steps import one_line
from formal_llm.planning.plans.tree import takes_several
from formal_llm.planning.plans.vocabulary import Vocabulary

#: How many ways to read one line are looked at, and how many moves the steps of a grammar may have.
WAYS, _MOVES = 1_000, 50_000


class StepLine(NamedTuple):
    """A line with a step: its place in the text, from 1; the whole line; the step; the number before it, if any."""

    place: int
    source: str
    text: str
    number: int | None = None


def fold_text(text: str) -> str:
    """A text as it is compared: blanks and capitals do not count."""
    return " ".join(text.casefold().split())


def write_step(transition: Transition, label: str) -> str | None:
    """The step that a transition prints; None for none, as where it comes from a production."""
    if transition.decision or transition.production is not None or not (transition.read or transition.text):
        return None
    return transition.text or f"Use {label}"


def _choose_folding(owned: Iterable[tuple[str, str]]) -> Callable[[str], str]:
    """How texts are compared: capitals do not count, unless by them alone something can be told from something else."""
    found: dict[str, dict[str, str]] = {}
    for text, owner in owned:
        found.setdefault(fold_text(text), {})[" ".join(text.split())] = owner
    alike = all(len(forms) == 1 or len(set(forms.values())) == 1 for forms in found.values())
    return fold_text if alike else lambda text: " ".join(text.split())


class StepTexts:
    """What the steps of rules may be called: a text of the rules, or the name or label of a terminal.

    Args:
        pda: the automaton, or None where only the vocabulary is known.
        vocabulary: the names and labels; that of the automaton where left out.

    Attributes:
        printed: the steps as they are printed, with their transitions.
        silent: the transitions that print no step.
        fold: a text as it is compared.
    """

    def __init__(self, pda: PDA | None, vocabulary: Vocabulary | None = None) -> None:
        vocabulary = vocabulary or Vocabulary(pda)  # type: ignore[arg-type]
        moves = pda.transitions if pda is not None else ()
        names = dict.fromkeys(vocabulary.terminals) or dict.fromkeys(m.read for m in moves if m.read is not None)
        forms = {name: dict.fromkeys((vocabulary.label(name), name, name.replace("_", " "))) for name in names}
        owned = [(form, name) for name in forms for one in forms[name] for form in (one, f"Use {one}")]
        self.fold = _choose_folding([*owned, *((move.text, move.text) for move in moves)])
        self.printed: dict[str, set[Transition]] = {}
        self._near: dict[str, set[Transition]] = {}
        self.reading: dict[str, set[Transition]] = {}
        self._labels: dict[str, list[str]] = {}
        self._names: dict[str, list[str]] = {}
        self.shown: dict[str, None] = {}
        self.silent: set[Transition] = set()
        for move in moves:
            self._add_move(move, vocabulary.label(move.read) if move.read is not None else "")
        for name, (label, *others) in forms.items():
            self.shown.update(dict.fromkeys((name, label)))
            self._labels.setdefault(self.fold(label), []).append(name)
            for form in dict.fromkeys(map(self.fold, (*others, name))):
                self._names.setdefault(form, []).append(name)

    def _add_move(self, move: Transition, label: str) -> None:
        if move.read is not None and move.production is None:
            self.reading.setdefault(move.read, set()).add(move)
        text = write_step(move, label)
        if text is not None:
            self.printed.setdefault(one_line(text), set()).add(move)
            self._near.setdefault(self.fold(text), set()).add(move)
            return
        self.silent.add(move)
        if move.decision:
            answer, bare = move.text or label, move.question.rstrip("?: ")
            for form in (f"{move.question} {answer}", f"{bare}: {answer}", f"{bare} {answer}", answer):
                self._near.setdefault(self.fold(form), set()).add(move)

    def find_terminals(self, text: str, *, printed: bool = False) -> tuple[str, ...]:
        """The terminals that a text names, with or without "Use" before it; none where it names none.

        Args:
            text: what is looked for.
            printed: whether labels go before names, as after "Use".

        Raises:
            NotationError: it is the label of one terminal and the name of another.
        """
        whole = self.fold(text)
        for form in dict.fromkeys((whole[4:] if whole[:4].casefold() == "use " else whole, whole)):
            labelled, named = self._labels.get(form, []), self._names.get(form, [])
            if labelled and named and not set(named) <= set(labelled) and form == whole and not printed:
                raise NotationError(
                    f"{text!r} is the label of {' or '.join(labelled)} and the name of {' or '.join(named)}; "
                    "write the plan as JSON, a list of names"
                )
            if labelled or named:
                return tuple(labelled or named)
        return ()

    def find_moves(self, text: str) -> Collection[Transition]:
        """The transitions that a line may describe."""
        found = self.printed.get(text) or self._near.get(self.fold(text))
        return found or {one for name in self.find_terminals(text) for one in self.reading.get(name, ())}


#: The tools that a line may be, and what they are applied to: the names that an input may be, or numbers of steps.
Flow = tuple[Word, tuple[Word | int, ...]]
#: A stack symbol of the automaton of told steps; a move of it: what it prints, what it pushes, the line that it is of.
_Key = tuple[Any, ...]
_Told = tuple[str, tuple[_Key, ...], int | None]
#: Marks a move as one that prints nothing, as moves of productions do.
_MARK = Production("", ())


class GrammarSteps:
    """The steps or calls of plans of a grammar as an automaton, whose moves print them, as plans do.

    Its stack holds what is still to be printed: a symbol of the grammar, and how it is written. Terminals that a text
    speaks for, and those that a tool is applied to, print nothing; :func:`read_steps` says which they are.
    The stack symbols are, by the first part of their keys:

    - ``flat``: a list of steps, in which each terminal without a text is one. ``free``: steps of nested calls, where
      the inputs are in no line. ``root``: the same as a whole plan.
    - ``inputs``: what a tool is applied to: inputs that may be these names, and results of steps by number. Without
      lines these are calls; the tool alone of call ``n`` is ``-n``.
    - ``said``: a terminal in no line. ``chain``: any terminal that a symbol only renames. ``bare``: what is not that;
      ``several`` of a selection. ``either``: a chain or bare.
    - ``text``: nothing; it tells moves apart that differ in their texts alone.

    Args:
        cfg: the grammar.
        begin: the keys of what a plan may be.
        lines: the steps that somebody wrote.
        flows: for each line, of which tools and inputs it may be; or the calls that somebody wrote.
        texts: the names of terminals.

    Raises:
        Undecided: there are too many ways to read them.

    Attributes:
        pda: the automaton; for each choice that a text tells it has the moves of these lines, and one for any.
        silent: its moves that print nothing.
        matches: the moves that each line may be.
        shown: the moves by what they print, with "…" for what may be chosen.
    """

    def __init__(
        self, cfg: CFG, begin: Sequence[_Key], lines: Sequence[StepLine] = (), flows: Sequence[Sequence[Flow]] = (),
        texts: StepTexts | None = None,
    ) -> None:  # fmt: skip
        self._cfg, self._lines, self._flows, self._called = cfg, lines, flows, not lines
        self._fold = texts.fold if texts is not None else fold_text
        self._forms = [self._fold(line.text) for line in lines]
        self._labels = {
            name: {self._fold(one) for one in (cfg.label(name), name, name.replace("_", " "))} for name in cfg.terminals
        }
        told = [self._fold(one_line(p.text)) for p in cfg.productions if p.text]
        named: list[Word] = []
        for line, form in zip(lines, self._forms, strict=True):
            names = texts.find_terminals(line.text, printed=True) if texts is not None else ()
            if any(list(_strip_form(form, text, ": ")) for text in told):  # a text goes first
                names = tuple(name for name in names if form == self._fold(f"Use {cfg.label(name)}"))
            named.append(names)
        self.matches: list[set[Transition]] = [set() for _ in lines]
        self.shown: dict[str, set[Transition]] = {}
        self.silent: set[Transition] = set()
        moves = [Transition("start", None, "$", "loop", (repr(key), "$")) for key in begin]
        moves.append(Transition("loop", None, "$", "end"))
        self.silent.update(moves)
        seen = dict.fromkeys(begin)
        todo = [*begin]
        for key in todo:  # it grows
            if key[0] == "said":
                moves.append(Transition("loop", key[1], repr(key), "loop", (), "", _MARK))
                self.silent.add(moves[-1])
                continue
            if key[0] == "flat" and key[1] in cfg.terminals:
                moves.append(Transition("loop", key[1], repr(key), "loop"))
                self.shown.setdefault(f"Use {cfg.label(key[1])}", set()).add(moves[-1])
                for match, names in zip(self.matches, named, strict=True):
                    match.update([moves[-1]] if key[1] in names else [])
                continue
            for text, below, at in self._expand_key(key):
                push = (("text", text), *below) if text else below
                move = Transition("loop", None, repr(key), "loop", tuple(map(repr, push)), text)
                moves.append(move)
                if len(moves) > _MOVES:
                    raise Undecided("there are too many ways to read this plan; write its word")
                known = self.shown.setdefault(text, set()) if text else self.silent
                (known if at is None else self.matches[at]).add(move)
                todo += (one for one in dict.fromkeys(push) if one not in seen)
                seen.update(dict.fromkeys(push))
        self.pda = PDA(
            dict.fromkeys(moves), start="start", accepting=["end"], stack=("$",), symbols=cfg.symbols, order=cfg.order,
            check=False,
        )  # fmt: skip

    def _expand_key(self, key: _Key) -> Iterator[_Told]:
        kind, symbol = key[0], key[1]
        if kind == "text":
            yield "", (), None
        elif symbol in self._cfg.terminals:
            if kind != "inputs" or any(symbol in names for names in map(self._list_names, key[2]) if len(key[2]) == 1):
                yield "", (("said", symbol),), None
        elif kind == "chain":
            yield from (("", (("said", name),), None) for name in self._list_heads(symbol))
        elif kind == "either":
            yield from (("", ((one, symbol, *key[2:]),), None) for one in ("chain", "bare"))
        else:
            for production in self._cfg.by_head[symbol]:
                yield from self._expand_production(key, production)

    def _expand_production(self, key: _Key, production: Production) -> Iterator[_Told]:
        kind, body = key[0], production.body
        mode = key[2] if kind in ("bare", "several") else "flat" if kind == "flat" else "free"
        alone = body[0] if len(body) == 1 and not production.text else ""
        if kind == "root" and parse_repetition(production.head) is not None:
            return  # no nesting
        if kind == "root" and alone in self._cfg.nonterminals and not selection_members(alone):
            yield "", (("root", alone),), None
        elif kind == "several":
            if len(body) == 2:
                yield "", ((mode, body[0]), (mode, body[1].replace("any(", "some(", 1))), None
            elif alone not in self._cfg.terminals:
                yield "", (("several", alone, mode),), None
        elif kind == "bare" and alone and parse_repetition(alone) is None:
            if alone not in self._cfg.terminals:
                yield "", (("several" if selection_members(alone) else "bare", alone, mode),), None
        elif (production.text and not self._called) or (
            mode == "free" and len(body) > 1 and not takes_several(production.head)
        ):
            if kind != "inputs":
                yield from self._print_step(production, mode, None)
            elif len(key[2]) == 1 and isinstance(key[2][0], int) and 0 < abs(key[2][0]) <= len(self._flows):
                yield from self._print_step(production, mode, key[2][0])
        elif kind == "inputs":
            yield from (("", below, None) for below in _split_among(body, key[2]))
        else:
            yield "", tuple((mode, name) for name in body), None

    def _list_names(self, item: Word | int) -> Word:
        """The terminals that an input may be; a call without inputs is one, too."""
        if not isinstance(item, int):
            return item
        return (
            self._flows[abs(item) - 1][0][0] if self._called and (item < 0 or not self._flows[item - 1][0][1]) else ()
        )

    def _print_step(self, production: Production, mode: str, number: int | None) -> Iterator[_Told]:
        """The moves of a production that is a step: on each line that it may be, or on that of a number; and on any."""
        body, indices = production.body, range(len(self._lines)) if number is None else [abs(number) - 1]
        if self._called:
            if number is not None and parse_repetition(body[0]) is None:
                inputs = self._flows[number - 1][0][1] if number > 0 else ()
                called = ("inputs", body[0], (-abs(number),))
                yield from (("", (called, *below), None) for below in _split_among(body[1:], inputs))
            return
        if production.text:
            text = one_line(production.text)
            for index in indices:
                for rest in _strip_form(self._forms[index], self._fold(text), ": "):
                    yield from ((self._lines[index].text, below, index) for below in self._choose(body, rest, mode))
            for below in self._choose(body, None, mode) if number is None else ():
                chosen = any(kind in ("chain", "either") or selection_members(name) for kind, name, *_ in below)
                yield f"{text}: …" if chosen else text, below, None
            return
        for tool in self._list_heads(body[0]):
            for index in indices:
                ways = (inputs for tools, inputs in self._flows[index] if tool in tools)
                for below in chain.from_iterable(_split_among(body[1:], inputs) for inputs in ways):
                    yield self._lines[index].text, (("said", tool), *below), index
            if number is None:
                yield (
                    f"Use {self._cfg.label(tool)} on …",
                    (("said", tool), *(("free", name) for name in body[1:])),
                    None,
                )

    def _choose(self, body: Word, rest: str | None, mode: str, place: int = 0) -> Iterator[tuple[_Key, ...]]:
        """What a body becomes where a text tells that all of ``rest`` was chosen in it; None for anything."""
        if place == len(body):
            yield from [] if rest else [()]
            return
        symbol, alone = body[place], mode == "free" and place == 0 and len(body) > 1  # alone: it must be a tool
        among, heads = selection_members(symbol), self._list_heads(symbol)
        ways: list[tuple[tuple[_Key, ...], str | None]] = []
        if symbol in self._cfg.terminals:
            ways = [((("said", symbol),), rest)]
        elif parse_repetition(symbol) is not None or (mode == "flat" and place and not among):
            ways = [] if alone else [(((mode, symbol),), rest)]
        elif rest is None and (alone or among):
            ways = [((("chain" if alone else "free", symbol),), None)]
        elif rest is None:
            ways = [((("either" if heads else "bare", symbol, mode),), None)]
        elif among:
            ways = [one for one in self._take_labels(among, rest) if not alone or len(one[0]) == 1]
        else:
            ways = [((("said", name),), left) for name in heads for left in self._take_label(name, rest)]
            ways += [] if alone else [((("bare", symbol, mode),), rest)]
        for taken, left in ways:
            yield from (taken + below for below in self._choose(body, left, mode, place + 1))

    def _take_label(self, name: str, rest: str) -> Iterator[str]:
        """What is left of a list of labels after that of a terminal."""
        return chain.from_iterable(_strip_form(rest, form, ", ") for form in self._labels[name])

    def _take_labels(self, names: Word, rest: str) -> list[tuple[tuple[_Key, ...], str | None]]:
        """The first of the labels that ``rest`` lists, as some of these terminals, in their order; and what is left."""
        found: dict[tuple[tuple[_Key, ...], str], None] = {((), rest): None}
        for name in names:
            for taken, left in list(found):
                found.update({((*taken, ("said", name)), after): None for after in self._take_label(name, left)})
            if len(found) > WAYS:
                raise Undecided(f"there are too many ways to read {rest!r}")
        return [one for one in found if one[0]]

    def _list_heads(self, symbol: str) -> list[str]:
        """The terminals that a symbol may be, or only renames."""
        if symbol in self._cfg.terminals:
            return [symbol]
        found: dict[str, None] = {}
        renamed = [symbol] if parse_repetition(symbol) is None else []
        for name in renamed:  # it grows
            if among := selection_members(name):
                found.update(dict.fromkeys(among))
                continue
            for one in (p.body[0] for p in self._cfg.by_head[name] if not p.text and len(p.body) == 1):
                if one in self._cfg.terminals:
                    found[one] = None
                elif one not in renamed and parse_repetition(one) is None:
                    renamed.append(one)
        return list(found)


def _strip_form(text: str, form: str, separator: str) -> Iterator[str]:
    """The rest of a text after a form, where the text ends or a separator follows."""
    if text == form:
        yield ""
    elif form and text.startswith(form + separator) and len(text) > len(form + separator):
        yield text[len(form + separator) :]


def _split_among(body: Word, items: tuple[Word | int, ...]) -> Iterator[tuple[_Key, ...]]:
    """The ways to part what a tool is applied to among the symbols of a body."""
    for cuts in combinations_with_replacement(range(len(items) + 1), len(body) - 1) if body else ():
        edges = (0, *cuts, len(items))
        yield tuple(("inputs", name, items[a:b]) for name, a, b in zip(body, edges, edges[1:], strict=False))
    if not body and not items:
        yield ()


def list_reads(move: Transition) -> Word:
    """The terminals of a step: that which its move reads, and those that its text speaks for."""
    said = (name for name in move.push if name.startswith("('said', "))
    return (move.read,) if move.read is not None else tuple(literal_eval(name)[1] for name in said)
