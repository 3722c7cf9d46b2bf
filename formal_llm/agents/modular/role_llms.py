"""Several models as one: each request names its role."""

from __future__ import annotations

from collections.abc import Mapping

from formal_llm.agents.modular.run import Role
from formal_llm.errors import WritesNoText
from formal_llm.llms.generation import Writing
from formal_llm.llms.llm import AsyncLLM, aanswered
from formal_llm.llms.objects import Writer, written
from formal_llm.llms.question import Answer, Question


class RoleRequest(Writing):
    """A request for a text of the model that has a role.

    Args:
        role: whose it is.
    """

    __slots__ = ("role",)

    def __init__(self, asked: Writing, role: Role) -> None:
        super().__init__(
            asked.messages, max_tokens=asked.max_tokens, stop=asked.stop, temperature=asked.temperature,
            schema=asked.schema, task=asked.task, walk=asked.walk,
        )  # fmt: skip
        self.role: Role = role

    @property
    def content(self) -> dict[str, object]:
        """What the writer is shown, and who it is, as JSON data."""
        return {**super().content, "role": self.role}


class RoleLLMs:
    """The models of an agent, by their roles: each is asked what is for it."""

    takes_text = True

    def __init__(self, llms: Mapping[Role, Writer]) -> None:
        self._llms = dict(llms)
        names = {role: getattr(llm, "name", type(llm).__name__) for role, llm in self._llms.items()}
        self.name = ", ".join(dict.fromkeys(map(str, names.values())))
        known = {role: getattr(llm, "identity", None) or names[role] for role, llm in self._llms.items()}
        #: What its answers depend on.
        self.identity: dict[str, object] = {"llm": self.name, "roles": known}
        if any(isinstance(llm, AsyncLLM) for llm in self._llms.values()):
            self.achoose, self.aclose = self._choose_async, self._close_async

    def choose(self, question: Question) -> Answer:
        """What the model writes whose request it is."""
        asked, llm = self._find_llm(question)
        return written(llm, asked)

    async def _choose_async(self, question: Question) -> Answer:
        asked, llm = self._find_llm(question)
        answer: Answer = await aanswered(llm, asked)  # type: ignore[arg-type]  # it is asked for texts alone
        return answer

    async def _close_async(self) -> None:
        for llm in dict.fromkeys(self._llms.values()):
            if isinstance(llm, AsyncLLM):
                await llm.aclose()

    def _find_llm(self, question: Question) -> tuple[RoleRequest, Writer]:
        if not isinstance(question, RoleRequest):
            raise WritesNoText(self, "choose")
        return question, self._llms[question.role]
