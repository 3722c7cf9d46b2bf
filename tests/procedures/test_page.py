"""The page of a run of a procedure."""

from __future__ import annotations

from formal_llm.procedures import Procedure, ProcedureOutcome, outcome_page, run_procedure
from tests.pictures.test_page import Tags

TEXT = """
check look(x) "Looks."
    cost 3
goal action act(x)
    look(x).size > 1
"""


def make_page(size: object, **known: int) -> tuple[str, Tags]:
    procedure = Procedure.from_string(TEXT)
    tools = {"look": lambda x: {"size": size}, "act": lambda x: "<b>done</b>"}
    outcome = run_procedure(procedure, "", None, tools, goal="act", known=known)
    page = outcome_page(procedure, outcome, request="Do <it>.", known=known)
    return page, Tags(page)


def test_the_result_comes_first_and_the_way_is_marked() -> None:
    page, shown = make_page(2, x=1)
    assert 'class="done"' in page
    assert shown.text.index("Done") < shown.text.index('"<b>done</b>"') < shown.text.index("Why")
    assert "look(x).size > 1: yes" in shown.text
    assert "Do <it>." in shown.text
    assert page.count("<strong>├─ yes ◀</strong>") == 1
    assert "Cost4" in shown.text
    assert not {"script", "b", "it", "img", "link"} & {*shown.tags}


def test_what_failed_is_named() -> None:
    page, shown = make_page(1, x=1)
    assert 'class="declined"' in page
    assert "look(x).size > 1 [x=1] does not hold" in shown.text
    page, shown = make_page("large", x=1)
    assert 'class="over"' in page
    assert "look(x).size > 1: unclear" in shown.text


def test_a_run_without_a_goal_has_a_page() -> None:
    shown = Tags(outcome_page(Procedure.from_string(TEXT), ProcedureOutcome("handed over")))
    assert "no goal was chosen" in shown.text
    assert "None." in shown.text
