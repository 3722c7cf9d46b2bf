"""A person answers, on the terminal."""

from __future__ import annotations

import sys
from typing import TextIO

from formal_llm.errors import LLMError
from formal_llm.llms.question import Answer, Question


class Person:
    """Shows each question and reads a line for an answer. A bad line is asked again by the caller."""

    def __init__(self, reads: TextIO | None = None, writes: TextIO | None = None) -> None:
        self._reads = reads
        self._writes = writes

    def choose(self, question: Question) -> Answer:
        """The answer that was typed.

        Raises:
            InvalidAnswer: the line is no answer.
            LLMError: the input ended.
        """
        reads, writes = self._reads or sys.stdin, self._writes or sys.stderr
        writes.write(f"\n{question.prompt}\n> ")
        writes.flush()
        line = reads.readline()
        if not line:
            raise LLMError("the input ended before the plan was finished")
        return question.read(line.rstrip("\n"))
