"""The given training cases, where they are; tests that need them skip, visibly, where they are not."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).parents[3]
_PLACES = [place / "shared" / "data" / "travelplanner" for place in (_ROOT.parent, _ROOT.parent.parent)]
FOLDER = next((place for place in _PLACES if place.is_dir()), _PLACES[0])
needs_data = pytest.mark.skipif(not FOLDER.is_dir(), reason="the data of TravelPlanner is not on this machine")


@cache
def cases() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / "train.jsonl").read_text(encoding="utf-8").split("\n") if line]
