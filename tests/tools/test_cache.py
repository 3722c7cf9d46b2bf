"""The cache on disk: whole entries or none, for several processes, within a bound, and harmless whatever is in it."""

from __future__ import annotations

import json
import os
import pathlib
import pickle
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

from formal_llm.tools import DiskCache
from formal_llm.tools.cache import CachedValue


def key(number: int) -> str:
    return f"{number:064x}"


def entry(number: int, size: int = 100) -> CachedValue:
    return CachedValue("text", f"c{number}", bytes([number % 256]) * size)


def test_what_is_put_in_comes_out(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "deep" / "cache")
    assert cache.get(key(1)) is None
    for data in (b"", b"\n\n", b"x\0\xff" * 1000):
        cache.put(key(1), CachedValue("text", "content", data))
        assert cache.get(key(1)) == CachedValue("text", "content", data)
        assert DiskCache(tmp_path / "deep" / "cache").get(key(1)) == CachedValue("text", "content", data)
    assert len(cache) == 1
    cache.remove(key(1))
    cache.remove(key(1))
    assert cache.get(key(1)) is None


def test_damaged_files_are_as_good_as_none(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.put(key(1), entry(1))
    (file,) = tmp_path.rglob("*.value")
    whole = file.read_bytes()
    head, _, _ = whole.partition(b"\n")
    for damaged in (
        b"",
        whole[:-1],
        whole[:20],
        whole + b"x",
        b"[" * 10_000 + whole,
        pickle.dumps({"format": "formal_llm.value/1"}),
        head.replace(b"value/1", b"value/9") + whole[len(head) :],
        b"null\n",
        json.dumps({"format": "formal_llm.value/1"}).encode() + b"\n",
    ):
        file.write_bytes(damaged)
        assert cache.get(key(1)) is None
        assert not file.exists()
        file.write_bytes(whole)
    assert cache.get(key(1)) == entry(1)


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, max_bytes=30_000)
    begin = time.time() - 1000
    for number in range(40):
        cache.put(key(number), entry(number, 1_000))
        for file in tmp_path.rglob(f"{key(number)}.value"):
            os.utime(file, (begin + number, begin + number))
        cache.get(key(0))  # always in use
    assert cache.size <= 30_000
    assert cache.get(key(0)) is not None
    assert cache.get(key(39)) is not None
    assert cache.get(key(5)) is None
    cache.put(key(99), entry(99, 31_000))
    assert cache.get(key(99)) is None


def test_leftovers_of_killed_processes_go_too(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.put(key(1), entry(1))
    folder = next(tmp_path.iterdir())
    old, new = folder / "old.part", folder / "new.part"
    old.write_bytes(b"half")
    new.write_bytes(b"half")
    os.utime(old, (1, 1))
    cache.trim()
    assert not old.exists()
    assert new.exists()
    assert cache.get(key(1)) is not None


def test_a_key_is_no_path(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache")
    cache.put("../../outside", entry(1))
    assert cache.get("../../outside") == entry(1)
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    for name in (f"{n:02x}" for n in range(256)):
        (tmp_path / name).write_text("in the way")
    cache.put(key(1), entry(1))
    assert cache.get(key(1)) is None


def test_threads_and_processes_share_a_folder(tmp_path: Path) -> None:
    """Four processes of four threads write, read and trim in one folder: nobody ever sees half an entry."""
    program = """
import sys, threading, random
from formal_llm.tools.cache import DiskCache, CachedValue
cache = DiskCache(sys.argv[1], max_bytes=60_000)
wrong = []
def work(seed):
    rng = random.Random(seed)
    for _ in range(150):
        n = rng.randrange(60)
        found = cache.get(f"{n:064x}")
        if found is not None and found != CachedValue("text", f"c{n}", bytes([n]) * 1500):
            wrong.append(n)
        cache.put(f"{n:064x}", CachedValue("text", f"c{n}", bytes([n]) * 1500))
threads = [threading.Thread(target=work, args=(int(sys.argv[2]) * 10 + t,)) for t in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print("wrong:", wrong)
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    running = [
        subprocess.Popen([*command, str(n)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for n in range(4)
    ]
    for process in running:
        out, err = process.communicate(timeout=60)
        assert (out.strip(), err) == ("wrong: []", "")
    cache = DiskCache(tmp_path, max_bytes=60_000)
    cache.trim()
    assert cache.size <= 60_000
    assert not list(tmp_path.rglob("*.part"))


def test_trimming_from_many_threads(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, max_bytes=5_000)
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for number in range(50):
                cache.put(key(seed * 100 + number), entry(number, 400))
                cache.trim()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    assert cache.size <= 5_000


def test_nothing_here_evaluates_or_unpickles() -> None:
    """No module of the package uses eval, exec, pickle, marshal, shelve or yaml."""
    import formal_llm.tools

    folder = pathlib.Path(formal_llm.tools.__file__).parent
    found = {
        (path.name, word)
        for path in folder.glob("*.py")
        for word in re.findall(
            r"(?<![\w.])(?:eval|exec|compile|__import__)\(|^\s*(?:import|from) (?:pickle|marshal|shelve|yaml|dill)",
            path.read_text(),
            re.MULTILINE,
        )
    }
    assert found == set()


def test_a_pipe_in_the_folder_is_not_waited_for(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.put(key(1), entry(1))
    (file,) = tmp_path.rglob("*.value")
    file.unlink()
    os.mkfifo(file)
    assert cache.get(key(1)) is None
    cache.put(key(1), entry(1))
    assert cache.get(key(1)) == entry(1)
    os.mkfifo(file.with_name("other.value"))
    cache.trim()
