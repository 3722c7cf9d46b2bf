"""A head on a sentence encoder that reads from one sentence which steps a plan for it needs.

The encoder gives each token of the sentence a state *x* of width *d*. A step *i* has the score

    s_i = logsumexp over tokens of (heat · w2_i · tanh(w1 x + b1) + b2_i) / heat  +  m_i · mean of x  +  c_i

which is the logarithm of the odds that the plan has the step: a soft maximum over the tokens, since one word often
decides, and the sentence as a whole. The steps are scored as independent; the rules make a plan of them
(``search="exact"``). The encoder stays as it is, so a head is small (90 kB for MiniLM and 15 steps) and trained in
seconds (:mod:`formal_llm.rltf.head_training`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formal_llm.errors import ModelError, ResourceNotFound

Floats = NDArray[np.float32]
#: The most bytes of a file.
_MOST = 200_000_000


@dataclass(frozen=True, eq=False)
class StepHead:
    """The weights of a head; ``[width]`` of the encoder, ``[hidden]``, ``[steps]``.

    Attributes:
        steps: the names of the steps that it scores.
        neutral: names that a plan may have besides, and that no sentence decides, such as inputs: their score is 0.
        heat: how hard the maximum over tokens is.
        inner: ``[hidden, width]``.
        inner_bias: ``[hidden]``.
        outer: ``[steps, hidden]``.
        mean: ``[steps, width]``.
        bias: ``[steps]``.
    """

    steps: tuple[str, ...]
    neutral: tuple[str, ...]
    heat: float
    inner: Floats
    inner_bias: Floats
    outer: Floats
    mean: Floats
    bias: Floats
    encoder: str = "minilm"

    def score(self, states: Floats) -> dict[str, float]:
        """Return the score of each step.

        Args:
            states: the encoder's last hidden states of one sentence, ``[tokens, width]``.
        """
        hidden = np.tanh(states @ self.inner.T + self.inner_bias)
        heated = self.heat * (hidden @ self.outer.T)
        top = heated.max(axis=0)
        scores = (top + np.log(np.exp(heated - top).sum(axis=0))) / self.heat
        scores += self.mean @ states.mean(axis=0) + self.bias
        return {**dict.fromkeys(self.neutral, 0.0), **dict(zip(self.steps, scores.tolist(), strict=True))}

    @property
    def arrays(self) -> dict[str, Floats]:
        """The arrays by name."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name not in _TEXTS}

    @property
    def fingerprint(self) -> str:
        """Six digits that identify the weights."""
        data = b"".join(array.astype(np.float16).tobytes() for array in self.arrays.values())
        return hashlib.sha256(data).hexdigest()[:6]

    def save(self, file: str | Path) -> None:
        """Write the head as safetensors, in half precision."""
        from safetensors.numpy import save

        texts = {name: getattr(self, name) for name in _TEXTS}
        arrays = {name: array.astype(np.float16) for name, array in self.arrays.items()}
        Path(file).write_bytes(save(arrays, {name: json.dumps(value) for name, value in texts.items()}))

    @classmethod
    def load(cls, file: str | Path) -> StepHead:
        """Read a head.

        Raises:
            ResourceNotFound: there is no such file.
            ModelError: the file is no head.
        """
        from safetensors import SafetensorError, safe_open

        path = Path(file)
        if not path.is_file():
            raise ResourceNotFound("planner", str(file), [])
        try:
            if path.stat().st_size > _MOST:
                raise ValueError(f"it has more than {_MOST:,} bytes")
            with safe_open(str(path), "numpy") as opened:
                texts = {name: json.loads(value) for name, value in (opened.metadata() or {}).items()}
                arrays = {name: opened.get_tensor(name).astype(np.float32) for name in opened.keys()}  # noqa: SIM118
            head = cls(
                tuple(texts["steps"]), tuple(texts["neutral"]), float(texts["heat"]), **arrays,
                encoder=str(texts.get("encoder", "minilm")),
            )  # fmt: skip
            _check_shapes(head)
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise ModelError(f"{file} is no head of a planner (TrainedHead.head.save): {error}") from error
        return head


#: The attributes that are no arrays.
_TEXTS = ("steps", "neutral", "heat", "encoder")


def _check_shapes(head: StepHead) -> None:
    hidden, width = head.inner.shape
    count = len(head.steps)
    wanted: Mapping[str, tuple[int, ...]] = {
        "inner_bias": (hidden,), "outer": (count, hidden), "mean": (count, width), "bias": (count,)
    }  # fmt: skip
    for name, shape in wanted.items():
        if head.arrays[name].shape != shape:
            raise ValueError(f"{name} has the shape {head.arrays[name].shape}, not {shape}")
    if not all(np.isfinite(array).all() for array in head.arrays.values()):
        raise ValueError("a weight is no number")
