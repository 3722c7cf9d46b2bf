"""The papers' figures."""

from __future__ import annotations

from formal_llm.packs.questions import published_tables


def test_the_table_of_react() -> None:
    table, _ = published_tables()
    assert "2210.03629" in table.source and table.model == "PaLM-540B"
    assert list(table.rows) == ["Standard", "CoT", "CoT-SC", "Act", "ReAct", "CoT-SC → ReAct", "ReAct → CoT-SC"]
    assert table.rows["ReAct"] == {"hotpotqa": 27.4, "fever": 60.9}
    for row in table.rows.values():
        assert row.keys() == table.measures.keys() and all(0 < value < 100 for value in row.values())


def test_the_tables_of_pass() -> None:
    _, table = published_tables()
    assert "2310.08535" in table.source and table.model == "Llama-2-70b"
    assert table.rows["PASS"]["hotpotqa"] == 34.7 and table.rows["PASS, no summarizer"]["hotpotqa"] == 25.7
    for row in table.rows.values():
        assert row.keys() == table.measures.keys() and all(0 < value < 100 for value in row.values())
