"""Random formulas, as plain tuples; and what they mean, said twice over."""

from automata.fa.dfa import DFA as LibraryDFA
from automata.fa.nfa import NFA
from hypothesis import strategies as st

from formal_llm.automata.models.formula import (
    ANY,
    EMPTY,
    Atom,
    always,
    and_,
    eventually,
    implies,
    next_,
    not_,
    or_,
    until,
)

BOUNDS = [(0, None), (0, 0), (0, 1), (0, 3), (1, 1), (1, 2), (2, None), (2, 2)]


def trees(letters, leaves=6):
    leaf = st.sampled_from([*letters, *letters, "any", "empty"])

    def grow(inner):
        several = st.tuples(st.sampled_from(["next", "next", "or", "and"]), inner, inner)
        three = st.tuples(st.sampled_from(["next", "or", "and"]), inner, inner, inner)
        single = st.tuples(st.sampled_from(["not", "always", "eventually"]), inner)
        implication = st.tuples(st.just("->"), inner, inner)
        repeated = st.tuples(st.sampled_from(BOUNDS).map(lambda bounds: ("until", *bounds)), inner, inner)
        return st.one_of(several, three, single, implication, repeated)

    return st.recursive(leaf, grow, max_leaves=leaves)


def made(tree, names=None):
    """The formula, by the functions that make formulas; ``names`` stand for the letters of the tree."""
    if isinstance(tree, str):
        return {"any": ANY, "empty": EMPTY}.get(tree) or Atom(name=(names or {}).get(tree, tree))
    head, *parts = tree
    parts = [made(part, names) for part in parts]
    if isinstance(head, tuple):
        return until(*parts, least=head[1], most=head[2])
    makers = {"next": next_, "or": or_, "and": and_, "not": not_, "->": implies}
    return (makers | {"always": always, "eventually": eventually})[head](*parts)


def text_of(tree):
    """The formula in its notation."""
    if isinstance(tree, str):
        return tree
    head, *parts = tree
    if isinstance(head, tuple):
        _, least, most = head
        head = "until" if (least, most) == (0, None) else f"until_{least}_{'*' if most is None else most}"
        if least == 0 and most is not None:
            head = f"until_{most}"
    return f"({head} {' '.join(map(text_of, parts))})"


def holds(tree, word):
    """The definition, by trying all ways to cut a word."""
    if isinstance(tree, str):
        return {"any": len(word) == 1, "empty": not word}.get(tree, word == (tree,))
    head, *parts = tree
    cuts = range(len(word) + 1)
    if isinstance(head, tuple):
        _, least, most = head
        body, end = parts
        # Empty repetitions fill up what is missing; they are counted by whether the body holds of nothing.
        if least > 0 and holds(body, ()):
            least = 0
        if least == 0 and holds(end, word):
            return True
        if most == 0:
            return False
        fewer = (("until", max(least - 1, 0), None if most is None else most - 1), body, end)
        return any(holds(body, word[:cut]) and holds(fewer, word[cut:]) for cut in cuts if cut)
    match head:
        case "next":
            first, *rest = parts
            if not rest:
                return holds(first, word)
            return any(holds(first, word[:cut]) and holds(("next", *rest), word[cut:]) for cut in cuts)
        case "or":
            return any(holds(part, word) for part in parts)
        case "and":
            return all(holds(part, word) for part in parts)
        case "not":
            return not holds(parts[0], word)
        case "->":
            return not holds(parts[0], word) or holds(parts[1], word)
        case "always":
            return all(holds(parts[0], (state,)) for state in word)
    return any(holds(parts[0], word[i:j]) for i in cuts for j in cuts if i <= j)


class Library:
    """The formula as an automaton of automata-lib, by its operations."""

    def __init__(self, letters):
        self.letters = set(letters)
        self.none = NFA(states={0}, input_symbols=self.letters, transitions={}, initial_state=0, final_states=set())
        self.empty = NFA(states={0}, input_symbols=self.letters, transitions={}, initial_state=0, final_states={0})
        self.any = self.one(*letters)

    def one(self, *letters):
        moves = {0: {letter: {1} for letter in letters}}
        return NFA(states={0, 1}, input_symbols=self.letters, transitions=moves, initial_state=0, final_states={1})

    def small(self, nfa):
        return NFA.from_dfa(self.dfa(nfa))

    def dfa(self, nfa):
        return LibraryDFA.from_nfa(nfa, minify=True, retain_names=False)

    def complement(self, nfa):
        return NFA.from_dfa(self.dfa(nfa).to_complete().complement())

    def repeated(self, body, least, most):
        if most is None:
            found = body.kleene_star()
        else:
            found = self.empty
            for _ in range(most - least):
                found = self.small(self.empty.union(body.concatenate(found)))
        for _ in range(least):
            found = body.concatenate(found)
        return found

    def of(self, tree):
        return self.small(self._of(tree))

    def _of(self, tree):
        if isinstance(tree, str):
            return {"any": self.any, "empty": self.empty}.get(tree) or self.one(tree)
        head, *parts = tree
        first, *rest = map(self.of, parts)
        if isinstance(head, tuple):
            return self.repeated(first, *head[1:]).concatenate(rest[0])
        match head:
            case "next":
                for part in rest:
                    first = first.concatenate(part)
                return first
            case "or":
                for part in rest:
                    first = first.union(part)
                return first
            case "and":
                for part in rest:
                    first = self.small(first.intersection(part))
                return first
            case "not":
                return self.complement(first)
            case "->":
                return self.complement(first).union(rest[0])
            case "always":
                return first.intersection(self.any).kleene_star()
        everything = self.any.kleene_star()
        return everything.concatenate(first).concatenate(everything)


def as_library(dfa, letters):
    """Our automaton as one of automata-lib."""
    return LibraryDFA(
        states=set(range(len(dfa.table))),
        input_symbols=set(letters),
        transitions={state: dict(row) for state, row in enumerate(dfa.table)},
        initial_state=0,
        final_states=set(dfa.accepting),
        allow_partial=True,
    )
