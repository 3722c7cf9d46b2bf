"""How long ``import formal_llm`` takes, and which heavy libraries it loads (none).

Run: python benchmarks/import_time.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from time import perf_counter

HEAVY = ["torch", "transformers", "openai", "anthropic", "networkx", "lark", "pydantic", "typer"]


def seconds(program: str) -> float:
    begin = perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)
    return perf_counter() - begin


def main() -> None:
    seconds("import formal_llm")  # writes the byte code
    times = [seconds("import formal_llm") - seconds("pass") for _ in range(11)]
    program = f"import sys, formal_llm; print([name for name in {HEAVY!r} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip()
    print(f"import formal_llm: {statistics.median(times):.3f} s (median of {len(times)}, above the bare interpreter)")
    print(f"heavy libraries loaded: {loaded}")


if __name__ == "__main__":
    main()
