"""Tools of a server that supports the Model Context Protocol (the optional extra ``mcp``)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from formal_llm.errors import MissingDependency, ToolError, ToolkitError
from formal_llm.tools.images import read_image
from formal_llm.tools.kinds import IMAGE, TEXT, Kind, kind_for
from formal_llm.tools.signature import Parameter, Signature
from formal_llm.tools.tool import Tool

if TYPE_CHECKING:
    from mcp import StdioServerParameters
    from mcp.client import Transport
    from mcp.server import MCPServer


@contextmanager
def mcp_tools(
    server: StdioServerParameters | MCPServer | Transport | str,
    *,
    names: Mapping[str, str] | None = None,
    outputs: Mapping[str, Kind | str] | None = None,
    timeout: float = 60.0,
    pages: int = 100,
    max_bytes: int = 16_000_000,
    pure: bool = False,
) -> Iterator[list[Tool]]:
    """Provide the tools of an MCP server, connected during the ``with`` block.

    The inputs of a tool are its required arguments: a string is a text, all else of the kind of its JSON type, such as
    ``int``. A model that calls the tool may set the other arguments, too, and reads the schema of the server. The
    output is a text unless ``outputs`` specifies ``"image"``: MCP does not declare it in advance.

    Args:
        server: a ``StdioServerParameters``, the address of a server, or anything else that ``mcp.Client`` accepts.
        names: the terminal of each tool, by its name on the server; only these tools are then used. Default: all,
            under their own names.
        outputs: the kinds of outputs, by the tool's name on the server.
        timeout: seconds allowed for one call, and for connecting and listing the tools together.
        pages: the maximum number of pages in which the server may list its tools.
        max_bytes: the size limit for one response of a server given by its address, after decompression.
        pure: whether the tools are pure: their results may be shared and cached.

    Raises:
        MissingDependency: the package ``mcp`` is not installed.
        ToolError: the server cannot be reached, or does not support MCP; ``reason`` is ``"timeout"`` if it is too slow.
        ToolkitError: the server lacks a tool that ``names`` or ``outputs`` mention, or the list of tools does not end
            or contains a tool twice.
    """
    try:
        from anyio.from_thread import start_blocking_portal
        from mcp import Client
    except ImportError as error:
        raise MissingDependency("MCP servers need its client: pip install 'formal-llm[mcp]'") from error
    begun = monotonic()
    with start_blocking_portal() as portal:
        http = _bounded_http(max_bytes) if isinstance(server, str) else None
        client = Client(server if http is None else _over_http(server, http), read_timeout_seconds=timeout)
        connection = portal.wrap_async_context_manager(_connect_client(client, http, timeout))
        with _report_unreachable(timeout):
            connection.__enter__()
        try:
            with _report_unreachable(timeout):
                found = portal.call(_list_tools, client, pages, timeout - (monotonic() - begun))
            yield _make_tools(found, partial(_ask_server, portal.call, timeout), client, names, outputs or {}, pure)
        finally:
            # Pass no exception: the client would wrap any exception of the block in groups of exceptions.
            connection.__exit__(None, None, None)


@asynccontextmanager
async def _connect_client(client: Any, http: Any, timeout: float) -> AsyncIterator[None]:
    """Provide a client that is connected during the block."""
    import asyncio

    async with AsyncExitStack() as stack:
        if http is not None:
            await stack.enter_async_context(http)
        async with asyncio.timeout(timeout):
            await stack.enter_async_context(client)
        yield


def _over_http(address: Any, http: Any) -> Transport:
    """Return the connection to a server by its address."""
    from mcp.client.streamable_http import streamable_http_client

    return streamable_http_client(str(address), http_client=http)


def _bounded_http(max_bytes: int) -> Any:
    """Return an HTTP client with a size limit on responses; the SDK limits the parts of an event stream."""
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        def __init__(self, stream: Any) -> None:
            self.stream, self.left = stream, max_bytes

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for part in self.stream:
                self.left -= len(part)
                if self.left < 0:
                    raise httpx2.DecodingError(f"its response has more than {max_bytes:,} bytes (max_bytes)")
                yield part

        async def aclose(self) -> None:
            await self.stream.aclose()

    class Transport(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            response = await super().handle_async_request(request)
            if response.headers.get("content-encoding", "identity") != "identity":
                await response.aclose()
                raise httpx2.DecodingError("its response is compressed, which it was asked not to be")
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                response.stream = Bounded(response.stream)
            return response

    # A server may be silent for long on a stream of events. Compressed data has no known size.
    patient = httpx2.Timeout(30, read=300)
    return httpx2.AsyncClient(transport=Transport(), timeout=patient, headers={"Accept-Encoding": "identity"})


async def _list_tools(client: Any, pages: int, timeout: float) -> dict[str, Any]:
    """Return the tools of a server by name."""
    import asyncio

    tools: dict[str, Any] = {}
    cursor: str | None = None
    async with asyncio.timeout(timeout):
        for _ in range(pages):
            page = await client.list_tools(cursor=cursor)
            for entry in page.tools:
                if entry.name in tools:
                    server = client.server_info.name if client.server_info else "(without a name)"
                    raise ToolkitError([f"the MCP server {server} lists two tools named {entry.name}"])
                tools[entry.name] = entry
            cursor = page.next_cursor
            if not cursor:
                return tools
    problem = f"the server lists its tools on more than {pages} pages"
    raise ToolkitError([f"{problem} ({len(tools)} tools so far); where that is meant, give more pages"])


@contextmanager
def _report_unreachable(timeout: float) -> Iterator[None]:
    """Report failures in the block as a server that cannot be reached."""
    try:
        yield
    except ToolkitError:
        raise
    except Exception as error:
        cause: BaseException = error
        while isinstance(cause, BaseExceptionGroup):  # the client's tasks wrap exceptions, level by level
            cause = cause.exceptions[0]
        is_late = _is_timeout(cause)
        problem = f"cannot be reached, or does not speak MCP: {type(cause).__name__}: {cause}"
        if is_late:
            problem = f"did not answer within {timeout:g} seconds; give a longer timeout"
        raise ToolError("the MCP server", problem, reason="timeout" if is_late else "failed", cause=cause) from error


def _is_timeout(error: BaseException) -> bool:
    from mcp.types import REQUEST_TIMEOUT

    return isinstance(error, TimeoutError) or getattr(error, "code", None) == REQUEST_TIMEOUT


def _ask_server(call: Callable[..., Any], timeout: float, request: Callable[[], Any]) -> Any:
    """Return the server's answer; raise ``TimeoutError`` if it is late, as everywhere."""
    try:
        return call(request)
    except Exception as error:
        if not _is_timeout(error):
            raise
        raise TimeoutError(f"the server did not answer within {timeout:g} seconds") from error


