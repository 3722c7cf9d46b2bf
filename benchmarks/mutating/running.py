"""Runs test files over mutants of a module: one process imports and collects, and each mutant is run in a copy of it.

For one test file there are up to three kinds of process, each a copy (``os.fork``) of the one before:

1. The *root* has imported what is not ours: pytest, numpy, torch where it is needed. It never imports formal_llm.
2. The *server* has collected the tests, and so has imported the library.
3. A *run* executes tests: once unmutated, to record which test executes which line and how long it takes; then once for
   each mutant, with the code of the functions replaced, and only the tests that execute the mutated line.

A mutant on a line that is executed while modules are imported is run *cold*: the changed file is written into a copy of
the repository, and a new copy of the root imports it. So is one that the first runs did not notice where tests start
programs, whose lines are not recorded.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import math
import os
import resource
import shutil
import signal
import sys
import threading
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks.mutating.mutations import Mutant

#: Where the lines are recorded that are executed while the tests are collected.
IMPORTED = "imported"
#: Exit codes of a run: tests passed, a test failed, something else went wrong, all tests are skipped.
PASSED, FAILED, BROKEN, NO_TESTS = 0, 1, 3, 5
#: What is added to the name of a test that takes too long.
ENDLESS = " (does not end)"
#: The most memory of a run, in bytes.
MEMORY = 12 << 30
_COPIED = shutil.ignore_patterns(".git", ".venv", "build", "dist", ".*_cache", ".hypothesis", "_build")


@dataclass
class Baseline:
    """What the unmutated tests do: which lines of the module each executes, and for how many seconds.

    ``lines`` has a list for each test, and one under ``IMPORTED``. ``programs`` records whether any test started one.
    ``modules`` are the names of foreign modules that were imported.
    """

    lines: dict[str, list[int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    programs: bool = False
    modules: list[str] = field(default_factory=list)

    def executes(self, test: str, mutant: Mutant) -> bool:
        """Whether a test, or the import, executes the statement of a mutant."""
        return any(mutant.first <= line <= mutant.last for line in self.lines.get(test, ()))

    def covering(self, mutant: Mutant) -> list[str]:
        """The tests that execute a mutant's statement, the quickest first."""
        found = [test for test in self.seconds if self.executes(test, mutant)]
        return sorted(found, key=lambda test: self.seconds[test])

    def limit(self, tests: Sequence[str]) -> float:
        """The seconds after which a run of tests counts as endless."""
        return 60 + 10 * sum(self.seconds[test] for test in tests) if tests else 1200


@dataclass(frozen=True)
class Outcome:
    """How a mutant ended: ``noticed`` (``by`` a test, or for the time it took), ``survived`` or ``never run``."""

    mutant: Mutant
    outcome: str
    by: str = ""


class TestsFail(Exception):
    """Tests that fail without any mutant; the text is the end of what pytest printed."""


