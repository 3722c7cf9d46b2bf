"""Patterns of sentences about where steps stand: the first, the next, before and after, and whether at all."""

from __future__ import annotations

from formal_llm.authoring import meanings as mean
from formal_llm.authoring.patterns import Asked, Found, Misread, Pattern, counts, formula_of, one_of


def _never(found: Found) -> Asked:
    if len(found.steps["A"]) > 1:
        raise Misread("it may mean each of them, or not both; write: never a or b, or: never both a and b")
    return [counts(one_of(found, "A"), 0, 0)]


ORDER: tuple[Pattern, ...] = (
    # -- where --------------------------------------------------------------------------------------------------------
    Pattern(
        "begin and end with",
        (r"begin with {A} and end with {B}",),
        "Start with open and end with close.",
        "The first step and the last.",
        lambda found: [mean.begins(one_of(found, "A")), mean.ends(one_of(found, "B"))],
    ),
    Pattern(
        "begin with",
        (r"begin with {A}", r"{A} comes first"),
        "Begin with plan.",
        "It is the first step, and there is one.",
        formula_of(mean.begins, "A"),
    ),
    Pattern(
        "end with",
        (r"end with {A}",),
        "End with a receipt.",
        "It is the last step, and there is one.",
        formula_of(mean.ends, "A"),
    ),
    Pattern(
        "nothing after",
        (
            r"nothing(?: else)? <v> after {A}",
            r"after {A},? nothing(?: else)? <v>",
            r"after {A},? never anything[ else]",
        ),
        "After cancel nothing else happens.",
        "Where it stands, it is the last step.",
        formula_of(mean.nothing_after, "A"),
    ),
    Pattern(
        "nothing before",
        (r"nothing(?: else)? <v> before {A}", r"before {A},? nothing(?: else)? <v>"),
        "Nothing happens before login.",
        "A plan with any step begins with it.",
        formula_of(mean.nothing_before, "A"),
    ),
    # -- neighbours ---------------------------------------------------------------------------------------------------
    Pattern(
        "never directly after",
        (
            r"never {A} directly after {B}",
            r"{A} never <v> directly after {B}",
            r"{A} never directly follows? {B}",
            r"{A} directly after {B} is forbidden",
            r"{B} never directly followed by {A}",
        ),
        "Never eat directly after swimming.",
        "It is not the next step.",
        formula_of(mean.not_directly_after, "AB"),
    ),
    Pattern(
        "directly followed",
        (
            r"<every> {A} (?:is|must be) directly followed by {B}",
            r"{B} must directly follow {A}",
            r"if {A} happens,? (?:then )?{B} must happen directly[ after]",
            r"{B} must <v> directly after <every> {A}",
        ),
        "Every withdrawal is immediately followed by a log.",
        "The next step is that.",
        formula_of(mean.directly_answered, "AB"),
    ),
    Pattern(
        "directly preceded",
        (r"{B} <must> directly before <every> {A}",),
        "Backup immediately before every upgrade.",
        "The step before it is that.",
        formula_of(mean.directly_preceded, "AB"),
    ),
    Pattern(
        "at least so many steps between",
        (
            r"at least {n} (?:other )?steps [must ]?(?:be |stand )?between {A} and {B}",
            r"between {A} and {B},? (?:there are |are )?at least {n} (?:other )?steps",
        ),
        "At least 2 steps between eat and swim.",
        "From each of the one to each later one of the other.",
        formula_of(mean.apart, "AB", "n"),
    ),
    Pattern(
        "within so many steps",
        (
            r"{B} <must> within {n} steps after <every> {A}",
            r"within {n} steps after <every> {A},? [there is |must |comes ]{B}[ must happen| happens]",
            r"<every> {A} is followed by {B} within {n} steps",
        ),
        "Reply within 2 steps after every question.",
        "It is one of the next so many steps.",
        formula_of(mean.answered_within, "AB", "n"),
    ),
    # -- far apart ----------------------------------------------------------------------------------------------------
    Pattern(
        "between any two",
        (
            r"between (?:any |every )?(?P<A>(?:two|2) .+?),? [there is |must be |there must be ]{B}[ must happen]",
            r"{B} <v> between (?:any |every )?(?P<A>(?:two|2) .+?)",
        ),
        "Between any two payments there is a receipt.",
        "The one does not come again before the other came.",
        formula_of(mean.between_two, "AB"),
    ),
    Pattern(
        "between",
        (
            r"between {A} and {C},? (?:there is |there must be |there are )[at least one ]{B}",
            r"(?:there is |there must be )[at least one ]{B} between {A} and {C}",
            r"at least one {B} <v> between {A} and {C}",
        ),
        "At least one review between draft and publish.",
        "After the one the last does not come until the first came.",
        formula_of(mean.between, "ABC"),
    ),
    Pattern(
        "never between",
        (
            r"never {A} between {B} and {C}",
            r"{A} never <v> between {B} and {C}",
        ),
        "Never edit between lock and unlock.",
        "Not after the one until the other came.",
        formula_of(mean.never_between, "ABC"),
    ),
    Pattern(
        "only between",
        (r"{A} <v> only between {B} and {C}",),
        "Read only between open and close.",
        "Only where the one came, and the other not since.",
        formula_of(mean.only_between, "ABC"),
    ),
    Pattern(
        "only that after",
        (r"after {B},? only {A} <v>",),
        "After close only archive may happen.",
        "Nothing but that, from there to the end.",
        formula_of(mean.only_after, "AB"),
    ),
    Pattern(
        "never after",
        (
            r"never {A} after {B}",
            r"{A} never <v> after {B}",
            r"{A} never follows? {B}",
            r"{A} after {B} is forbidden",
            r"after {B},? {A} (?:never <v>|is forbidden)",
        ),
        "Never deploy after freeze.",
        "Once the other has happened, it does not happen any more.",
        formula_of(mean.not_after, "AB"),
    ),
    Pattern(
        "all before",
        (r"(?:every|all|each|all the) {A} <must> before <every> {B}",),
        "Every question before every answer.",
        "None of the one after any of the other.",
        formula_of(mean.not_after, "AB"),
    ),
    Pattern(
        "before",
        (
            r"{A} <must> before <every> {B}",
            r"{B} <v> only after {A}",
            r"{B} (?:may|can|must) only <v> after {A}",
            r"{B} is forbidden (?:unless|until) {A}[ happened| has happened][ before| first]",
            r"{B} never <v> before {A}",
            r"{B} (?:needs|requires) {A} first",
            r"if {B} happens,? (?:then )?{A} must (?:have happened|happen) (?:before|first)",
            r"before <every> {B}, (?:always )?(?:(?:you|we) must )?{A}",
            r"(?:never|no) {B} (?:unless|until)(?: after)? {A}[ happened| has happened][ before| first]",
            r"{B} never <v> (?:unless|until)(?: after)? {A}[ happened| has happened][ before| first]",
            r"{B} never <v> without {A} first",
        ),
        "Wash before dry.",
        "There is one of the first before any of the second; not every one of them needs its own.",
        formula_of(mean.preceded, "AB"),
    ),
    Pattern(
        "followed",
        (
            r"<every> {A} (?:is|must be) (?:later )?followed by {B}[ later]",
            r"{B} must <v> after <every> {A}",
            r"after <every> {A},? (?:you|we) must (?:later )?{B}",
            r"after <every> {A}, (?:always )?{B}",
        ),
        "Every login is followed by a logout.",
        "There is one later on; not every one of them needs its own.",
        formula_of(mean.answered, "AB"),
    ),
    # -- whether ------------------------------------------------------------------------------------------------------
    Pattern(
        "excludes",
        (
            r"if {A} happens,? (?:then )?{B} (?:never <v>|is forbidden)",
            r"{A} excludes {B}",
            r"never {A} with {B}",
        ),
        "If cash happens, card must not happen.",
        "Not both in one plan.",
        lambda found: [mean.of_kinds([one_of(found, "A"), one_of(found, "B")], 0, 1)],
    ),
    Pattern(
        "requires",
        (
            r"{A} (?:requires?|needs?) {B}",
            r"{A} without {B} is forbidden",
            r"{A} never <v> without {B}",
            r"if {A} happens,? (?:then )?{B} must(?: also)? happen[ too]",
        ),
        "Pay requires pick.",
        "Where the one happens, the other does too, before it or after it.",
        formula_of(mean.requires, "AB"),
    ),
    Pattern(
        "must",
        (
            r"{A} must <v>",
            r"always {A}",
        ),
        "Hotel must happen.",
        "At least once.",
        lambda found: [counts(one_of(found, "A"), 1, None)],
    ),
    Pattern(
        "never",
        (r"never {A}", r"{A} never <v>"),
        "Never skip the review.",
        "Not at all.",
        _never,
        lists=True,
    ),
)
