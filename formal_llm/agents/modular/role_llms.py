"""Several models as one: each request names its role."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from formal_llm.agents.modular.run import Role
from formal_llm.errors import WritesNoText
from formal_llm.llms.llm import LLM
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.text_request import TextRequest
from formal_llm.llms.wrappers import Step, Wrapper


class RoleLLMs(Wrapper):
    """The models of an agent, by their roles: each is asked what is for it."""

    def __init__(self, llms: Mapping[Role, LLM]) -> None:
        self._llms = dict(llms)
        distinct = list(dict.fromkeys(self._llms.values()))
        super().__init__(distinct[0])
        names = {role: llm.name or type(llm).__name__ for role, llm in self._llms.items()}
        self.name = ", ".join(dict.fromkeys(names.values()))
        known = {role: llm.identity or names[role] for role, llm in self._llms.items()}
        self.identity = {"llm": self.name, "roles": known}
        self.at_once = max(llm.at_once for llm in distinct)
        self.blocks = all(llm.blocks for llm in distinct)

    def around(self, request: Question) -> Generator[Step, Any, Answer]:
        """Ask the model whose request it is."""
        if not isinstance(request, TextRequest) or request.role not in self._llms:
            raise WritesNoText(self, "choose")
        return (yield self._llms[request.role], request)  # type: ignore[no-any-return]
