"""The pictures and texts that data are made of."""

from __future__ import annotations

from formal_llm.packs.openagi.data.sources import opinions, passages, pictures


def test_each_source_is_there_and_described() -> None:
    for picture in pictures():
        assert picture.open().mode == ("RGB" if picture.colours else "L")
        assert picture.licence in ("CC0", "public domain")
        for said in (picture.caption, picture.label, picture.objects, picture.answer):
            assert set(said) == {"English", "German"}
    assert (
        len({passage.text for passage in passages()}) == len({opinion.text["English"] for opinion in opinions()}) == 8
    )
