"""The files of the page, and how it is wired; what it answers is tried in ``test_serving``."""

import re

import pytest

pytest.importorskip("starlette")

from formal_llm.studio.server import page_files


def test_the_page_needs_nothing_from_elsewhere() -> None:
    files = page_files()
    assert {"index.html", "main.js", "studio.css"} <= files.keys()
    for name, (data, _) in files.items():
        text = data.decode()
        found = [
            address for address in re.findall(r"https?://[^\s\"')]+", text) if "www.w3.org/2000/svg" not in address
        ]
        assert found == [], name


def test_scripts_import_files_that_are_there() -> None:
    files = page_files()
    for name, (data, media) in files.items():
        if media == "text/javascript":
            for imported in re.findall(r'from "\./([\w.]+)"', data.decode()):
                assert imported in files, f"{name} imports {imported}"


def test_no_script_or_style_stands_in_the_page_and_no_text_becomes_markup() -> None:
    files = page_files()
    page = files["index.html"][0].decode()
    assert re.findall(r"<script(?![^>]* src=)[^>]*>|<style|\son\w+=|\sstyle=", page) == []
    for data, media in files.values():
        if media == "text/javascript":
            assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", data.decode())


def test_every_control_that_a_script_looks_for_is_in_the_page() -> None:
    files = page_files()
    ids = set(re.findall(r'\bid="([\w-]+)"', files["index.html"][0].decode()))
    made = {name for data, _ in files.values() for name in re.findall(r'\bid: "([\w-]+)"', data.decode())}
    for data, media in files.values():
        if media == "text/javascript":
            assert set(re.findall(r'byId\("([\w-]+)"\)', data.decode())) <= ids | made
