"""What is no tool is passed on: resources and prompts of the servers behind a guard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.types import (
    INVALID_PARAMS,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
)

from formal_llm.agents.guard.mcp.upstreams import Upstream


def register_passthrough(server: Server, upstreams: Sequence[Upstream]) -> None:
    """Let a server answer for the resources and prompts of those behind it; where none has any, it has none."""
    if any(one.has_capability("resources") for one in upstreams):
        _ResourceHandlers([one for one in upstreams if one.has_capability("resources")]).register_handlers(server)
    if any(one.has_capability("prompts") for one in upstreams):
        _PromptHandlers([one for one in upstreams if one.has_capability("prompts")]).register_handlers(server)


class _ResourceHandlers:
    def __init__(self, upstreams: Sequence[Upstream]) -> None:
        self.upstreams = upstreams

    def register_handlers(self, server: Server[Any]) -> None:
        server.add_request_handler("resources/list", PaginatedRequestParams, self.list_resources)
        server.add_request_handler("resources/templates/list", PaginatedRequestParams, self.list_templates)
        server.add_request_handler("resources/read", ReadResourceRequestParams, self.read_resource)

    async def list_resources(
        self, _: ServerRequestContext[Any], __: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        return ListResourcesResult(resources=[found for one in self.upstreams for found in await one.list_resources()])

    async def list_templates(
        self, _: ServerRequestContext[Any], __: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        found = [found for one in self.upstreams for found in await one.list_templates()]
        return ListResourceTemplatesResult(resource_templates=found)

    async def read_resource(
        self, _: ServerRequestContext[Any], params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        """The resource, of the first server that has it."""
        error: MCPError | None = None
        for one in self.upstreams:
            try:
                return await one.client.read_resource(params.uri)
            except MCPError as told:
                error = error or told
        raise error or MCPError(INVALID_PARAMS, f"there is no resource {params.uri}")


class _PromptHandlers:
    def __init__(self, upstreams: Sequence[Upstream]) -> None:
        self.upstreams = upstreams

    def register_handlers(self, server: Server[Any]) -> None:
        server.add_request_handler("prompts/list", PaginatedRequestParams, self.list_prompts)
        server.add_request_handler("prompts/get", GetPromptRequestParams, self.get_prompt)

    async def list_prompts(self, _: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=[found for one in self.upstreams for found in await one.list_prompts()])

    async def get_prompt(self, _: ServerRequestContext[Any], params: GetPromptRequestParams) -> GetPromptResult:
        """The prompt, of the first server that has one of that name."""
        for one in self.upstreams:
            if any(found.name == params.name for found in await one.list_prompts()):
                return await one.client.get_prompt(params.name, params.arguments)
        raise MCPError(INVALID_PARAMS, f"there is no prompt {params.name}")
