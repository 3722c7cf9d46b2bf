"""A sentence in fewer words: what obliges, allows, forbids and joins is one word in capitals, however it is written."""

from __future__ import annotations

import re
from functools import cache

_DIGITS = {word: str(n) for n, word in enumerate("zero one two three four five six seven eight nine ten".split())}  # noqa: SIM905
_STRICT = r"(?:(?:strictly|absolutely|expressly|simply|always|also|still|only) )?"
_GOOD = r"(?:allowed|permitted|acceptable|ok|okay|admissible|tolerated|possible|an option)"
_AUX = r"(?:must|may|can|could|should|shall|will|would|might|do|does|did)"
_PART = (
    r"(?:\w+[^e]ed|\w*(?:put|cut|run|made|done|sent|given|taken|written|paid|sold|told|met|shut|set|drawn|frozen|kept|"
    r"held|thrown|built|bought|brought|found|lent|left|read|shown|worn|torn|seen|withdrawn))"
)
_NEVER = r"(?:under no circumstances|on no account|in no case|at no (?:time|point|stage)|by no means)"
_SOMETIME = r"sometime|some time|at some (?:later )?(?:point|stage)|eventually|sooner or later"
_LAST = rf"(?:{_SOMETIME}|later on|later|afterwards?"
_FRONT = r"(?:^|(?<= and )|(?<= but )|(?<=, ))"
_EVENT = r"(?:\w+(?:ing|tion|sion|val|ture|ment|ance|sal|[sl]ure)|receipt|delivery|entry|expiry|check-(?:in|out))"
_LEAVE = r"(?:approval|permission|consent|agreement|authori[sz]ation|sign-off|clearance)"
#: What is written, and the one way in which it is read; in this order.
_SAME: tuple[tuple[str, str], ...] = (
    (r"\b(\w+)'s (?=been\b)", r"\1 has "),
    (r",? as well as\b", " and"),
    (r",? whichever (?:is|of (?:them|the two) is) (?:available|at hand|possible|easier|convenient|preferred)$", ""),
    (r"\bits being (?=\w)", "it is "),
    (r"\btheir being (?=\w)", "they are "),
    (rf"{_FRONT}{_NEVER},? (?:is|are) (.+?) to (?=be\b)", r"NEVER \1 "),
    (
        r"\b(?:(?:is|are) (?:limited|restricted|capped|confined) (?:to|at)|"
        r"(?:(?:may|can|must|should|shall) not|must never|cannot) (?:number(?: more than)?|exceed|total more than)) "
        r"(?:a (?:total|maximum) of )?(one|two|three|four|five|six|seven|eight|nine|ten|\d+)\b(?: times?)?",
        r"at most \1 times",
    ),
    (r"\b(it|that|there|who|he|she|what)'s\b", r"\1 is"),
    (r"\b(you|we|they|i)'ve\b", r"\1 have"),
    (r"\b(you|we|they)'re\b", r"\1 are"),
    (r"\bcan't\b|\bcannot\b", "can not"),
    (r"\bwon't\b", "will not"),
    (r"n't\b", " not"),
    (r", (?:please|of course|however)\b,?", ""),
    (
        r"\b(?:first of all|first and foremost|(?<!the )(?<!very )first thing|"
        r"before (?:doing )?(?:anything|everything|all) else(?: (?:happens|is done))?|"
        r"at the (?:very )?(?:beginning|start|outset)|"
        r"to (?:begin|start) with|as (?:the|a) (?:very )?first step)\b", "ATSTART",
    ),
    (r"\b(?:last of all|after everything else|at the very end|as the (?:very )?(?:last|final) step)\b", "ATEND"),
    (r"\bthe same (?=\w+ (?:may|must|can|should|is|are)\b.* in a row)", "the "),
    (r"\b(?:consecutively|in succession|back to back|one after the other)$", "in a row"),
    (r"\bat the (?:very )?end of (?=(?:the|each|every|any|an?) \w+)", "ATEND of "),
    (r"^there is (?:a )?(?:limit|maximum|cap) of ", "at most "),
    (r"^care (?:must|has to|should) be taken (?:to|that) ", "make sure to "),
    (r",? any ?(?:more|longer)$", ""),
    (r"^(?:please|note that|remember:|always|also|in addition|furthermore|moreover),? ", ""),
    (
        r",? (?:with(?:out| no)(?: any)? exceptions?|no matter what|at all|under any circumstances|at any time|"
        r"ever|whatsoever)$", "",
    ),
    (r"^should (?=(?:the|an?|any|it|there) .+, )", "SHOULD "),
    (r"\b(?:is|are) only (?:allowed|permitted|possible|acceptable) (?=after|once|when|if|upon)", "ALLOWED only "),
    (r",? as (?:often|many times) as (?:(?:you|we|they) )?(?:like|want|wish|need|needed|necessary)", ""),
    (rf"^it is {_STRICT}(?:forbidden|prohibited|not (?:allowed|permitted|acceptable|possible)) to ", "never "),
    # -- what is forbidden
    (rf"\b(?:is|are) {_STRICT}(?:not|never) {_STRICT}{_GOOD} to\b", "NOT"),
    (rf"\b(?:is|are) {_STRICT}(?:not|never) {_STRICT}{_GOOD}|\b{_AUX} (?:not|never) be {_GOOD}", "FORBIDDEN"),
    (rf"\b(?:is|are) {_STRICT}(?:forbidden|prohibited|barred|banned|not supposed) (?:to|from)\b", "NOT"),
    (
        rf"\b(?:is|are|remains?|stays?) {_STRICT}(?:forbidden|prohibited|banned|out of the question|ruled out|"
        r"off[- ]limits|off the (?:table|cards|menu)|out of bounds|(?:a )?no[- ]go|taboo|unacceptable|blocked)",
        "FORBIDDEN",
    ),
    (rf"\b{_AUX} (?:not|never)(?: (?:ever|under any circumstances))?\b|\b(?:can|may|must) no longer\b", "NOT"),
    (r"\b(?:is|are) (?:not|never) (?:ever )?to\b", "NOT"),
    (r"\bneed not\b", "MAY"),
    (r"\bone time\b", "1 times"),
    (rf"\b(?:is|are) (?:not|never|no longer) (?:to be )?(?=(?:{_PART})\b)", "NOT be "),
    # -- what is required, and what is allowed
    (r"\b(?:is|are) (?:always )?(?:required|supposed|obliged|expected|meant|bound) to\b", "MUST"),
    (r"\b(?:is|are) (?:allowed|permitted|free|welcome) to\b", "MAY"),
    (r"\b(?:has|have|needs?|ought|is|are) to\b", "MUST"),
    (
        r"\b(?:must|should|shall|had better|will)(?: (?:always|also|eventually|sooner or later|at some point))?\b",
        "MUST",
    ),
    (r"\b(?:may|can|could|might)\b", "MAY"),
    (
        rf"\b(?:is|are) {_STRICT}(?:required|mandatory|compulsory|obligatory|needed|necessary|called for|a must)\b",
        "REQUIRED",
    ),
    (r"\b(?:is|are) (?:fine|allowed|permitted|ok|okay|acceptable|possible)\b", "ALLOWED"),
    (
        r"^(?:make (?:absolutely )?(?:sure|certain)|be sure|ensure|remember|take care|see to it|NOT forget|"
        r"never forget|it is (?:vital|essential|important|imperative|crucial)|it REQUIRED)(?: that| to)? ", "MUST ",
    ),
    (r"^it FORBIDDEN to ", "never "),
    (rf"{_FRONT}{_NEVER},? (?:MAY|MUST|is|are|does|do(?= (?:you|we|they|the)\b)) ", "NEVER "),
    (rf"{_FRONT}(?:{_NEVER}|never ever),? ", "never "),
    (
        r"^(?:NOT|do not|never|avoid|refrain from|no further|"
        r"there (?:is to|MUST|MAY|is) (?:be )?no(?: (?:further|more))?) ", "never ",
    ),
    (r"(?:(?<=[^,]),?|,) there (?:is to|MUST|MAY|is) (?:be )?no(?: (?:further|more))? ", ", never "),
    (r"\b(?:nobody|no one|no-one|none of \w+)(?: (?:MUST|MAY|ever))? ", "never "),
    (r"^MUST (?:(?:you|we) )?never ", "never "),
    # -- once
    (
        r"(?<!^)(?<!most )(?<!least )(?<!exactly )(?<!than )\b(?:(?:only|just) )?once"
        r"(?=,? (?:and )?only(?: once)?\b|$|, (?:and|but)\b|"
        r" (?:per|each|every|an?) \w+(?:$|,)| only\b)"
        r"(?:,? (?:and )?only(?: once)?)?", "exactly 1 times",
    ),
    (
        r"\b(at most|at least|at the most|exactly|precisely|than|up to|maximum of) (?:once|one time)(?: only)?\b",
        r"\1 1 times",
    ),
    # -- what joins
    (r"[,;]? ?\bit (?:NOT|MAY NOT) matter (?:which|who|what) .+ first$|, the order NOT matter$", " ANYORDER"),
    (
        r"\bin (?:whichever|whatever|any|either|no (?:particular|fixed|special|set)) order"
        r"(?: (?:you (?:like|want|please)|suits you))?", "ANYORDER",
    ),
    (
        r"\b(?:strictly )?(?:in|following|keeping to|sticking to|observing) (?:exactly |precisely |just |strictly )?"
        r"(?:this|that|the given|the following|the stated) (?:exact |precise |strict )?(?:order|sequence)"
        r"(?: and no other| strictly| exactly)?", "INORDER",
    ),
    (
        r"\b(?:right|straight|immediately|directly|just) (?=(?:before|after|prior|following|ahead|upon)\b)",
        "DIRECTLY ",
    ),
    (r"\bas soon as\b|\b(?:from )?the (?:very )?(?:moment|instant|second)(?: (?:that|when))?\b", "SOONAFTER"),
    (r"\bonly DIRECTLY after\b", "DIRECTLY ONLYAFTER"),
    (r"\bno sooner\b|\b(?:as|so) long as\b|\bwhile\b|\bduring\b|\bmeanwhile\b", "UNREAD"),
    (rf"\bonly with (?=.*\b{_LEAVE}\b)", "ONLYAFTER "),
    (
        r"\b(?:prior to|ahead of|in advance of|previous to|by the time(?: that)?|before)\b"
        r"(?: the (?:very )?first(?= (?!step|thing)\w))?", "BEFORE",
    ),
    (
        r"\b(?:not until(?: after)?|only (?:after|once|when|if|upon)|not (?:BEFORE|unless)|if and only if)\b",
        "ONLYAFTER",
    ),
    (r"^from (.+?) on(?:wards?)?,", r"AFTER \1,"),
    (rf"\b(?:subsequent to|following|upon|once|after|on(?= {_EVENT}\b))\b", "AFTER"),
    (
        r"\b(?:whenever|when|each time|every time|any time|in case(?: of)?|in the event (?:that|of))\b",
        "WHEN",
    ),
    (r"\b(?:if|where)\b", "IF"),
    (r"\b(?:until|till)(?: AFTER)?\b", "UNTIL"),
    (r"\b(?:unless(?: AFTER)?|except (?:AFTER|WHEN))\b", "UNLESS"),
    (r"(?<=, )always (?=\w)|(?<=^)always (?=\w+ .*BEFORE)", ""),
    (
        r"\bwithout(?: first| previously)?(?: (?:an?|any)(?= (?:prior|earlier|previous)))?"
        r"(?: (?:prior|earlier|previous))?\b", "WITHOUT",
    ),
    (r"\b(requires?|needs?|calls? for) (?:an? )?(?:prior|earlier|previous) (.+)", r"\1 \2 FIRST"),
    (rf"\b(?:{_SOMETIME}) (?:afterwards?|later on|later|thereafter|AFTER that)\b", "LATER"),
    (rf"(?<!\bthe )(?<!\bany )\b{_LAST}|thereafter|AFTER that)\b", "LATER"),
    (
        r"(?<!\bthe )(?<!\bvery )\b(?:beforehand|first|earlier|previously|BEFORE that(?= |$)(?! \w)|in advance)\b",
        "FIRST",
    ),
    (
        r"\b(?:immediately|straight away|right away|straight|right|directly|at once) LATER\b|"
        r"\bas (?:the|its) (?:very )?next step\b", "NEXT",
    ),
    # -- how often
    (r",? in between$", " INBETWEEN"),
    (r"\b(?:no|not|NOT) more (?:often )?than\b|\b(?:a )?maximum of\b|\bup to\b|\bat the most\b", "at most"),
    (r"\b(?:no|not) (?:fewer|less)(?: often)? than\b|\b(?:a )?minimum of\b|\bat the (?:very )?least\b", "at least"),
    (r"\bmore often than\b", "more than"),
    (r"\b(?:precisely|just) (?=\d|one\b|two\b)", "exactly "),
    (
        r"\b(?:immediately|straight away|right away|at once|straightaway)(?=$|,| (?:AFTER|WHEN|IF|SOONAFTER)\b)",
        "NEXT",
    ),
    (r"\btwice\b", "2 times"),
    (r"\bthrice\b", "3 times"),
    (
        r"^(?:a|any) (?:second|further|repeat) (?=(?:\w+ ){1,2}(?:(?:MUST|MAY|NOT) be|is|are|requires?|needs?)\b)",
        "AGAIN a ",
    ),
    (r"^no (?:second|repeat) (?=(?:\w+ ){1,3}(?:(?:MUST|MAY|NOT) be|is|are)\b)", "AGAIN no "),
    (r"(?<=AGAIN no )(.+) the (?:first|previous|last|earlier)(?: one)?(?= (?:is|has|was)\b)", r"\1 it"),
    (r"( and [^,]+?) (?:both|each) (?=MUST be\b)", r"\1 "),
    (r"\b(?:a second time|again|anew|once more|a further time)\b", "AGAIN"),
    (
        r"\b(?:an? (\w+(?: \w+)?) of its own|its own (?:separate )?(?=\w)|an? (?:own|separate|fresh)(?= \w))\b",
        r"OWN \1",
    ),
)  # fmt: skip


@cache
def _compiled() -> tuple[tuple[re.Pattern[str], str], ...]:
    """The same as patterns; made when the first sentence is read, as they take long."""
    return tuple((re.compile(pattern), same) for pattern, same in _SAME)


def simplify(text: str) -> str:
    """A sentence in lower case and fewer words, with what joins its clauses in capitals."""
    text = " ".join(text.split()).rstrip(".!?; ").replace("’", "'").replace(" – ", ", ").replace("—", ", ").lower()
    for pattern, same in _compiled():
        text = pattern.sub(same, text)
    for word, digit in _DIGITS.items():
        text = re.sub(
            rf"\b{word} (?=times\b)|(?<=\bat most ){word} |(?<=\bat least ){word} |(?<=\bexactly ){word} ",
            f"{digit} ",
            text,
        )
        text = re.sub(rf"^{word} (?=.+ REQUIRED BEFORE)", f"at least {digit} ", text)
    return re.sub(r" +", " ", text).strip(" ,")
