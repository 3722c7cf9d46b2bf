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

from collections.abc import Collection, Iterator, Mapping

from formal_llm.agents.decoding.continued_run import ContinuedRun
from formal_llm.agents.decoding.next_states import Manner, Phrases, markers_of
from formal_llm.agents.decoding.writer import Bounds, ContentOf, Told, added
from formal_llm.agents.markers import Markers
from formal_llm.agents.monitor import Monitor
from formal_llm.agents.transcript import Transcript
from formal_llm.automata import Behaviour
from formal_llm.errors import WritesNoText
from formal_llm.llms.generation import ContinuingLLM


class ContinuingWriter:
    """Has a model that goes on with a text write the states of an agent (a ``Writer``).

    Args:
        llm: the model; one that also answers questions is asked one where it does not find a legal way by itself.
        markers: the markers of all states, or the behaviour that has them.
        instructions: the text before the run: the task, the tools, examples.
        bounds: how much may be taken.
        phrases: what it is asked in words.
        temperature: 0 for the most probable texts.
        streaming: whether texts are told while they are written, where the model can do that; what it writes is then
            closed as soon as it is cut.

    Raises:
        WritesNoText: the model does not go on with a text.
    """

    def __init__(
        self,
        llm: ContinuingLLM,
        markers: Markers | Behaviour,
        *,
        instructions: str = "",
        bounds: Bounds | None = None,
        phrases: Phrases | None = None,
        temperature: float = 0.0,
        streaming: bool = False,
    ) -> None:
        if not isinstance(llm, ContinuingLLM):
            raise WritesNoText(llm, "go on with a text", "use ChoosingWriter")
        self.llm = llm
        self.manner = Manner(
            markers_of(markers), instructions, bounds or Bounds(), phrases or Phrases(), temperature, streaming
        )

    def write(
        self,
        transcript: Transcript,
        monitor: Monitor,
        *,
        until: Collection[str] = (),
        contents: Mapping[str, ContentOf] | None = None,
    ) -> Iterator[Told]:
        """Go on where a transcript ends, see :meth:`~formal_llm.agents.decoding.writer.Writer.write`.

        Raises:
            WritingError: a bound was reached before the run could end; nothing can come next.
            LLMError: the model cannot be asked.
        """
        run = ContinuedRun(self.llm, self.manner, transcript, monitor, frozenset(until), contents or {})
        for told in run.steps():
            run.transcript = added(run.transcript, told)
            yield told
