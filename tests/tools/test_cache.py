"""Values on disk: what is damaged is as good as none, and a folder may be shared."""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path

from formal_llm.tools.cache import DiskCache


def key(number: int) -> str:
    return f"{number:064x}"


def test_what_is_put_in_comes_out(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "deep" / "cache", max_bytes=5_000)
    assert cache.get(key(1)) is None
    for data in (b"", b"\n\n", b"x\0\xff" * 1000):
        cache.put(key(1), data)
        assert cache.get(key(1)) == DiskCache(tmp_path / "deep" / "cache").get(key(1)) == data
    cache.put(key(2), b"x" * 5_001)
    assert cache.get(key(2)) is None
    cache.remove(key(1))
    cache.remove(key(1))
    assert cache.get(key(1)) is None


def test_damaged_files_are_as_good_as_none(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.put(key(1), b"value")
    (file,) = tmp_path.rglob("*.value")
    whole = file.read_bytes()
    for damaged in (b"", whole[:-1], whole[:20], whole + b"x", b"x" + whole[1:], b"[" * 10_000 + whole):
        file.write_bytes(damaged)
        assert cache.get(key(1)) is None
        assert not file.exists()
        file.write_bytes(whole)
    assert cache.get(key(1)) == b"value"
    file.unlink()
    os.mkfifo(file)  # which is not waited for
    assert cache.get(key(1)) is None
    cache.put(key(1), b"value")
    assert cache.get(key(1)) == b"value"


def test_a_key_is_no_path(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache")
    cache.put("../../outside", b"value")
    assert cache.get("../../outside") == b"value"
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    for name in (f"{n:02x}" for n in range(256)):
        (tmp_path / name).write_text("in the way")
    cache.put(key(1), b"value")
    assert cache.get(key(1)) is None


def test_threads_share_a_folder(tmp_path: Path) -> None:
    """Nobody ever sees half a value."""
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng, cache = random.Random(seed), DiskCache(tmp_path)
        for _ in range(100):
            n = rng.randrange(20)
            if cache.get(key(n)) not in (None, bytes([n]) * 1500):
                wrong.append(n)
            cache.put(key(n), bytes([n]) * 1500)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert wrong == []
    assert len([*tmp_path.rglob("*.value")]) == 20 and not [*tmp_path.rglob("*.part")]
