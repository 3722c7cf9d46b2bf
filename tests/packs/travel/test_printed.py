import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formal_llm.packs.travel.printed import printed_restaurants, printed_table
from formal_llm.packs.travel.rows import Restaurant
from tests.packs.travel.given import cases, needs_data


@settings(max_examples=40)
@given(st.data())
def test_it_prints_as_pandas_does(data: st.DataObject) -> None:
    pandas = pytest.importorskip("pandas")
    count = data.draw(st.integers(1, 4))
    kinds = {
        "text": st.text("ab \né", min_size=1, max_size=12).filter(str.strip),
        "whole": st.integers(-99, 99_999),
        "decimal": st.integers(-99_999_999, 99_999_999).map(lambda n: n / 1e6),
    }
    columns = data.draw(st.lists(st.sampled_from(["Name", "price", "x", "Average Cost"]), min_size=1, unique=True))
    cells = {name: data.draw(st.lists(kinds[data.draw(st.sampled_from(sorted(kinds)))], min_size=count, max_size=count))
             for name in columns}  # fmt: skip
    rows = list(zip(*cells.values(), strict=True))
    frame = pandas.DataFrame(cells)
    assert printed_table(columns, rows) == frame.to_string(index=False)
    frame.index += 98
    assert printed_table(columns, rows, range(98, 98 + count)) == frame.to_string()


@needs_data
def test_the_given_tables_are_printed_as_pandas_does() -> None:
    pandas = pytest.importorskip("pandas")
    for case in cases()[:8]:
        for title, table in case["reference_information"].items():
            if isinstance(table, list):
                columns = list(table[0])
                printed = printed_table(columns, [tuple(row.values()) for row in table])
                assert printed == pandas.DataFrame(table).to_string(index=False), title


def test_a_column_that_a_table_lacks_is_left_out() -> None:
    text = printed_restaurants([Restaurant("A", "B", 12, ("Tea", "BBQ"))], [7])
    assert text == "  Name  Average Cost  Cuisines City\n7    A            12  Tea, BBQ    B"
