"""The pictures and texts that data are made of."""

from __future__ import annotations

from formal_llm.packs.openagi.data.sources import load_opinions, load_passages, load_pictures


def test_each_source_is_there_and_described() -> None:
    for picture in load_pictures():
        assert picture.open().mode == ("RGB" if picture.colours else "L")
        assert picture.licence in ("CC0", "public domain")
        for said in (picture.caption, picture.label, picture.objects, picture.answer):
            assert set(said) == {"English", "German"}
    assert (
        len({passage.text for passage in load_passages()})
        == len({opinion.text["English"] for opinion in load_opinions()})
        == 8
    )
