"""Several processes: what they add up. (Whole runs: test_trainer.)"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from formal_llm.errors import TrainingError
from formal_llm.rltf.distributed import Processes, world

SCRIPT = """
import torch

from formal_llm.rltf.distributed import world

with world(2) as here:
    both, second, none = (torch.nn.Parameter(torch.zeros(2)) for _ in range(3))
    both.grad = torch.full((2,), 1.0 + here.rank)
    if here.rank == 1:
        second.grad = torch.ones(2)
    here.sum_gradients([both, second, none])
    assert both.grad.tolist() == [3, 3]
    assert second.grad.tolist() == [1, 1]
    assert none.grad is None
    assert here.gather({here.rank: here.first}) == {0: True, 1: False}
    assert here.own("abc") == list("ac" if here.first else "b")
"""


@pytest.mark.slow
def test_gradients_are_summed_where_there_are_any(tmp_path: Path) -> None:
    script = tmp_path / "sums.py"
    script.write_text(SCRIPT)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"}
    subprocess.run(launch, env=environment, check=True, timeout=300)


def test_the_number_of_processes_is_asserted() -> None:
    with pytest.raises(TrainingError, match="torchrun --nproc-per-node 2"), world(2):
        pass


def test_alone_there_is_nothing_to_exchange() -> None:
    with world() as here:
        assert here == Processes(0, 1)
        assert here.first
        assert here.own([1, 2, 3]) == [1, 2, 3]
        assert here.gather({"a": 1}) == {"a": 1}
        here.wait()
