"""The protocols that the test server speaks: what a model chose, in the form of each provider's response.

A request costs the same in all of them, as far as they count it; see ``INPUT_TOKENS`` and the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.llms.hosted.protocol_server import Behaviour

#: What every answered request costs, and how much of its input went through the cache, where that is counted.
INPUT_TOKENS, OUTPUT_TOKENS, FROM_CACHE, INTO_CACHE = 100, 7, 20, 10

Body = dict[str, Any]


def as_json(numbers: tuple[int, ...], several: bool) -> str:
    """An answer of the JSON schema."""
    return json.dumps({"choices": list(numbers)} if several else {"choice": numbers[0]})


def error(path: str, message: str) -> Body:
    """An error, as the server behind a path says it."""
    if path in ("/api/chat", "/api/generate"):
        return {"error": message}
    return {"type": "error", "error": {"type": "some_error", "message": message}}


def openai_chat(behaviour: Behaviour, body: Body) -> Body:
    """Chat completions, of OpenAI, vLLM and llama.cpp: what is written depends on the guarantee that was asked for."""
    refused = behaviour.stop == "refusal"
    finish_reason = {"truncated": "length", "filtered": "content_filter"}.get(behaviour.stop, "stop")
    written = _written(behaviour, body)
    message = {"role": "assistant", "content": None if refused else written, "refusal": written if refused else None}
    choice = {"index": 0, "finish_reason": finish_reason, "message": message, "logprobs": None}
    if body.get("logprobs") and behaviour.logprobs is not None:
        choice["logprobs"] = {"content": behaviour.logprobs, "refusal": None}
    usage = {
        "prompt_tokens": INPUT_TOKENS,
        "completion_tokens": OUTPUT_TOKENS,
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        "prompt_tokens_details": {"cached_tokens": FROM_CACHE, "cache_write_tokens": INTO_CACHE},
    }
    top = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "test-model"}
    return {**top, "choices": [choice], "usage": usage}


def _written(behaviour: Behaviour, body: Body) -> str:
    if behaviour.text is not None:
        return behaviour.text
    if "response_format" in body:
        properties = body["response_format"]["json_schema"]["schema"]["properties"]
        return as_json(behaviour.numbers, "choices" in properties)
    if "json" in body.get("structured_outputs", {}):
        return as_json(behaviour.numbers, several=True)
    return ",".join(map(str, behaviour.numbers))


def openai_decisions(behaviour: Behaviour, body: Body) -> Body:
    """OpenAI's decisions."""
    answers: list[Body] = []
    for question in body["questions"]:
        name = question["name"]
        if behaviour.stop == "refusal":
            answers.append({"type": "refusal", "name": name})
        elif question["type"] == "predicate":
            answers.append({"type": "predicate", "name": name, "probability": _likely(behaviour, int(name))})
        else:
            values = [choice["value"] for choice in question["choices"]]
            shares = [{"value": value, "probability": _share(behaviour, int(value), len(values))} for value in values]
            choice = str(behaviour.numbers[0])
            answers.append(
                {"type": "choice", "name": name, "choice": choice, "confidence": 0.7, "probabilities": shares}
            )
    usage = {
        "input_tokens": INPUT_TOKENS,
        "output_tokens": OUTPUT_TOKENS,
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        "input_tokens_details": {"cached_tokens": FROM_CACHE, "cache_write_tokens": INTO_CACHE},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return {"model": "test-model", "answers": answers, "usage": usage}


def anthropic_messages(behaviour: Behaviour, body: Body) -> Body:
    """Anthropic's messages."""
    refused = behaviour.stop == "refusal"
    content: list[Body] = [{"type": "thinking", "thinking": "Is it 3?", "signature": "s"}]
    if behaviour.text is None:
        schema = body["tools"][0]["input_schema"] if "tools" in body else body["output_config"]["format"]["schema"]
        written = as_json(behaviour.numbers, "choices" in schema["properties"])
        if "tools" in body:
            used = {"type": "tool_use", "id": "toolu_1", "name": "choose", "input": json.loads(written)}
            content.append(used)
        else:
            content.append({"type": "text", "text": written})
    elif behaviour.text and not refused:
        content.append({"type": "text", "text": behaviour.text})
    stopped = {"refusal": "refusal", "truncated": "max_tokens"}.get(behaviour.stop, "end_turn")
    details = {"type": "refusal", "category": None, "explanation": behaviour.text} if refused else None
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "test-model",
        "content": content,
        "stop_reason": stopped,
        "stop_details": details,
        "stop_sequence": None,
        # The same total of input tokens, some of them through the cache.
        "usage": {
            "input_tokens": INPUT_TOKENS - FROM_CACHE - INTO_CACHE,
            "cache_creation_input_tokens": INTO_CACHE,
            "cache_read_input_tokens": FROM_CACHE,
            "output_tokens": OUTPUT_TOKENS,
        },
    }


