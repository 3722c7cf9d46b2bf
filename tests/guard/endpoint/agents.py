"""Agents as people write them, around the real clients: they know nothing of the guard but the address."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import anthropic
import openai
import uvicorn
from starlette.applications import Starlette

from formal_llm.guard import Guard
from formal_llm.guard.endpoint.serving import Endpoint, EndpointSettings

#: Runs a tool: its name, its arguments, the id of its call.
RunTool = Callable[[str, Mapping[str, Any], str], str]
_SCHEMA = {"type": "object", "properties": {"order": {"type": "integer"}, "amount": {"type": "integer"}}}
_MOST_ROUNDS = 20


@contextmanager
def running(app: Starlette) -> Iterator[str]:
    """An application on a port of this machine; its address."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.005)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def endpoint_of(guard: Guard, upstream: str, **settings: Any) -> Iterator[str]:
    """An endpoint on a port of this machine, in front of a server; its address."""
    with running(Endpoint(guard, EndpointSettings(openai=upstream, anthropic=upstream, **settings)).build_app()) as url:
        yield url


def run_chat(urls: list[str], tools: tuple[str, ...], run_tool: RunTool, *, stream: bool = False) -> str:
    """An agent over chat completions; its last answer."""
    with openai.OpenAI(api_key="-", max_retries=0) as clients:
        offered: Any = [{"type": "function", "function": {"name": name, "parameters": _SCHEMA}} for name in tools]
        messages: list[Any] = [{"role": "user", "content": "pay order 7"}]
        for url in itertools.islice(itertools.cycle(urls), _MOST_ROUNDS):
            client = clients.with_options(base_url=f"{url}/v1")
            if stream:
                with client.chat.completions.stream(model="m", messages=messages, tools=offered) as events:
                    message = events.get_final_completion().choices[0].message
            else:
                answer = client.chat.completions.create(model="m", messages=messages, tools=offered)
                message = answer.choices[0].message  # type: ignore[assignment]
            messages.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
            if not message.tool_calls:
                return message.content or ""
            for call in message.tool_calls:
                assert call.type == "function"
                value = run_tool(call.function.name, json.loads(call.function.arguments), call.id)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": value})
    raise AssertionError("the agent never ends")


def run_responses(urls: list[str], tools: tuple[str, ...], run_tool: RunTool, *, stream: bool = False) -> str:
    """An agent over Responses; its last answer."""
    with openai.OpenAI(api_key="-", max_retries=0) as clients:
        offered: Any = [{"type": "function", "name": name, "parameters": _SCHEMA} for name in tools]
        items: list[Any] = [{"role": "user", "content": "pay order 7"}]
        for url in itertools.islice(itertools.cycle(urls), _MOST_ROUNDS):
            client = clients.with_options(base_url=f"{url}/v1")
            if stream:
                with client.responses.stream(model="m", input=items, tools=offered) as events:
                    response: Any = events.get_final_response()
            else:
                response = client.responses.create(model="m", input=items, tools=offered)
            items += [one.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for one in response.output]
            calls = [one for one in response.output if one.type == "function_call"]
            if not calls:
                return str(response.output_text)
            for call in calls:
                value = run_tool(call.name, json.loads(call.arguments), call.call_id)
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": value})
    raise AssertionError("the agent never ends")


def run_messages(urls: list[str], tools: tuple[str, ...], run_tool: RunTool, *, stream: bool = False) -> str:
    """An agent over Messages; its last answer."""
    with anthropic.Anthropic(api_key="-", max_retries=0) as clients:
        offered: Any = [{"name": name, "input_schema": _SCHEMA} for name in tools]
        messages: list[Any] = [{"role": "user", "content": "pay order 7"}]
        for url in itertools.islice(itertools.cycle(urls), _MOST_ROUNDS):
            client = clients.with_options(base_url=url)
            asked: Any = {"model": "m", "max_tokens": 100, "messages": messages, "tools": offered}
            if stream:
                with client.messages.stream(**asked) as events:
                    message: Any = events.get_final_message()
            else:
                message = client.messages.create(**asked)
            messages.append({"role": "assistant", "content": [one.model_dump() for one in message.content]})
            calls = [one for one in message.content if one.type == "tool_use"]
            if not calls:
                return "".join(one.text for one in message.content)
            results = [
                {"type": "tool_result", "tool_use_id": one.id, "content": run_tool(one.name, one.input, one.id)}
                for one in calls
            ]
            messages.append({"role": "user", "content": results})
    raise AssertionError("the agent never ends")


AGENTS = {"chat": run_chat, "responses": run_responses, "messages": run_messages}
