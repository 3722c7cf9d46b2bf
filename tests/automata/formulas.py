"""Random formulas, as plain tuples; and what they mean, said twice over."""

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