def ollama_chat(behaviour: Behaviour, body: Body) -> Body:
    """Ollama's chat."""
    written = behaviour.text
    if written is None:
        written = as_json(behaviour.numbers, "choices" in body["format"]["properties"])
    response: Body = {
        "model": "test-model",
        "created_at": "2026-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": written},
        "done": True,
        "done_reason": "length" if behaviour.stop == "truncated" else "stop",
        "prompt_eval_count": INPUT_TOKENS,
        "eval_count": OUTPUT_TOKENS,
    }
    if body.get("logprobs") and behaviour.logprobs is not None:
        response["logprobs"] = behaviour.logprobs
    return response


def ollama_generate(behaviour: Behaviour, body: Body) -> Body:
    """Ollama's raw generation."""
    made = ollama_chat(behaviour, body)
    return {**made, "response": stopped(made["message"]["content"], body["options"])[0]}


def completions(behaviour: Behaviour, body: Body) -> Body:
    """Completions of vLLM: told to, it leaves the stop in the text."""
    written, stop = stopped(behaviour.text or "", body)
    if stop and body.get("include_stop_str_in_output"):
        written += stop
    finish = "length" if behaviour.stop == "truncated" else "stop"
    choice = {"index": 0, "text": written, "finish_reason": finish, "stop_reason": stop or None}
    return {"choices": [choice], "usage": {"prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS}}


def llamacpp(behaviour: Behaviour, body: Body) -> Body:
    """The completion of llama.cpp's own server."""
    written, stop = stopped(behaviour.text or "", body)
    kind = "limit" if behaviour.stop == "truncated" else "word" if stop else "eos"
    told = {"stop_type": kind, "stopping_word": stop}
    return {
        "content": written,
        "stop": True,
        **told,
        "tokens_evaluated": INPUT_TOKENS,
        "tokens_predicted": OUTPUT_TOKENS,
    }


def nothing(_: Behaviour, __: Body) -> Body:
    """Of paths whose answers the tests write themselves."""
    return {}


def stopped(text: str, body: Body) -> tuple[str, str]:
    """A text up to its first stop, and that stop."""
    found = min(((text.find(one), one) for one in body.get("stop", ()) if one in text), default=None)
    return (text, "") if found is None else (text[: found[0]], found[1])


def streamed(path: str, response: Body) -> str:
    """A response as the events of a stream."""
    if path == "/v1/messages":
        return _anthropic_events(response)
    if path == "/completion":
        text = response["content"]
        events = [{"content": text[at : at + 2], "stop": False} for at in range(0, len(text), 2)]
        return "".join(f"data: {json.dumps(event)}\n\n" for event in [*events, {**response, "content": ""}])
    if path in ("/api/chat", "/api/generate"):
        return _ollama_lines(path, response)
    choice = response["choices"][0]
    chat = "message" in choice
    text = (choice["message"]["content"] if chat else choice["text"]) or ""
    parts = [text[at : at + 2] for at in range(0, len(text), 2)]
    events = [{"choices": [{"delta": {"content": part}} if chat else {"text": part}]} for part in parts]
    last = {"delta": {}} if chat else {"text": "", "stop_reason": choice["stop_reason"]}
    events.append({"choices": [{**last, "finish_reason": choice["finish_reason"]}]})
    events.append({"choices": [], "usage": response["usage"]})
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


def _ollama_lines(path: str, response: Body) -> str:
    """Lines of JSON, not the events of a page."""
    text = response["response"] if path == "/api/generate" else response["message"]["content"]

    def part(said: str) -> Body:
        return {"response": said} if path == "/api/generate" else {"message": {"role": "assistant", "content": said}}

    lines = [{**part(text[at : at + 2]), "done": False} for at in range(0, len(text), 2)]
    return "".join(f"{json.dumps(line)}\n" for line in [*lines, {**response, **part("")}])


def _anthropic_events(response: Body) -> str:
    text = "".join(block["text"] for block in response["content"] if block["type"] == "text")
    usage = {**response["usage"], "output_tokens": 1}
    events: list[Body] = [{"type": "message_start", "message": {**response, "content": [], "usage": usage}}]
    events.append({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    events += [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text[at : at + 2]}}
        for at in range(0, len(text), 2)
    ]
    events.append({"type": "content_block_stop", "index": 0})
    ended = {"stop_reason": response["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": OUTPUT_TOKENS}})
    events.append({"type": "message_stop"})
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def _share(behaviour: Behaviour, number: int, count: int) -> Any:
    """The probability of an option among ``count``: 0.7 for the chosen one, if the behaviour has nothing else."""
    if behaviour.probabilities is not None:
        return behaviour.probabilities[number]
    return 0.7 if number == behaviour.numbers[0] else 0.3 / (count - 1)


def _likely(behaviour: Behaviour, number: int) -> Any:
    """The probability of a statement about an option."""
    if behaviour.probabilities is not None:
        return behaviour.probabilities[number]
    return 0.9 if number in behaviour.numbers else 0.2


#: What is spoken at which path.
PATHS: dict[str, Callable[[Any, Body], Body]] = {
    "/v1/chat/completions": openai_chat,
    "/v1/decisions": openai_decisions,
    "/v1/messages": anthropic_messages,
    "/api/chat": ollama_chat,
    "/api/generate": ollama_generate,
    "/v1/completions": completions,
    "/completion": llamacpp,
    "/tokenize": nothing,
    "/apply-template": nothing,
}