class Runner:
    """Runs test files in a copy of a repository.

    Args:
        root: The repository.
        folder: Where the copy and the files of the tests go; made if it is missing. No two runners share one.
        minutes: How long the mutants of one module may take; those that are left then have no outcome.
    """

    def __init__(self, root: Path, folder: Path, minutes: float = math.inf) -> None:
        self.root, self.folder, self.minutes = root, folder, minutes
        self.end = math.inf
        self.copy = folder / "copy"
        temporary = folder / "tmp"
        self.clean()
        temporary.mkdir(parents=True)
        # A copy of a run before is taken up again, for the compiled files in it; files that are gone are removed.
        shutil.copytree(root, self.copy, ignore=_COPIED, symlinks=True, dirs_exist_ok=True)
        for path in [*self.copy.rglob("*.py")]:
            if not (root / path.relative_to(self.copy)).exists():
                path.unlink()
        os.environ |= {"PYTHONPATH": str(self.copy), "CI": "1", "OMP_NUM_THREADS": "1", "TMPDIR": str(temporary)}
        ours = (root, root / "benchmarks")
        sys.path[:] = [str(self.copy), *(path for path in sys.path if Path(path or ".").resolve() not in ours)]
        with contextlib.suppress(ImportError, AttributeError):
            # That a property fails is enough: its example need not be a short one.
            engine = importlib.import_module("hypothesis.internal.conjecture.engine")
            engine.ConjectureRunner.shrink_interesting_examples = lambda _: None

    def clean(self) -> None:
        """Remove what tests left behind."""
        for name in ("tmp", "files"):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def baseline(self, module: str, tests: str) -> Baseline:
        """Run the unmutated tests, recording lines.

        Raises:
            TestsFail: where they do not pass.
        """
        report = self.folder / "baseline.json"
        report.unlink(missing_ok=True)
        recorder = _Recorder(self.copy / module, report)
        code = self.fork(lambda: self._pytest(tests, recorder, recorder), 3600)
        if code != PASSED or not report.is_file():
            raise TestsFail(f"{tests}: exit code {code}\n{self._log()[-3000:]}")
        return Baseline(**json.loads(report.read_text()))

    def learn(self, modules: Sequence[str]) -> None:
        """Import foreign modules into the root, so that each run begins with them."""
        for name in modules:
            if name not in sys.modules:
                with contextlib.suppress(Exception):
                    importlib.import_module(name)
        gc.collect()
        gc.freeze()

    def run(self, module: str, tests: str, mutants: Sequence[Mutant], known: Baseline) -> Iterator[Outcome]:
        """The outcome of each mutant of a module."""
        self.end = time.monotonic() + 60 * self.minutes
        source = (self.copy / module).read_bytes()
        warm, cold = [], []
        for mutant in mutants:
            covering = known.covering(mutant)
            if known.executes(IMPORTED, mutant):
                rest = [test for test in known.seconds if test not in covering]
                cold.append((mutant, covering + rest))
            elif covering:
                warm.append((mutant, covering))
            elif known.programs:
                cold.append((mutant, list(known.seconds)))
            else:
                yield Outcome(mutant, "never run")
        for outcome in self._run_warm(module, tests, warm, known, source):
            rest = [test for test in known.seconds if not known.executes(test, outcome.mutant)]
            if outcome.outcome == "cold":
                cold.append((outcome.mutant, known.covering(outcome.mutant) + rest))
            elif outcome.outcome == "survived" and known.programs:
                # Those that execute the line in their own process passed, but may start programs as well.
                cold.append((outcome.mutant, rest + known.covering(outcome.mutant)))
            else:
                yield outcome
        for mutant, order in cold:
            if time.monotonic() > self.end:
                return
            yield self._run_cold(module, tests, mutant, order, known, source)

    def run_few(self, module: str, tests: str, mutants: Sequence[Mutant]) -> Iterator[Outcome]:
        """The same without a baseline, which is quicker for few mutants: all tests, in the order of the file.

        A test that fails is run again without the mutant; where it fails, too, TestsFail is raised. One that no test
        fails for is run again cold.
        """
        self.end = time.monotonic() + 60 * self.minutes
        source, known, modules = (self.copy / module).read_bytes(), Baseline(), self.folder / "modules.json"
        modules.unlink(missing_ok=True)
        for outcome in self._run_warm(module, tests, [(mutant, []) for mutant in mutants], known, source):
            if modules.is_file():
                self.learn(json.loads(modules.read_text()))
            if outcome.outcome == "noticed":
                yield outcome
            else:
                again = self._run_cold(module, tests, outcome.mutant, [], known, source)
                if again.outcome == "noticed" and again.by.startswith("tests"):
                    test = again.by.removesuffix(ENDLESS)
                    loop = _Loop([test], {}, self.folder / "by")
                    if self.fork(partial(self._pytest, tests, loop, None), known.limit([])) != PASSED:
                        raise TestsFail(f"{test} fails without a mutant\n{self._log()[-3000:]}")
                yield again

    def _run_warm(
        self, module: str, tests: str, mutants: Sequence[tuple[Mutant, list[str]]], known: Baseline, source: bytes
    ) -> Iterator[Outcome]:
        if not mutants:
            return
        report = self.folder / "warm.jsonl"
        report.unlink(missing_ok=True)
        server = _Server(self, self.copy / module, source, mutants, known, report)
        limit = sum(known.limit(order) for _, order in mutants) + 600
        code = self.fork(lambda: self._pytest(tests, server, None), limit)
        if code == NO_TESTS:
            raise TestsFail(f"{tests}: all tests are skipped here")
        lines = report.read_text().splitlines() if report.is_file() else []
        for (mutant, _), line in zip(mutants, lines, strict=False):
            yield Outcome(mutant, **json.loads(line))
        if code != PASSED or (len(lines) < len(mutants) and time.monotonic() < self.end):
            raise TestsFail(f"{tests}: the server ended with {code}\n{self._log()[-3000:]}")

    def _run_cold(
        self, module: str, tests: str, mutant: Mutant, order: list[str], known: Baseline, source: bytes
    ) -> Outcome:
        path, by = self.copy / module, self.folder / "by"
        by.unlink(missing_ok=True)
        before = path.stat()
        path.write_bytes(mutant.apply(source))
        os.utime(path, (before.st_atime + 1000, before.st_mtime + 1000))  # so that no compiled file fits
        try:
            code = self.fork(lambda: self._pytest(tests, _Loop(order, known.seconds, by), None), known.limit(order))
        finally:
            path.write_bytes(source)
            os.utime(path, (before.st_atime, before.st_mtime))
        return _judge(mutant, code, by)

    def _pytest(self, tests: str, plugin: object, recorder: _Recorder | None) -> int:
        """In a copy of the root: collect and run."""
        os.chdir(self.copy)
        for name in [name for name in sys.modules if name.split(".")[0] == "benchmarks"]:
            del sys.modules[name]  # the tests import those of the copy
        sys.dont_write_bytecode = isinstance(plugin, _Loop)  # of a mutant nothing is kept
        arguments = [
            tests, "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=native",
            "-W", "ignore::pytest.PytestAssertRewriteWarning", f"--basetemp={self.folder}/files",
        ]  # fmt: skip
        if recorder is not None:
            recorder.start()
        code = int(pytest.main(arguments, plugins=[plugin]))
        return code if code in (PASSED, FAILED, NO_TESTS) else BROKEN

    def _log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def fork(self, work: Callable[[], int], limit: float, *, session: bool = True) -> int:
        """The exit code of work in a copy of this process; negative where a signal ended it or the time was over."""
        child = os.fork()
        if not child:
            code = BROKEN
            try:
                if session:
                    os.setsid()
                    log = os.open(self.folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                    os.dup2(log, 1)
                    os.dup2(log, 2)
                    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
                else:
                    os.setpgid(0, 0)
                code = work()
            except BaseException as error:
                print(repr(error), file=sys.stderr)
            finally:
                sys.stderr.flush()
                os._exit(code)
        end, pause = time.monotonic() + limit, 0.001
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                break
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
                _, status = os.waitpid(child, 0)
                break
            time.sleep(pause)
            pause = min(pause * 1.5, 0.1)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)  # what it started and left behind
        return os.waitstatus_to_exitcode(status)


