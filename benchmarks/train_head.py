"""Train the head of ``minilm-planner`` that is shipped: which OpenAGI tools a sentence calls for. Some minutes of CPU.

Run: make planner   (or python benchmarks/train_head.py FILE)
"""

from __future__ import annotations

import sys

from formal_llm import TaskPack
from formal_llm.llms.local.planner import load_encoder
from formal_llm.packs.training import labelled
from formal_llm.rltf.head_training import HeadSettings, train_head

if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
    sys.exit("usage: python benchmarks/train_head.py FILE.safetensors")
OUT = sys.argv[1]

pack = TaskPack.load("openagi")
sentences = labelled(pack, "sentences.toml + sentences.toml + training + rewordings.toml")
validation = labelled(pack, "sentences_validation.toml")
trained = train_head(
    pack.planner("test:random"), load_encoder(), sentences, validation, HeadSettings(epochs=30),
    neutral=[one["terminal"] for one in pack.data["inputs"].values()],
    on_epoch=lambda seed, epoch: print(f"seed {seed}, epoch {epoch}", file=sys.stderr),
)  # fmt: skip
trained.head.save(OUT)
print(f"{OUT}: seed {trained.seed}; {trained.exact} of {len(validation)} plans for validation are exact")
