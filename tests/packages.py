"""Packages put on the path as an installer does it: a module, and the metadata that name its entry points."""

from __future__ import annotations

from pathlib import Path


def put(folder: Path, package: str, group: str, points: str, code: str = "", version: str = "1.0") -> None:
    """Install a package of one module in a folder.

    Args:
        folder: where it goes.
        package: its name, and that of its module.
        group: the group of its entry points.
        points: the lines of its entry points: ``NAME = MODULE:FUNCTION``.
        code: the text of its module.
        version: its version.
    """
    info = folder / f"{package}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{points}\n")
    (folder / f"{package}.py").write_text(code)
