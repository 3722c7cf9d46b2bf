"""Random grammars, limits and automata for hypothesis."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Limits, Production, SumLimit, Symbol, selection
from formal_llm.automata.models.repetition import Repetition, is_sugar, parse_repetition, spell_out
from formal_llm.automata.models.symbols import find_derivable_heads


def examples(count: int) -> settings:
    """A number of examples for one test, out of the 60 of an average one; the profile in force scales it."""
    return settings(max_examples=max(5, count * settings.default.max_examples // 60))


HEADS = ("S", "A", "B", "C")
LETTERS = ("a", "b", "c")

#: Any name that the notation can write.
names = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=5).filter(
    lambda name: (
        not re.search(r'\s|[|"#(),=]|->|→|::=', name)
        and not name.startswith("%")
        and name not in {"ε", "%empty"}
        and not is_sugar(name)
        and unicodedata.is_normalized("NFC", name)
    )
)
#: Any text at all, with much of what needs care in quotes.
texts = st.one_of(st.text(max_size=8), st.text('"\\\n\r\t|#->%ε éλ漢\u2028\x85', max_size=6))
#: Whole numbers and simple fractions, as authors write them.
amounts = st.one_of(st.integers(0, 6), st.sampled_from([0.5, 1.5, 0.1, 2.25]))


@st.composite
def productions(
    draw: st.DrawFn, heads: tuple[str, ...] = HEADS, letters: tuple[str, ...] = LETTERS, *, selections: bool = True
) -> list[Production]:
    """Some productions over few symbols, so that recursion, ambiguity, ε and unit cycles come up all the time."""
    used = heads[: draw(st.integers(1, len(heads)))]
    symbols = st.sampled_from(used + letters)
    if selections:
        chosen = st.lists(st.sampled_from(letters), min_size=1, max_size=3, unique=True).map(lambda n: selection(*n))
        symbols = st.one_of(symbols, symbols, symbols, chosen)
    bodies = st.lists(symbols, max_size=3).map(tuple)
    first = Production(used[0], draw(bodies))
    more = draw(st.lists(st.builds(Production, st.sampled_from(used), bodies), max_size=7))
    return [first, *more]


def grammars(*, selections: bool = True) -> st.SearchStrategy[CFG]:
    """Random grammars without limits; symbols without a rule are terminals. They may be empty or hardly reachable."""
    return productions(selections=selections).map(CFG)


@st.composite
def limits(
    draw: st.DrawFn, terminals: tuple[str, ...], quantities: tuple[str, ...] = (), *, high: int = 3, most: int = 2
) -> Limits:
    """Limits over these terminals, lifted ones and contradictions included."""
    counts = st.integers(0, high)
    if not terminals:
        return Limits(default=draw(st.none() | st.integers(0, 2)))
    named = st.sampled_from(terminals)
    sums: list[SumLimit] = []
    for quantity in quantities:
        if draw(st.booleans()):
            upper, lower = draw(st.tuples(amounts, st.none()) | st.tuples(st.none() | amounts, amounts))
            sums.append(SumLimit(quantity, upper, lower))
    return Limits(
        at_most=draw(st.dictionaries(named, counts | st.none(), max_size=most)),
        at_least=draw(st.dictionaries(named, counts, max_size=1)),
        default=draw(st.none() | st.integers(0, 2)),
        sums=tuple(sums),
    )


@st.composite
def limited_grammars(draw: st.DrawFn, *, selections: bool = True) -> CFG:
    """Random grammars whose terminals carry numbers, with limits of all kinds."""
    plain = draw(grammars(selections=selections))
    priced = draw(st.dictionaries(st.sampled_from(LETTERS), amounts, max_size=2))
    symbols = {name: Symbol(numbers={"cost": n}) for name, n in priced.items() if name in plain.terminals}
    bounds = draw(limits(tuple(plain.terminals), ("cost",) if symbols else ()))
    order = draw(st.sampled_from(("forward", "prefix")))
    return CFG(plain.productions, plain.start, symbols, bounds, order)  # type: ignore[arg-type]


@st.composite
def tool_grammars(draw: st.DrawFn) -> CFG:
    """Grammars like those of task packs: classes of tools, each tool seldom more than once.

    Terminals of a class can often replace each other, which the lookahead makes use of.
    """
    letters = ("a", "b", "c", "d", "e")
    classes = {
        head: draw(st.lists(st.sampled_from(letters), min_size=1, max_size=4, unique=True)) for head in ("T", "U")
    }
    made = draw(productions(("S", "A"), ("T", "U", "T", "U", *letters[:2]), selections=False))
    made += [Production(head, (name,)) for head, group in classes.items() for name in group]
    plain = CFG(made)
    symbols = {name: Symbol(numbers={"cost": 1}) for name in draw(st.sets(st.sampled_from(letters), max_size=3))}
    symbols = {name: symbol for name, symbol in symbols.items() if name in plain.terminals}
    bounds = Limits(
        at_most=draw(st.dictionaries(st.sampled_from(tuple(plain.terminals)), st.integers(0, 2), max_size=2)),
        at_least=draw(st.dictionaries(st.sampled_from(tuple(plain.terminals)), st.integers(1, 2), max_size=1)),
        default=1,
        sums=(SumLimit("cost", draw(st.integers(0, 2))),) if symbols else (),
    )
    order = draw(st.sampled_from(("forward", "prefix")))
    return CFG(plain.productions, plain.start, symbols, bounds, order)  # type: ignore[arg-type]


@st.composite
def written_grammars(draw: st.DrawFn) -> CFG:
    """Random grammars with all that the notation can say: any names, labels, descriptions, texts, numbers, limits."""
    pool = draw(st.lists(names, min_size=3, max_size=6, unique=True))
    cut = draw(st.integers(1, len(pool) - 1))
    heads, letters = tuple(pool[:cut]), tuple(pool[cut:])
    made = draw(productions(heads, letters))
    made = [Production(p.head, p.body, draw(st.none() | texts)) for p in made]
    # A rule that ends for every head, so that most of these grammars have a word.
    made += [Production(head, (draw(st.sampled_from(letters)),)) for head in draw(st.permutations(heads))]
    plain = CFG(made, draw(st.sampled_from(heads)))
    symbols: dict[str, Symbol] = {}
    quantities: set[str] = set()
    for name in draw(st.lists(st.sampled_from([*plain.nonterminals, *plain.terminals]), max_size=4, unique=True)):
        numbers: dict[str, Any] = {}
        if name in plain.terminals:
            numbers = draw(st.dictionaries(st.sampled_from(["cost", "time_h", "数"]), amounts, max_size=2))
        symbols[name] = Symbol(draw(texts), draw(texts), numbers)
        quantities |= set(numbers)
    bounds = draw(limits(tuple(plain.terminals), tuple(sorted(quantities))))
    order = draw(st.sampled_from(("forward", "prefix")))
    return CFG(plain.productions, plain.start, symbols, bounds, order)  # type: ignore[arg-type]


#: Texts of steps and labels that look like the words around them, and like each other.
told = st.sampled_from(
    ["Wash", "Wash: a", "wash on b", "Use a", "Cut, a", "a", "a and b", "the result of step 1", "1. Mix", "2: b", "Go."]
)


bounds = st.sampled_from([(0, None), (1, None), (0, 1), (2, None), (1, 2), (0, 2), (2, 2)])


#: Groups, and the bodies of each.
GROUPS = {"(a b)": [["a", "b"]], "(a | b c)": [["a"], ["b", "c"]], "(b | c)": [["b"], ["c"]],
          "(A b? | c)": [["A", "b?"], ["c"]]}  # fmt: skip


@st.composite
def repeating(draw: st.DrawFn, made: list[Production], *, least: int = 0) -> list[Production]:
    """The productions with some symbols of their bodies repeated, and spelled out; from ``least`` on in each body."""
    new = []
    for production in made:
        body = list(production.body)
        for place in range(least, len(body)):
            if draw(st.booleans()) and not body[place].startswith("some("):
                of = draw(st.sampled_from((body[place], body[place], *GROUPS)))
                body[place] = str(Repetition(of, *draw(bounds))) if draw(st.integers(0, 4)) else of
        new.append(Production(production.head, tuple(body), production.text))
    while True:  # what may be empty is not repeated
        spelled = [*new, *spell_out([p.body for p in new], GROUPS)]
        nullable = find_derivable_heads([(p.head, p.body) for p in spelled], ())
        wrong = {p.head for p in spelled if (again := parse_repetition(p.head)) is not None and again.of in nullable}
        if not wrong:
            return spelled
        inside = [name for p in new for name in p.body]
        new = [Production(p.head, tuple(_calmed(name, wrong) for name in p.body), p.text) for p in new]
        if inside == [name for p in new for name in p.body]:  # it is inside a group
            new = [Production(p.head, tuple(n for n in p.body if n[0] != "("), p.text) for p in new]


def _calmed(name: str, wrong: set[str]) -> str:
    again = parse_repetition(name)
    return again.of if again is not None and name in wrong else name


@st.composite
def told_grammars(draw: st.DrawFn, *, tools: bool = False, repeats: bool = False) -> CFG:
    """Random grammars whose productions have texts; with ``tools`` each longer body begins with a tool."""
    made = draw(productions())
    if tools:
        tool = st.sampled_from((*LETTERS, "T"))
        made = [p if len(p.body) < 2 else Production(p.head, (draw(tool), *p.body[1:])) for p in made]
        made += [Production("T", ("a",)), Production("T", ("c",))]
    made = [Production(p.head, p.body, draw(st.none() | told)) for p in made]
    made += [Production(head, (draw(st.sampled_from(LETTERS)),)) for head in HEADS]
    if repeats:
        made = draw(repeating(made, least=1 if tools else 0))
    plain = CFG(made)
    labels = draw(st.dictionaries(st.sampled_from(LETTERS), told, max_size=2))
    return plain.with_labels({name: label for name, label in labels.items() if name in plain.terminals})


@st.composite
def automata(
    draw: st.DrawFn, *, finite: bool = False, letters: tuple[str, ...] = LETTERS, states: int = 3, size: int = 8
) -> PDA:
    """Random automata written by hand: transitions that pop nothing, several states, empty initial stacks."""
    everywhere = [f"q{number}" for number in range(draw(st.integers(1, states)))]
    stack = ("X", "Y", "Z")
    pops = st.none() if finite else st.none() | st.sampled_from(stack)
    pushes = st.just(()) if finite else st.lists(st.sampled_from(stack), max_size=2).map(tuple)
    begin = () if finite else tuple(draw(st.lists(st.sampled_from(stack), max_size=2)))
    state = st.sampled_from(everywhere)
    made = draw(
        st.lists(st.tuples(state, st.none() | st.sampled_from(letters), pops, state, pushes), min_size=1, max_size=size)
    )
    made = _usable(made, everywhere[0], begin)
    reached = {everywhere[0], *(t[3] for t in made)}
    final = draw(st.sets(st.sampled_from(sorted(reached)), min_size=1))
    return PDA(made, start=everywhere[0], accepting=final, stack=begin)


@st.composite
def direct_automata(draw: st.DrawFn) -> PDA:
    """Automata of random grammars that now and then read a leading terminal in the move that expands a nonterminal.

    So the same terminal costs one move here and two there, unlike in the automaton of a grammar.
    """
    made: list[tuple[Any, ...]] = []
    letters: dict[str, None] = {}
    for production in draw(productions(selections=False)):
        body = production.body
        if body and body[0] in LETTERS and draw(st.booleans()):
            made.append(("q", body[0], production.head, "q", body[1:]))
        else:
            made.append(("q", None, production.head, "q", body))
        letters.update(dict.fromkeys(name for name in body if name in LETTERS))
    made += [("q", name, name, "q") for name in letters]
    begin = draw(st.lists(st.sampled_from(HEADS), min_size=1, max_size=3))
    made.append(("q", None, "$", "f"))
    return PDA(_usable(made, "q", (*begin, "$")), start="q", accepting=["f"], stack=(*begin, "$"))


def _usable(transitions: list[tuple[Any, ...]], start: str, stack: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """What can never be used is an error of its own; here it is left out."""
    made = [(*t, ()) if len(t) == 4 else t for t in transitions]
    while True:
        reached = {start}
        while more := {t[3] for t in made if t[0] in reached} - reached:
            reached |= more
        pushed = {*stack, *(name for t in made for name in t[4])}
        kept = [t for t in made if t[0] in reached and (t[2] is None or t[2] in pushed)]
        if kept == made:
            return made
        made = kept


@st.composite
def limited_automata(draw: st.DrawFn, *, finite: bool = False) -> tuple[PDA, Limits]:
    """A random automaton, terminals with numbers, and limits over it."""
    pda = draw(automata(finite=True) if finite else automata() | direct_automata())
    letters = tuple(pda.terminals)
    priced = draw(st.dictionaries(st.sampled_from(letters), amounts, max_size=2)) if letters else {}
    symbols = {name: Symbol(numbers={"cost": number}) for name, number in priced.items()}
    bounds = draw(limits(letters, ("cost",) if symbols else ()))
    with_numbers = PDA(
        pda.transitions,
        start=pda.start_state,
        accepting=pda.accepting_states,
        stack=pda.start_stack,
        symbols=symbols,
    )
    return with_numbers, bounds


#: Choices for a random walk: each picks one of the moves there are.
choices = st.lists(st.integers(0, 5), max_size=8)


def walk(automaton: Any, picks: list[int]) -> tuple[Any, tuple[str, ...]]:
    """The configuration that some moves lead to, and the word read on the way."""
    now, word = automaton.start(), []
    for pick in picks:
        moves = automaton.moves(now)
        if not moves:
            break
        move = moves[pick % len(moves)]
        if move.read is not None:
            word.append(move.read)
        now = automaton.step(now, move)
    return now, tuple(word)


@st.composite
def told_automata(draw: st.DrawFn) -> PDA:
    """Random automata whose moves have texts that look like each other, or labels, or are decisions and no steps."""
    plain = draw(automata(finite=True) | automata())
    ways = st.sampled_from(["", "", "decides", *("10:00: Wash", "11:00: Wash", "Wash", "Use a", "b", "Go.")])
    made = []
    for move in plain.transitions:
        way = draw(ways)
        deciding = way == "decides"
        text = draw(st.sampled_from(["", "yes", "no"])) if deciding else way
        made.append(replace(move, text=text, decision=deciding, question="Wet?" if deciding else ""))
    labels = draw(st.dictionaries(st.sampled_from(LETTERS), st.sampled_from(["Wash", "b", "Go"]), max_size=2))
    symbols = {name: Symbol(label) for name, label in labels.items() if name in plain.terminals}
    return PDA(
        made, start=plain.start_state, accepting=plain.accepting_states, stack=plain.start_stack, symbols=symbols
    )
