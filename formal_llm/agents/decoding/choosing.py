"""A writer for models that only chat: the next state is a numbered choice, its text is written and cut."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from formal_llm.agents.decoding.contents import FreeText, OneOf
from formal_llm.agents.decoding.writer import Began, ContentOf, Due, Spent, Text, Told
from formal_llm.agents.markers import Markers
from formal_llm.agents.monitor import Monitor
from formal_llm.agents.transcript import Correction, Segment, Transcript
from formal_llm.automata import Behaviour
from formal_llm.llms.generation import Writing
from formal_llm.llms.llm import LLM, answered, ask
from formal_llm.llms.question import Answer, Message, Question
from formal_llm.planning.plans.usage import Usage


class ChoosingWriter:
    """Writes the states of an agent by numbered choices."""

    def __init__(self, llm: LLM, behaviour: Behaviour, *, tools: str = "", examples: Sequence[Transcript] = ()) -> None:
        self.llm, self.behaviour = llm, behaviour
        self.markers = Markers.of(behaviour)
        shown = "\n".join(one.to_text(self.markers) for one in examples)
        states = ", ".join(state.text for state in behaviour.states.values())
        about = f"You write the states of an agent, each behind its marker: {states}."
        self._system = "\n\n".join(
            part for part in (about, tools and f"Tools:\n{tools}", shown and f"Examples:\n{shown}") if part
        )

    def write(
        self,
        transcript: Transcript,
        monitor: Monitor,
        *,
        until: Collection[str] = (),
        contents: Mapping[str, ContentOf] | None = None,
    ) -> Iterator[Told]:
        while allowed := [*monitor.allowed()]:
            mine = [name for name in allowed if name not in until]
            due = tuple(name for name in allowed if name in until)
            if not mine:
                yield Due(due)
                return
            options = [*mine, *due, *([""] if monitor.may_stop() else [])]
            state, forced = options[0], len(options) == 1
            if not forced:
                texts = [self.behaviour.states[name].text if name else "(the end)" for name in options]
                question = Question(
                    f"{transcript.to_text(self.markers)}\nWhat comes next?",
                    texts,
                    messages=[Message("system", self._system)],
                )
                answer = ask(self.llm, question)
                yield Spent("", _usage(answer, 1))
                state = options[answer.number - 1]
            if not state:
                return
            if state in due:
                yield Due((state,))
                return
            yield Began(state, forced)
            content = (contents or {}).get(state, FreeText())
            content = content(transcript) if callable(content) else content
            place = len(transcript)
            if isinstance(content, OneOf) and content.texts:
                text = content.texts[0]
                if len(content.texts) > 1:
                    question = Question(
                        f"{transcript.to_text(self.markers)}\nWhich one for {self.behaviour.states[state].text}?",
                        content.texts,
                        messages=[Message("system", self._system)],
                    )
                    answer = ask(self.llm, question)
                    yield Spent(state, _usage(answer, 1))
                    text = content.texts[answer.number - 1]
            else:
                marker = self.behaviour.states[state].text
                asked = f"{transcript.to_text(self.markers)}\nWrite the text behind {marker}, and nothing else."
                answer = answered(
                    self.llm, Writing([Message("system", self._system), Message("user", asked)], max_tokens=256)
                )
                yield Spent(state, _usage(answer, 0))
                text = answer.text.strip().removeprefix(marker)
                found = self.markers.search(text, 0)
                if found is not None:
                    after = monitor.after(state)
                    wrote = text[found[0] : found[1]]
                    states = self.markers.states[wrote]
                    if not any(after.allows(name) for name in states):
                        legal = tuple(
                            self.behaviour.states[name].text
                            for name in after.allowed()
                            if name in self.behaviour.states
                        )
                        yield Correction(place + 1, wrote, legal, "", f"{wrote} cannot come there")
                    text = text[: found[0]]
                text = text.strip()
            yield Text(text)
            segment = Segment(
                state, text, "forced" if isinstance(content, OneOf) and len(content.texts) == 1 else "model"
            )
            monitor = monitor.after(state)
            transcript = transcript.plus(segment)
            yield segment


def _usage(answer: Answer, questions: int) -> Usage:
    tokens = answer.usage
    return Usage(
        questions, requests=tokens.requests, input_tokens=tokens.input_tokens, output_tokens=tokens.output_tokens
    )
