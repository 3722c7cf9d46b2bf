"""What was made elsewhere, held against the rules: a plan that was written down, a recording, another version."""

from __future__ import annotations

import json
from collections.abc import Sequence

from formal_llm.agents.transcript import Transcript
from formal_llm.authored.files import lines_of
from formal_llm.automata.languages.comparison import differences
from formal_llm.automata.models.behaviour import Behaviour
from formal_llm.errors import FormalLLMError, NotationError
from formal_llm.planning import Walk
from formal_llm.planning.checking.reasons import Reasons
from formal_llm.planning.checking.texts import TextVerification, verify_text
from formal_llm.planning.checking.verify import Verification, Verifier
from formal_llm.planning.plans.overlay import way_picture
from formal_llm.studio.drawn import drawn
from formal_llm.studio.guards import judge_trace
from formal_llm.studio.parts import Asked, Part, Parts, build_verdict, text_of
from formal_llm.studio.procedures import judge_run
from formal_llm.studio.rules import GUARD, MAX_STATES, PROCEDURE, ReadRules, asked_rules, ending_of, problem

_RECORDING = "formal_llm.transcript/1"


def judge(asked: Asked) -> Parts:
    """A plan or recording that was dropped on the page: whether it follows the rules, and where it leaves them."""
    others = {PROCEDURE: judge_run, GUARD: judge_trace}
    if (ending := ending_of(asked)) in others:
        yield from others[ending](asked)
        return
    written, plan_text = asked_rules(asked), text_of(asked, "plan")
    try:
        recorded = _read_recording(plan_text)
        if recorded is not None:
            yield _replay_recording(written, recorded)
            return
        verifier = Verifier(written.source, max_states=MAX_STATES)
        found = _verify_transcript(written, plan_text, verifier) or verify_text(
            plan_text, verifier, order=written.wording.order
        )
    except (FormalLLMError, ValueError) as error:
        shown = error if isinstance(error, FormalLLMError) else NotationError(str(error), file="plan")
        yield {"part": "problems", "problems": [problem(shown)]}
        return
    yield _build_verdict(written, found)
    word = found.word if found.valid else found.nearest
    if word is not None:
        yield drawn(way_picture(written.rules, word, written.wording.reads))


def _build_verdict(written: ReadRules, found: Verification) -> Part:
    text = found if isinstance(found, TextVerification) else None
    return build_verdict(found.valid, found.reason, written.word(found.word)) | {
        "position": found.position, "line": text.line if text is not None else None,
        "allowed": list(map(written.lookahead.automaton.label, found.allowed)), "may_stop": found.may_stop,
        "nearest": written.shown(found.nearest), "changes": _list_changes(found),
        "skipped": list(text.skipped) if text is not None else [],
    }  # fmt: skip


def _list_changes(found: Verification) -> list[str]:
    if isinstance(found, TextVerification) and found.changes:
        return list(found.changes)
    return [str(edit) for edit in found.edits]


def _verify_transcript(written: ReadRules, text: str, verifier: Verifier) -> Verification | None:
    """Verify a transcript of an agent, in JSON lines; None where the text is not one."""
    if not isinstance(written.rules, Behaviour) or not text.lstrip().startswith("{"):
        return None
    return verifier.verify([segment.state for segment in Transcript.from_jsonl(text).segments])


def _read_recording(text: str) -> list[tuple[str, ...]] | None:
    """Read the texts that each answer of a recording chose; None where the text is not a recording.

    Raises:
        NotationError: a line is damaged.
    """
    if _RECORDING not in text[:200]:
        return None
    found = []
    for place, line in enumerate(lines_of(text), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            options = dict(row.get("options") or ())
            numbers = row.get("answer", {}).get("numbers", ())
            chosen = tuple(str(options[number]) for number in numbers)
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
            raise NotationError("this is no line of a recording", file="plan", line=place) from None
        if options and chosen:  # texts that were written, and answers that were refused, choose nothing
            found.append(chosen)
    return found


def _replay_recording(written: ReadRules, recorded: Sequence[Sequence[str]]) -> Part:
    """Follow a recording as far as possible: each choice is found by its text among the options offered now."""
    walk = Walk(written.table, wording=written.wording)
    answers: list[list[int]] = []
    reason = ""
    for place, texts in enumerate(recorded, 1):
        question = walk.question
        if question is None:
            reason = f"answer {place}, {', '.join(texts)!r}: the plan is finished before it"
            break
        offered = {option.text: option.number for option in question.options}
        missing = [text for text in texts if text not in offered]
        if missing:
            reason = f"answer {place}, {missing[0]!r}: {Reasons(written.table).about(walk, missing[0])}"
            break
        numbers = sorted(offered[text] for text in texts)
        try:
            walk.answer(numbers)
        except FormalLLMError as error:
            reason = f"answer {place}: {error}"
            break
        answers.append(numbers)
    if not reason and not walk.done:
        reason = f"the recording ends after {len(answers)} answers, and the plan is not finished"
    allowed = walk.question.options if walk.question is not None else ()
    verdict = build_verdict(not reason, reason or "every recorded answer can be given here", written.word(walk.word))
    return verdict | {
        "position": len(walk.word) if reason else None, "allowed": [option.text for option in allowed],
        "answers": [*answers],
    }  # fmt: skip


def compare(asked: Asked) -> Parts:
    """How the rules in the editor differ from another version: a shortest plan that only one of them has."""
    try:
        now, before = asked_rules(asked), asked_rules(asked, "other")
        found = differences(before.source, now.source)
    except FormalLLMError as error:
        yield {"part": "problems", "problems": [problem(error)]}
        return
    yield {
        "part": "differences", "equal": found.equal, "exact": found.exact, "up_to": found.up_to,
        "only_before": before.shown(found.only_one), "only_now": now.shown(found.only_other),
        "counts": [[row.length, str(row.one), str(row.other)] for row in found.counts if row.one or row.other],
    }  # fmt: skip
