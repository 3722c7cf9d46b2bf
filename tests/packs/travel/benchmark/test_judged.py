import pytest

from formal_llm.errors import InputError
from formal_llm.packs.travel.benchmark.cases import read_cases
from formal_llm.packs.travel.benchmark.judged import judge_submissions, rates_rows
from formal_llm.packs.travel.plan_days import Submission
from tests.packs.travel.benchmark.folders import SENTENCES, folder


@pytest.fixture
def cases(tmp_path):
    return read_cases(folder(tmp_path))


def test_each_plan_is_judged_by_its_own_query(cases):
    plans = [case.annotated for case in cases]
    by_text = judge_submissions([Submission(None, f" {SENTENCES[1]}", plans[1]), Submission(0, "", plans[0])], cases)
    assert [[one.final for one in judged.verdicts] for judged in by_text] == [[True, True], [True, True]]
    swapped = judge_submissions([Submission(1, "", plans[0]), Submission(0, "", plans[1])], cases)
    assert not any(verdict.final for judged in swapped for verdict in judged.verdicts)


def test_a_case_without_a_plan_has_none(cases):
    judged = judge_submissions([Submission(1, "", cases[1].annotated)], cases)
    official, strict = rates_rows("me", judged)
    assert official.rates.counts[0] == strict.rates.counts[0] == (1, 2)


@pytest.mark.parametrize(
    ("submissions", "said"),
    [
        ([Submission(2, "", ())], "submission 1: none of the 2 cases has index 2 (idx 3)"),
        ([Submission(1, "Elsewhere", ())], "submission 1: none of the 2 cases has the query 'Elsewhere'"),
        (
            [Submission(None, "", ())],
            "submission 1: without 'query', 'index' and 'idx' nobody knows what it answers",
        ),
        ([Submission(0, "", ()), Submission(0, "", ())], "submission 2: case 0 has a plan already"),
    ],
)
def test_submissions_that_belong_nowhere(cases, submissions, said):
    with pytest.raises(InputError) as error:
        judge_submissions(submissions, cases)
    assert str(error.value) == said