def _foreign_modules() -> list[str]:
    """The imported modules of installed packages and of the standard library."""
    files = [(name, getattr(module, "__file__", None) or "") for name, module in sys.modules.items()]
    return [name for name, file in files if "site-packages" in file or "/lib/python" in file]


def _judge(mutant: Mutant, code: int, by: Path) -> Outcome:
    if code == PASSED:
        return Outcome(mutant, "survived")
    test = by.read_text() if by.is_file() else "the import"
    return Outcome(mutant, "noticed", test if code >= 0 else f"{test}{ENDLESS}")


class _Loop:
    """A plugin of pytest: runs the tests in a given order till one fails, and writes down where it is.

    A test that takes much more processor time than without a mutant, or a minute where that is not known, ends the
    process. Without an order all tests are run.
    """

    def __init__(self, order: Sequence[str], seconds: dict[str, float], by: Path) -> None:
        self._order, self._seconds, self._by = order, seconds, by

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.execute(session)
        return True

    def execute(self, session: pytest.Session) -> None:
        items = {item.nodeid: item for item in session.items}
        chosen = [items[name] for name in self._order or items if name in items]
        for item, following in zip(chosen, [*chosen[1:], None], strict=False):
            self._by.write_text(item.nodeid)
            signal.setitimer(signal.ITIMER_PROF, 1 + 2 * self._seconds.get(item.nodeid, 20))
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                raise session.Failed("a test failed")
        signal.setitimer(signal.ITIMER_PROF, 0)


