"""Steps in clauses: "the head chef has checked the plate" and "checking the plate" are ``check_plate``.

A clause is divided into the agent, the verb and its object. The agent is recorded beside the name. A clause that
describes a state ("the guest is under 18") is a fact and not a step.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from formal_llm.authoring.names import QUOTED, RESERVED, NoName, Unclear, name_of
from formal_llm.authoring.verbs import PARTICLES, STATES, base_form, gerund_base, participle_base
from formal_llm.authoring.word_forms import IRREGULAR

_BE = frozenset("is are was were be been being gets get got".split())  # noqa: SIM905
_HAVE = frozenset({"has", "have", "had", "having"})
_DETERMINERS = frozenset(
    "the a an any every each all another further additional its their his her your our my this these".split()  # noqa: SIM905
)
_MANY = frozenset({"you", "we", "they", "i"})
_PEOPLE = frozenset("you we they he she i somebody someone anybody anyone everybody everyone one".split())  # noqa: SIM905
_PREPOSITIONS = frozenset(
    ("to from for with into onto of by at under over via against as on in through off out up about").split()  # noqa: SIM905
)
#: Means by which something is done, which "by" does not turn into agents.
_MEANS = frozenset("email e-mail phone telephone post mail letter hand courier fax card cash wire sms text".split())  # noqa: SIM905
#: Verbs whose subject is what begins or ends: "failover has begun" is to begin failover.
_PHASES = frozenset("begin start commence end finish conclude stop open close".split())  # noqa: SIM905
#: Words between a helping verb and the verb that have no meaning for rules.
_FILLERS = frozenset(["already", "ever", "actually", "been", "being", "also", "then"])
#: Words for which or how many people act: they are not part of a name, but must not be ignored.
_WHO = frozenset(
    ("two three four five six several both all another other different second third same independent").split()  # noqa: SIM905
)
_DONE = re.compile(
    r"(?:(?:is|are|be|been|was|has been|have been) (?:done|over|complete|completed|finished|made|performed|carried out"
    r"|needed|in place)|happens?|occurs?|takes? place|has happened|have happened|has taken place|took place|happened)"
)


_STATE = "{!r} describes how things are; name the step that makes it so, or ask for it: if ..., ..."


class DescribesState(Unclear):
    """Raised for a clause that describes a state."""


@dataclass(frozen=True)
class NamedStep:
    """The step of a clause.

    Attributes:
        thing: its object, in words; empty if there is none.
        agent: who performs it; empty if not specified.
    """

    name: str
    thing: str = ""
    agent: str = ""


@dataclass
class EventReader:
    """Reads the clauses of one sentence from left to right, and resolves its pronouns.

    Attributes:
        things: the things mentioned so far.
        agents: who performs each step, if specified.
    """

    things: list[str] = field(default_factory=list)
    agents: dict[str, set[str]] = field(default_factory=dict)

    def read(self, clause: str) -> NamedStep:
        """Return the step of a clause.

        Raises:
            DescribesState: the clause describes a state.
            NoName: the clause does not name a step.
        """
        event = self._read_clause(clause.strip(" ,"))
        if event.thing and event.thing not in self.things:
            self.things.append(event.thing)
        self.agents.setdefault(event.name, set()).update({event.agent} - {""})
        return event

    def _read_clause(self, clause: str) -> NamedStep:
        if QUOTED.fullmatch(clause):
            return NamedStep(name_of(clause))
        words = re.sub(r"^(?:please|the act of|the step(?: of)?) ", "", clause).split()
        if not words:
            raise NoName(clause)
        if words[0] == "having" and len(words) > 2:
            words = ["you", "have", *words[1:]]
        done = re.fullmatch(rf"(.+?) {_DONE.pattern}", clause)
        if done is not None:
            return self._read_noun(done[1].split())
        if "VERB" in words[1:]:  # a helping verb marked the verb
            at = words.index("VERB")
            return self._done_by(
                words[:at], base_form(words[at + 1]) or participle_base(words[at + 1]) or words[at + 1], words[at + 2 :]
            )
        return (
            self._read_passive(words) or self._read_active(words) or self._verb_first(words) or self._read_noun(words)
        )

    # -- the forms of a clause -----------------------------------------------------------------------------------------

    def _read_passive(self, words: list[str]) -> NamedStep | None:
        """Read a clause such as "the plate has been checked by the chef"."""
        at = 0 if words[0] == "being" else next((i for i, word in enumerate(words) if word in _BE and i), None)
        if at is None:
            return None
        subject = [word for word in words[:at] if word not in _HAVE | _FILLERS]
        subject = subject or ["it"]
        rest = words[at + 1 :]
        while rest and rest[0] in _FILLERS:
            rest = rest[1:]
        verb = participle_base(rest[0]) if rest else None
        if verb in ("follow", "precede"):
            raise NoName(" ".join(words))
        if verb is None or verb in STATES:
            raise DescribesState(_STATE.format(" ".join(words)))
        return self._make_step(verb, subject, rest[1:], passive=True)

    def _read_active(self, words: list[str]) -> NamedStep | None:
        """Read a clause such as "the chef has checked the plate", "the chef checks the plate", "the bread goes in"."""
        for at in range(1, len(words)):
            word, before = words[at], words[:at]
            if word in _HAVE:
                rest = [one for one in words[at + 1 :] if one not in _FILLERS]
                verb = participle_base(rest[0]) if rest else None
                if verb is None or verb in STATES:
                    raise DescribesState(_STATE.format(" ".join(words)))
                return self._done_by(before, verb, rest[1:])
            verb = base_form(word)
            if verb is None and at == 1 and (words[0] in _MANY or (words[0] in _PEOPLE and word.endswith("s"))):
                verb = word.removesuffix("s")  # what a person does is a verb, even if it is unknown
            if verb in STATES and before[0] in _DETERMINERS | _PEOPLE | {"it"} and before[-1] not in _DETERMINERS:
                raise DescribesState(_STATE.format(" ".join(words)))
            if verb is None or not self._is_finite(words, at):
                continue
            if verb in STATES:
                raise DescribesState(_STATE.format(" ".join(words)))
            return self._done_by(before, verb, words[at + 1 :])
        return None

    def has_verb(self, clause: str) -> bool:
        """Return whether a clause has a subject, a verb and an object."""
        try:
            event = self._read_active(clause.split())
        except NoName:
            return False
        return event is not None and event.agent != ""

    def _is_finite(self, words: list[str], at: int) -> bool:
        """Return whether the verb at a position belongs to a clause with a subject before it."""
        word, subject = words[at], words[:at]
        verb, following = base_form(word), words[at + 1 : at + 2]
        if len(subject) == 1 and subject[0] in _PEOPLE | {"it"}:
            return True
        if any(one in _PREPOSITIONS for one in subject) or (gerund_base(subject[0]) and len(subject) < 2):
            return False
        if len(subject) > 1 and base_form(subject[0]) == subject[0]:
            # "wash the hands" is an order; in "head chef checks the plate" the object follows
            return (
                len(subject) == 2
                and subject[1] not in _DETERMINERS
                and following[:1] != []
                and following[0] in _DETERMINERS
            )
        if (word.endswith("ed") or word in IRREGULAR) and subject[0] in _DETERMINERS and len(subject) > 1:
            return True  # "the supervisor agreed"
        ends = not following or following[0] in _DETERMINERS | _PREPOSITIONS | PARTICLES | {"it", "them"}
        if len(subject) == 1 and base_form(subject[0]) == subject[0]:
            return False  # "freeze changes" is an order, too
        if word.endswith("s") and word != verb:
            return ends and not (not following and subject[0] in {"any", "all", "two"})
        plural = subject[-1].endswith("s") and word == verb
        return plural and ends and base_form(subject[0]) != subject[0]

    def _done_by(self, subject: list[str], verb: str, rest: list[str]) -> NamedStep:
        if (
            subject[0] in _PREPOSITIONS
            or set(subject) & (RESERVED | _BE) - _DETERMINERS - _PEOPLE - {"it"}
            or "," in "".join(subject)
            or len(subject) > 5
        ):
            raise NoName(" ".join(subject))
        particles, thing = _split_particles(rest)
        if verb in _PHASES and not thing:
            return self._make_step(verb, subject, rest)
        if thing and thing[0] not in _PREPOSITIONS and verb not in ("go", "come"):
            return self._make_step(verb, thing, particles, agent=subject)
        if subject[0] in _PEOPLE and not (subject[0] == "they" and self.things and not rest):
            return NamedStep(_join_name([verb, *particles, *thing]))
        noun = self._resolve_thing(subject)
        return NamedStep(_join_name([*noun, verb, *particles, *self._read_tail(thing)]), " ".join(noun))

    def _verb_first(self, words: list[str]) -> NamedStep | None:
        """Read a clause such as "check the plate", "checking the plate", "to check the plate"."""
        first, *rest = words[1:] if words[0] == "to" else words
        verb = gerund_base(first) or (first if base_form(first) == first else None)
        if verb is None and rest and rest[0] in _DETERMINERS and first.endswith("s"):
            verb = base_form(first)  # "and informs the captain", with a subject named earlier
        if verb is None and rest and rest[0] in _DETERMINERS and first not in _PREPOSITIONS | _DETERMINERS:
            verb = first  # the word before "the plate" is what is done to it
        if verb is None or verb in STATES - {"belong"}:
            return None
        if rest and rest[0] == "of":  # "cutting of the grass"
            rest = rest[1:]
        particles, thing = _split_particles(rest)
        if not thing:
            return NamedStep(_join_name([verb, *particles]))
        if thing[0] in _PREPOSITIONS:
            return NamedStep(_join_name([verb, *particles, *self._read_tail(thing)]))
        return self._make_step(verb, thing, particles)

    def _read_noun(self, words: list[str]) -> NamedStep:
        if words[0] in _PEOPLE:  # "anyone older" is no step
            raise NoName(" ".join(words))
        noun = self._resolve_thing(words)
        if len(noun) > 1 and noun[0].endswith("ed") and noun[1] not in _PREPOSITIONS:  # "an approved change ticket"
            verb = base_form(noun[0])
            if verb not in STATES | {None, noun[0]} and (words[0] in _DETERMINERS or base_form(noun[1]) != noun[1]):
                return self._make_step(str(verb), noun[1:], [])
        done = participle_base(noun[0]) if len(noun) > 1 and noun[1] in _PREPOSITIONS else None
        if (
            done not in (None, noun[0])
            or noun[0] in _PREPOSITIONS | _BE
            or (
                len(noun) > 1
                and noun[0].endswith("s")
                and base_form(noun[0])
                and noun[1] in _PREPOSITIONS | _DETERMINERS
            )
        ):
            raise NoName(" ".join(words))
        return NamedStep(_join_name(noun), "")

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _read_agent(self, words: list[str]) -> str:
        if set(words[1:]) & (_DETERMINERS | _BE | _HAVE):
            raise NoName(" ".join(words))
        if set(words) & _WHO or any(word.isdigit() for word in words):
            raise Unclear(f"who does it ({' '.join(words)}) is no part of a rule; make it part of the step, in quotes")
        return " ".join(word for word in words if word not in _DETERMINERS)

    def _make_step(
        self, verb: str, thing: list[str], rest: list[str], *, agent: list[str] | None = None, passive: bool = False
    ) -> NamedStep:
        """Return the step of a verb and its object; ``rest`` follows the verb."""
        at = next((i for i, word in enumerate(thing) if word in _PREPOSITIONS and i), len(thing))
        noun, tail = self._resolve_thing(thing[:at]), thing[at:]
        particles, tail_words = _split_particles(rest)
        if passive and particles and tail_words and tail_words[0] not in _PREPOSITIONS:  # "held in public"
            particles, tail_words = [], rest
        if passive and len(tail_words) == 1 and tail_words[0] in _PREPOSITIONS:  # "paid for"
            particles, tail_words = [*particles, *tail_words], []
        agent_name = self._read_agent(agent or [])
        if passive and "by" in tail_words:
            by = len(tail_words) - 1 - tail_words[::-1].index("by")
            if tail_words[by + 1 :] and tail_words[by + 1] not in _MEANS and not gerund_base(tail_words[by + 1]):
                agent_name, tail_words = self._read_agent(tail_words[by + 1 :]), tail_words[:by]
        name = _join_name([verb, *particles, *noun, *self._read_tail([*tail, *tail_words])])
        return NamedStep(name, " ".join(noun), agent_name)

    def _resolve_thing(self, words: list[str]) -> list[str]:
        """Return a noun phrase without its article, or the thing that a pronoun refers to."""
        found = [word for word in words if word not in _DETERMINERS and word not in _HAVE]
        found += ["a"] if words[-1:] == ["a"] else []  # nothing follows the article, so it is the name
        if len(words) == 1 and words[0] in {"it", "them", "they", "this", "that", "so", "one"}:
            is_plural = {"it": False, "they": True, "them": True}.get(words[0])
            candidates = [thing for thing in self.things if is_plural is None or thing.endswith("s") == is_plural]
            if not self.things or (len(self.things) > 1 and len(candidates) != 1):
                raise Unclear(f"say what {words[0]!r} is, in the words of the other clauses")
            return (candidates[0] if len(candidates) == 1 else self.things[0]).split()
        if not found:
            raise NoName(" ".join(words))
        return found

    def _read_tail(self, words: list[str]) -> list[str]:
        """Return the words after the object: "to the ward"."""
        if words and words[-1] in {"it", "them"}:
            return [*words[:-1], *self._resolve_thing(words[-1:])]
        return [word for word in words if word not in _DETERMINERS]


def _split_particles(words: list[str]) -> tuple[list[str], list[str]]:
    """Split off the particles of a verb, before its object or after it, from the rest."""
    at = 0
    while at < len(words) and words[at] in PARTICLES and words[at] not in {"to", "from"}:
        if at + 1 < len(words) and words[at] in {"in", "on", "over", "through", "around"} and (
            words[at + 1] in _DETERMINERS
        ) and words[at] not in {"over", "on"}:  # fmt: skip
            break
        at += 1
    particles, rest = words[:at], words[at:]
    if not particles and len(rest) > 1 and rest[-1] in PARTICLES:
        return [rest[-1]], rest[:-1]
    return particles, rest


def _join_name(words: list[str]) -> str:
    name = " ".join(words)
    if re.search(r"\b[A-Z]{2}", name) or any(
        base_form(word) in STATES - {word} for word in words[1:] if word[-1:] == "s"
    ):
        raise NoName(name)  # a mark of a simplified sentence, or its verb, remains unread
    return name_of(name)
