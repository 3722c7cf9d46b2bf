"""Our procedures of SOPBench's domains, and the benchmark itself where a copy of it is beside the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm.errors import InputError
from formal_llm.guard import Guard
from formal_llm.packs.sop import benchmark
from formal_llm.packs.sop.benchmark import DOMAINS, SopBench, SopSettings, build_procedure, load_domain, run_case
from formal_llm.procedures import Procedure, check_evidence, compile_guard_rules, write_evidence

FOLDER = Path(__file__).parents[4] / "shared" / "data" / "sopbench"
needs_copy = pytest.mark.skipif(not FOLDER.is_dir(), reason="no copy of SOPBench beside the repository")


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_procedures_print_and_read_and_compile(domain: str) -> None:
    procedure = load_domain(domain)
    again = Procedure.from_string(str(procedure))
    assert (again.tools, again.facts, again.constants) == (procedure.tools, procedure.facts, procedure.constants)
    assert procedure.holes == ()
    assert len(compile_guard_rules(procedure).names) >= 10


def test_a_folder_without_the_benchmark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no env/evaluator\.py"):
        SopBench(tmp_path)


#: These need a card whose number the environment never finds: it keeps cards in a list, and looks them up by number.
IMPOSSIBLE = {
    *(("cancel_credit_card", number) for number in (0, 3, 5, 7, 10, 14)), ("get_credit_card_info", 0),
    ("pay_bill_with_credit_card", 0), ("pay_bill_with_credit_card", 2),
}  # fmt: skip


@needs_copy
@pytest.mark.parametrize("domain", DOMAINS)
def test_every_third_case_passes_officially_with_the_goal_given_and_a_user_who_presses(domain: str) -> None:
    bench, procedure = SopBench(FOLDER), load_domain(domain)
    failed = set()
    for case in bench.read_cases(domain)[::3]:
        result = run_case(bench, procedure, case, SopSettings("test:random", goals_given=True, presses=True))
        evidence = write_evidence(build_procedure(procedure, case), result.outcome)
        assert check_evidence(evidence) == []
        if not result.passed:
            failed.add((case.goal, case.number))
    assert failed <= (IMPOSSIBLE if domain == "bank" else set())


@needs_copy
def test_a_recorded_run_against_its_procedure_is_stopped() -> None:
    bench, procedure = SopBench(FOLDER), load_domain("dmv")
    cases = {(case.goal, case.number): case for case in bench.read_cases("dmv")}
    counts = {"pass": [0, 0], "against": [0, 0]}
    guards: dict[tuple[str, int], Guard] = {}
    for place, run in enumerate(benchmark.read_recorded_runs(FOLDER / "dmv_runs.jsonl.gz")):
        if place % 40:
            continue
        key = run.goal, run.number
        guard = guards.setdefault(key, Guard(compile_guard_rules(build_procedure(procedure, cases[key]))))
        kind = "pass" if run.verdicts["success"] else "against" if run.acts_against else ""
        if kind:
            counts[kind][benchmark.find_refused_call(guard, run) is not None] += 1
    assert counts["pass"][0] >= 0.97 * sum(counts["pass"])
    assert counts["against"][1] >= 0.97 * sum(counts["against"])