class _Recorder:
    """A plugin of pytest: records the lines of a module that are executed, by test."""

    def __init__(self, path: Path, report: Path) -> None:
        self._name, self._report = str(path), report
        self._now: set[int] = set()
        self._found = Baseline()
        self._lines: dict[str, set[int]] = {IMPORTED: self._now}

    def start(self) -> None:
        """Record from now on what is executed."""
        os.environ.pop("PYTEST_CURRENT_TEST", None)
        sys.addaudithook(self._audit)
        threading.settrace(self._trace)
        sys.settrace(self._trace)

    def _audit(self, event: str, _: object) -> None:
        if event in ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.fork"):
            self._found.programs = True

    def _trace(self, frame: types.FrameType, _: str, __: object) -> Any:  # as sys.settrace has it
        if frame.f_code.co_filename != self._name:
            return None
        self._now.add(frame.f_lineno)
        return self._line

    def _line(self, frame: types.FrameType, _: str, __: object) -> Any:
        self._now.add(frame.f_lineno)
        return self._line

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._now = self._lines.setdefault(item.nodeid, set())
        begin = time.process_time()
        sys.settrace(self._trace)
        try:
            return (yield)
        finally:
            self._found.seconds[item.nodeid] = time.process_time() - begin
            # What runs between two tests, in a thread say, belongs to none; it counts as run at import.
            self._now = self._lines[IMPORTED]

    def pytest_sessionfinish(self) -> None:
        sys.settrace(None)
        self._found.lines = {test: sorted(lines) for test, lines in self._lines.items()}
        self._found.modules = _foreign_modules()
        self._report.write_text(json.dumps(asdict(self._found)))


class _Server:
    """A plugin of pytest: once the tests are collected, runs them for each mutant in a copy of the process."""

    def __init__(
        self, runner: Runner, path: Path, source: bytes, mutants: Sequence[tuple[Mutant, list[str]]], known: Baseline,
        report: Path,
    ) -> None:  # fmt: skip
        self._runner, self._path, self._source, self._mutants = runner, path, source, mutants
        self._known, self._report = known, report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if not session.items:
            return True
        gc.unfreeze()
        functions = [
            one for one in gc.get_objects()
            if type(one) is types.FunctionType and one.__code__.co_filename == str(self._path)
        ]  # fmt: skip
        gc.freeze()
        by = self._runner.folder / "by"
        noticing = Counter[str]()
        with self._report.open("w") as report:
            for mutant, tests in self._mutants:
                if time.monotonic() > self._runner.end:
                    break
                # A test that noticed others comes early, too.
                order = sorted(tests, key=lambda test: self._known.seconds.get(test, 0) / (1 + 4 * noticing[test]))
                by.unlink(missing_ok=True)
                if codes := self._codes(mutant, functions):
                    code = self._runner.fork(
                        partial(self._execute, session, codes, order, by),
                        self._known.limit(order),
                        session=False,
                    )
                    outcome = _judge(mutant, code, by)
                    if not order and outcome.outcome == "noticed":
                        first = [outcome.by.removesuffix(ENDLESS)]
                        plain = self._runner.fork(
                            partial(self._execute, session, [], first, by), self._known.limit([]), session=False
                        )
                        outcome = outcome if plain == PASSED else Outcome(mutant, "cold")
                else:
                    outcome = Outcome(mutant, "cold")
                noticing[outcome.by] += 1
                print(json.dumps({"outcome": outcome.outcome, "by": outcome.by}), file=report, flush=True)
        (self._runner.folder / "modules.json").write_text(json.dumps(_foreign_modules()))
        return True

    def _execute(
        self,
        session: pytest.Session,
        codes: list[tuple[types.FunctionType, types.CodeType]],
        order: list[str],
        by: Path,
    ) -> int:
        for function, code in codes:
            function.__code__ = code
        try:
            _Loop(order, self._known.seconds, by).execute(session)
        except session.Failed:
            return FAILED
        return PASSED

    def _codes(
        self, mutant: Mutant, functions: list[types.FunctionType]
    ) -> list[tuple[types.FunctionType, types.CodeType]]:
        """The functions that the mutant changes, with their new code; none where it cannot be put in place."""
        old = list(_codes_in(compile(self._source, str(self._path), "exec", dont_inherit=True)))
        new = list(_codes_in(compile(mutant.apply(self._source), str(self._path), "exec", dont_inherit=True)))
        changed = [(a, b) for a, b in zip(old, new, strict=False) if a != b]
        if len(old) != len(new) or any(old.count(a) > 1 or a.co_freevars != b.co_freevars for a, b in changed):
            return []
        return [(function, b) for function in functions for a, b in changed if function.__code__ == a]


def _codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """A module's code, and that of all functions in it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _codes_in(const)
