"""Rules that the studio's tests are about."""

from __future__ import annotations

from collections.abc import Mapping

from formal_llm.studio.questions import answer

TEA = """\
%limit 1 steep pour
tea "cup of tea" -> pour tea | steep tea | boil_water
boil_water "Boil water"
"""
CHART = """\
flowchart TD
    S([Start]) --> Q{Is it late?}
    Q -->|yes| sleep[Go to bed]
    Q -->|no| read[Read a page]
    read --> Q
    sleep --> E([End])
"""
NESTED = "S -> open S close | x\n%limit 3 open\n"
#: What a label may say that is meant for a browser.
HOSTILE = '<img src=x onerror="window.hacked=1"></text><script>window.hacked=1</script>'


def parts(question: str, text: str = TEA, ending: str = ".cfg", **more: object) -> list[Mapping[str, object]]:
    """The parts of an answer."""
    return list(answer({"question": question, "text": text, "ending": ending, **more}))


def part(name: str, question: str, text: str = TEA, ending: str = ".cfg", **more: object) -> Mapping[str, object]:
    """The one part of that name."""
    (found,) = [one for one in parts(question, text, ending, **more) if one["part"] == name]
    return found
