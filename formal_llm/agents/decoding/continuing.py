"""Writing with a model that goes on with a text: what it writes is cut where it leaves the rules, and it goes on.

The method of Crouse et al. (arXiv 2310.08535, version of 2024, section 2.2): generate to a stop marker, or a chunk;
split at the markers; step the monitor; cut at the first marker that is not legal; append the longest common prefix of
the legal ones; go on. An agent that thinks, and may not answer before it has acted::

    written     [Thought] I know it. [Answer] 42
    legal       [Action]
    goes on     [Thought] I know it.
                [Action]

Where the model goes on from that prefix with no legal marker either, it is asked a numbered question if it answers such
questions. Otherwise the prefix is lengthened by what still fits, and where nothing does, the run takes the shortest way
to its end. A marker that alone is legal is put there without a request. All but the last is on record as a correction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from formal_llm.agents.decoding.continued_run import ContinuingRun
from formal_llm.agents.decoding.manner import MarkedWriter
from formal_llm.agents.decoding.steps import Steps
from formal_llm.agents.decoding.writer import ContentOf, Told
from formal_llm.agents.monitor import Monitor
from formal_llm.agents.transcript import Transcript
from formal_llm.llms.generation import ContinuingLLM
from formal_llm.llms.llm import LLM


class ContinuingWriter(MarkedWriter):
    """Has a model that goes on with a text write the states of an agent; see ``MarkedWriter`` for how it is made.

    A model that also answers questions is asked one where it does not find a legal way by itself. What is streamed is
    closed as soon as it is cut.

    Raises:
        WritesNoText: the model does not go on with a text.
    """

    needs = ContinuingLLM

    def steps(
        self,
        transcript: Transcript,
        monitor: Monitor,
        *,
        until: Collection[str] = (),
        contents: Mapping[str, ContentOf] | None = None,
    ) -> Steps[Told]:
        """Go on where a transcript ends, see :meth:`~formal_llm.agents.decoding.writer.Writer.steps`."""
        chooses = isinstance(self.llm, LLM)
        run = ContinuingRun(self.manner, transcript, monitor, frozenset(until), contents or {}, chooses=chooses)
        return run.relay_to_end()
