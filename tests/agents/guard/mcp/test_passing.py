"""Resources and prompts behind a guard; what a client gets of them is tested with the proxy."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("mcp", reason="the extra 'mcp' is not installed")

from mcp import MCPError

from tests.agents.guard.mcp.shop_server import shop
from tests.agents.guard.mcp.test_proxy import guarded


def test_what_no_server_has() -> None:
    async def work() -> None:
        async with guarded("pay: pay\nrule one: at most 1 pay\n", shop("a"), shop("b")) as (client, _):
            assert len((await client.list_resources()).resources) == 2
            with pytest.raises(MCPError):
                await client.read_resource("shop://nowhere")
            with pytest.raises(MCPError, match="no prompt"):
                await client.get_prompt("nothing")

    asyncio.run(asyncio.wait_for(work(), 60))
