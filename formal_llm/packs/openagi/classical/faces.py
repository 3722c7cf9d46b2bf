"""Detection of human faces by a cascade that OpenCV contains."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from formal_llm.packs.openagi.data.pixels import Pixels, resize_values

if TYPE_CHECKING:
    import cv2

#: The longer side of the searched picture; a face must fill about a thirtieth of it.
_SIDE = 800
#: The smallest face that the cascade detects, in pixels.
_LEAST = 24
#: A cascade keeps the state of its search, and branches of a plan run concurrently.
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class Face:
    """The square around a face, as shares of the width and height of the picture."""

    left: float
    top: float
    width: float
    height: float


def detection(image: Image.Image) -> str:
    """Find the faces in a picture: ``"2 faces"``, ``"1 face"``, ``"no faces"``.

    Only human faces seen from the front are detected (Viola and Jones 2001). A turned or covered face may be missed,
    and something else may be mistaken for a face.
    """
    count = len(find_faces(image))
    return "no faces" if count == 0 else "1 face" if count == 1 else f"{count} faces"


def find_faces(image: Image.Image) -> list[Face]:
    """Find the faces in a picture, from left to right."""
    luminance = Pixels.from_image(image).luminance
    factor = min(1.0, _SIDE / max(luminance.shape))
    height, width = (max(round(length * factor), 1) for length in luminance.shape)
    if min(height, width) < _LEAST:
        return []
    small = resize_values(luminance[..., None], width, height, Image.Resampling.BOX)[..., 0]
    gray = np.rint(small.clip(0, 1) * 255).astype(np.uint8)
    with _ONE_AT_A_TIME:
        squares = _load_cascade().detectMultiScale(gray, scaleFactor=1.1, minNeighbors=4, minSize=(_LEAST, _LEAST))
    found = [Face(left / width, top / height, wide / width, high / height) for left, top, wide, high in squares]
    return sorted(found, key=lambda face: (face.left, face.top))


@cache
def _load_cascade() -> cv2.CascadeClassifier:
    import cv2

    return cv2.CascadeClassifier(str(Path(cv2.__file__).parent / "data" / "haarcascade_frontalface_alt2.xml"))
