"""Serving the studio on this machine until Ctrl-C."""

from __future__ import annotations

import contextlib
import errno
import logging
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable

import uvicorn

from formal_llm.errors import FormalLLMError
from formal_llm.studio.opened import Opened
from formal_llm.studio.server import application
from formal_llm.studio.worker import Workers

HOST = "127.0.0.1"


class PortTaken(FormalLLMError):
    """Somebody listens at that port already."""

    def __init__(self, port: int) -> None:
        self.port = port
        super().__init__(f"port {port} is taken by another program; give another --port, or none to have a free one")


def listening(port: int) -> socket.socket:
    """A socket that listens at a port of this machine and of no other; 0 for any that is free.

    Raises:
        PortTaken: it is not free.
        FormalLLMError: it cannot be had for another reason.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.bind((HOST, port))
        sock.listen(64)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise PortTaken(port) from None
        raise FormalLLMError(f"port {port} cannot be used: {error.strerror or error}") from None
    return sock


class _Server(uvicorn.Server):
    """A server that ends the work on answers before it waits for them to be sent."""

    def __init__(self, config: uvicorn.Config, workers: Workers) -> None:
        super().__init__(config)
        self._workers = workers

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Shut down as any server does, once no worker computes an answer."""
        self._workers.close()
        # An answer that Ctrl-C cuts off is no error, and needs no traceback.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        await super().shutdown(sockets)


def serve(opened: Opened, port: int, announce: Callable[[str], None], *, browser: bool) -> None:
    """Serve a file's studio until it is interrupted.

    Args:
        opened: what is edited.
        port: where; 0 for any port that is free.
        announce: called with the address.
        browser: whether a browser is opened there.

    Raises:
        PortTaken: the port is not free.
    """
    with listening(port) as sock:
        port = sock.getsockname()[1]
        token = secrets.token_urlsafe(24)
        address = f"http://{HOST}:{port}/{token}/"
        # No log of accesses: it would hold the token.
        workers = Workers()
        config = uvicorn.Config(
            application(opened, workers, token, port), log_level="warning", access_log=False, server_header=False,
            timeout_graceful_shutdown=3, ws="none", lifespan="off",
        )  # fmt: skip
        announce(address)
        if browser:
            # A browser of the terminal would not come back before it is left.
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        with contextlib.suppress(KeyboardInterrupt):
            _Server(config, workers).run(sockets=[sock])