def _make_tools(
    found: Mapping[str, Any],
    ask: Callable[..., Any],
    client: Any,
    names: Mapping[str, str] | None,
    outputs: Mapping[str, Kind | str],
    pure: bool,
) -> list[Tool]:
    wanted = dict(names) if names is not None else {name: name for name in found}
    if absent := [name for name in {**wanted, **outputs} if name not in found]:
        raise ToolkitError([f"the server has no tool {name}; it has {', '.join(found)}" for name in absent])
    tools = []
    for name, terminal in wanted.items():
        call = partial(_call_tool, ask, client, name)
        tools.append(_make_tool(found[name], terminal, kind_for(outputs.get(name, TEXT)), call, pure))
    return tools


def _make_tool(
    entry: Any, terminal: str, output: Kind, call: Callable[[dict[str, Any], Kind], Any], pure: bool
) -> Tool:
    declared: Mapping[str, Any] = entry.input_schema
    parameters = []
    for name, schema in declared.get("properties", {}).items():
        kind, required = _find_kind(schema), name in declared.get("required", ())
        parameters.append(Parameter(name, kind, kind, required=required, by_position=required))
    signature = Signature(tuple(parameters), {"properties": {}, **declared})

    def call_server(*values: Any, **named: Any) -> Any:
        return call(dict(zip((one.name for one in signature.required), values, strict=True)) | named, output)

    return Tool(
        terminal,
        signature.inputs,
        output,
        call_server,
        description=(entry.description or "").strip().split("\n", 1)[0],
        version="mcp",
        pure=pure,
        parameters=tuple(one.name for one in signature.required),
        signature=signature,
    )


def _find_kind(schema: Any) -> Kind:
    """Return the kind of what a server declares: that of a JSON type."""
    name = schema.get("type") if isinstance(schema, Mapping) else None
    return kind_for(_CLASSES.get(name, Any) if isinstance(name, str) else Any)


_CLASSES: Mapping[str, type] = {
    "string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict,
}  # fmt: skip


def _call_tool(ask: Callable[..., Any], client: Any, name: str, arguments: dict[str, Any], output: Kind) -> Any:
    """Call a tool of the server and read the blocks of its answer."""
    answer = ask(partial(client.call_tool, name, arguments))
    texts = [block.text for block in answer.content if block.type == "text"]
    if answer.is_error:
        raise RuntimeError(" ".join(texts) or "the server says that the tool failed, not why")
    if output == IMAGE:
        pictures = [block.data for block in answer.content if block.type == "image"]
        if len(pictures) != 1:
            raise ValueError(f"the server returned {len(pictures)} images where one was expected")
        try:
            data = base64.b64decode(pictures[0], validate=True)
        except binascii.Error as error:
            raise ValueError(f"the server returned an image that is no base64: {error}") from None
        return read_image(data)
    if not texts:
        raise ValueError("the server returned no text")
    return "\n".join(texts)
