"""A llama.cpp server for the measurements, run by a Python that has one: ``llama_server.py MODEL PORT``.

``xllamacpp`` is llama.cpp's own server in a wheel. ``llama-cpp-python[server]`` is another one over the same library,
which is built from C++ when it is installed; it is taken where the first is not there.
"""

from __future__ import annotations

import runpy
import sys
import time


def main() -> None:
    model, port = sys.argv[1:3]
    try:
        import xllamacpp
    except ImportError:
        options = ["--host", "127.0.0.1", "--port", port, "--n_ctx", "8192", "--logits_all", "true"]
        sys.argv = ["llama_cpp.server", "--model", model, *options]
        runpy.run_module("llama_cpp.server", run_name="__main__")
        return
    settings = xllamacpp.CommonParams()
    settings.model.path = model
    settings.port, settings.n_ctx, settings.n_parallel = int(port), 8192, 1
    settings.cpuparams.n_threads = 1
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
