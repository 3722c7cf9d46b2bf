"""What k rounds of tools cost, beside PydanticAI and LangGraph in the same run: requests, tokens read, CPU.

All three use the same tool and the same question, with a server on this machine whose model calls the tool k times and
then answers. PydanticAI uses OpenAI's SDK; LangGraph a chat model that sends what LangChain's own converters write.

Run: python benchmarks/tool_rounds.py
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from time import process_time
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.tool_server import Asked, ToolServer
from formal_llm.agents import Agent
from formal_llm.llms.hosted.openai import OpenAILLM
from formal_llm.tools import tool

QUESTION = "How long is the Danube, in all its parts together?"
ROUNDS, TIMES = (1, 3, 5), 20


def measure_length(part: int, unit: str = "km") -> float:
    """Returns the length of a part of the river.

    Args:
        part: the number of the part, from 0.
        unit: the unit of the length.
    """
    return {"km": 1.0, "m": 1000.0}[unit] * (part + 1)


def answer_after(rounds: int) -> Callable[[Asked], Any]:
    """A model that calls the tool in each of k rounds."""

    def act(asked: Asked) -> Any:
        done = len(asked.results)
        return ("", [(asked.tools[0], {"part": done, "unit": "km"})]) if done < rounds else ("2,850 km", [])

    return act


def make_ours(url: str) -> Callable[[], str]:
    llm = OpenAILLM("m", base_url=f"{url}/v1", api_key="k", max_retries=0)
    agent = Agent("react", llm, [tool(measure_length)])
    return lambda: agent.run(QUESTION).answer


def make_text(url: str) -> Callable[[], str]:
    """The same behaviour, with texts behind markers."""
    llm = OpenAILLM("m", base_url=f"{url}/v1", api_key="k", max_retries=0)
    agent = Agent("react", llm, [tool(measure_length)], native=False)
    return lambda: agent.run(QUESTION).answer


def make_pydantic_ai(url: str) -> Callable[[], str]:
    from pydantic_ai import Agent as PydanticAgent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    agent = PydanticAgent(OpenAIChatModel("m", provider=OpenAIProvider(base_url=f"{url}/v1", api_key="k")))
    agent.tool_plain(measure_length)
    return lambda: agent.run_sync(QUESTION).output


def make_langgraph(url: str) -> Callable[[], str]:
    from langchain.agents import create_agent
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, convert_to_openai_messages
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.tools import tool as langchain_tool
    from langchain_core.utils.function_calling import convert_to_openai_tool

    class Served(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "served"

        def bind_tools(self, tools: Any, **_: Any) -> Any:  # as of LangChain
            return self.bind(tools=[convert_to_openai_tool(one) for one in tools])

        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **options: Any) -> ChatResult:
            del stop, run_manager
            body = {"model": "m", "messages": convert_to_openai_messages(messages), "tools": options["tools"]}
            request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode())
            with urllib.request.urlopen(request) as response:
                message = json.load(response)["choices"][0]["message"]
            calls = [
                {"id": one["id"], "name": one["function"]["name"], "args": json.loads(one["function"]["arguments"])}
                for one in message.get("tool_calls") or ()
            ]
            made = AIMessage(message["content"] or "", tool_calls=calls)
            return ChatResult(generations=[ChatGeneration(message=made)])

    agent = create_agent(Served(), [langchain_tool(measure_length)])
    asked: Any = {"messages": [("user", QUESTION)]}
    return lambda: str(agent.invoke(asked)["messages"][-1].content)


def write_text_turn(rounds: int) -> Callable[[Asked], Any]:
    """A model that writes behind markers, and observes the stops."""

    def act(asked: Asked) -> Any:
        done = sum("[Observation]" in message["content"] for message in asked.body["messages"][1:])
        if done < rounds:
            arguments = json.dumps({"part": done, "unit": "km"})
            return f"[Thought] So.\n[Action] measure_length\n[Action Input] {arguments}\n", []
        return "[Final Thought] So.\n[Answer] 2,850 km", []

    return act


MAKERS = {
    "formal_llm, native calls": make_ours,
    "formal_llm, texts behind markers": make_text,
    "PydanticAI": make_pydantic_ai,
    "LangGraph": make_langgraph,
}


def main() -> None:
    table = Table(title=f"{', '.join(map(str, ROUNDS))} rounds of a tool: requests (tokens read), CPU ms a run")
    for column in ("", *(f"{rounds} rounds" for rounds in ROUNDS), f"CPU ms, {ROUNDS[-1]} rounds"):
        table.add_column(column, justify="right" if column else "left")
    with ToolServer(answer_after(1)) as server:
        for name, make in MAKERS.items():
            run, cells, spent = make(server.url), [], 0.0
            for rounds in ROUNDS:
                server.model = (write_text_turn if make is make_text else answer_after)(rounds)
                run()
                server.asked.clear()
                assert run() == "2,850 km"
                cells.append(f"{len(server.asked)} ({sum(asked.read for asked in server.asked):,})")
                begin = process_time()
                for _ in range(TIMES):
                    run()
                spent = (process_time() - begin) / TIMES
            table.add_row(name, *cells, f"{spent * 1e3:.1f}")
    Console(width=110).print(table)
    print("CPU includes the server's, which is the same for all.")


if __name__ == "__main__":
    main()
