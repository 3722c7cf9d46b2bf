"""The folder that ``formal-llm plan --certificate`` writes: rules, certificate, and the program that checks them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from formal_llm.cli.console import check_folder, err
from formal_llm.cli.sources import LoadedRules
from formal_llm.errors import AutomatonError, FormalLLMError, NoValidPlan, Undecided
from formal_llm.planning import Plan
from formal_llm.planning.checking import certificate_checker
from formal_llm.planning.checking.no_plan import no_plan_certificate
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.certificates import compiled_rules


def write_certificate(folder: Path, rules: dict[str, JSON], certificate: dict[str, JSON]) -> None:
    """Write what is needed to check a certificate without this library.

    Raises:
        FormalLLMError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in (("rules.json", rules), ("certificate.json", certificate)):
            (folder / name).write_text(json.dumps(data, indent=1), encoding="utf-8")
        (folder / "check.py").write_bytes(Path(certificate_checker.__file__).read_bytes())
    except OSError as error:
        raise FormalLLMError(f"{folder}: the certificate cannot be written: {error.strerror}") from None
    how = certificate.get("how")
    if how == "search":
        err().print("that there is no plan was found by search: the certificate says so and proves nothing")
    else:
        said = f"certificate written; check it: python {folder}/check.py {folder}/rules.json {folder}/certificate.json"
        err().print(said)


@contextmanager
def certified(
    folder: Path | None, loaded: LoadedRules, which: str, *, inputs: list[str] | None, goal: str | None,
    limit: list[str] | None, require: list[str] | None,
) -> Iterator[list[Plan]]:  # fmt: skip
    """Write the certificate of the plan that is put into the list, or that there is none; nothing without a folder."""
    if folder is not None:
        check_folder(folder)
    made: list[Plan] = []
    try:
        yield made
    except NoValidPlan:
        if folder is not None:
            rules, limits = loaded.language(which, inputs=inputs, goal=goal, limit=limit, require=require)
            try:
                write_certificate(folder, compiled_rules(rules, limits), no_plan_certificate(rules, limits))
            except (AutomatonError, Undecided) as error:  # every branch was tried: the rules as such are not to blame
                err().print(f"no certificate: {error}")
        raise
    if folder is not None and made:
        write_certificate(folder, made[0].compiled_rules(), made[0].certificate())
