"""``formal-llm plan``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, redirect_stdout
from dataclasses import replace
from enum import StrEnum
from functools import partial
from io import StringIO
from pathlib import Path
from threading import Event
from typing import Annotated

import typer

from formal_llm.cli import options
from formal_llm.cli.batch import Batch, plan_tasks, read_tasks
from formal_llm.cli.config import read_config
from formal_llm.cli.console import check_folder, check_writable, command, err, out, print_text
from formal_llm.cli.options import with_request_options
from formal_llm.cli.sources import LoadedRules, keep_answers, load, read_limits
from formal_llm.cli.trace import TracePrinter
from formal_llm.errors import BudgetExceeded, FormalLLMError, WritesNoText
from formal_llm.llms import LLM, Prices, Question, resolve
from formal_llm.llms.builtin import BuiltinLLM
from formal_llm.llms.doubles import TEXTS, RandomLLM
from formal_llm.llms.usage import BATCH_SHARE
from formal_llm.planning import Budget, Plan, Planner, Task, Wording
from formal_llm.planning.checking import certificate_checker
from formal_llm.planning.plans.vocabulary import write_word
from formal_llm.planning.walks.budget import QUESTIONS
from formal_llm.planning.walks.wording import adapt_wording


def write_certificate(folder: Path, plan: Plan) -> None:
    """Write what is needed to check that a plan is valid without this library.

    Raises:
        FormalLLMError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in (("rules.json", plan.compiled_rules()), ("certificate.json", plan.certificate())):
            (folder / name).write_text(json.dumps(data, indent=1), encoding="utf-8")
        (folder / "check.py").write_bytes(Path(certificate_checker.__file__).read_bytes())
    except OSError as error:
        raise FormalLLMError(f"{folder}: the certificate cannot be written: {error.strerror}") from None
    err().print(
        f"certificate written; check it: python {folder}/check.py {folder}/rules.json {folder}/certificate.json"
    )


class Search(StrEnum):
    """How answers lead to a plan."""

    greedy = "greedy"
    best_first = "best-first"
    sample = "sample"
    draft = "draft"
    exact = "exact"


class Show(StrEnum):
    """The forms in which a plan can be printed."""

    steps = "steps"
    tree = "tree"
    call = "call"
    word = "word"
    json = "json"
    mermaid = "mermaid"


HELP = """Plan a task: the plan is a word of the grammar, whatever the LLM answers.

Examples:

  formal-llm plan openagi "Given noisy grayscale image, how to return the caption in German step by step?"

  formal-llm plan openagi 117 --llm openai:gpt-6-luna --show steps --show call

  formal-llm plan my.cfg "Cook dinner" --llm person --limit wok=1

  formal-llm plan openagi 3 --llm test:random --trace --out plan.json

  formal-llm plan openagi 117 --certificate proof && python proof/check.py proof/rules.json proof/certificate.json

  formal-llm travel plan --help

  formal-llm plan openagi --tasks test --out results.jsonl --llm openai:gpt-6-luna --cache answers.sqlite
"""


@command
@with_request_options
def plan(
    source: options.SourceArgument,
    task: options.TaskArgument = "",
    llm: options.LLMOption = "builtin",
    limit: options.LimitOption = None,
    require: options.RequireOption = None,
    input_: options.InputOption = None,
    goal: options.GoalOption = None,
    set_: options.SetOption = None,
    rule: options.RuleOption = None,
    search: Annotated[
        Search | None,
        typer.Option(
            help="Follow each answer, find the most probable plan, draw, draft it whole and mend it, or ask for all "
            "steps at once and find the best plan exactly. Default: exact for minilm-planner, otherwise greedy."
        ),
    ] = None,
    show: Annotated[list[Show] | None, typer.Option(help="How to print the plan. Repeatable.")] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Show on stderr what is asked and answered.")] = False,
    wording: Annotated[Path | None, typer.Option(help="A TOML file with prompt templates; terse, unlisted.")] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A TOML file with settings of planning, which seldom change.")
    ] = None,
    max_questions: Annotated[
        int, typer.Option(min=0, help="Stop after this many questions for one plan; 0 for no bound.")
    ] = QUESTIONS,
    max_states: options.MaxStatesOption = 20_000,
    max_requests: Annotated[
        int | None, typer.Option(min=1, help="Stop after this many requests, all plans together.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Stop after this many tokens, all plans together.")
    ] = None,
    max_cost: Annotated[float | None, typer.Option(min=0, help="Stop after this much money (see --prices).")] = None,
    prices: Annotated[
        str | None,
        typer.Option(metavar="IN,OUT[,CACHED[,WRITTEN]]", help="Prices per million tokens: read, written, from cache."),
    ] = None,
    cache: Annotated[Path | None, typer.Option(help="A file of answers: what it has is not asked again.")] = None,
    record: Annotated[
        Path | None, typer.Option(help="Record questions and answers, to be replayed: replay:FILE.")
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(metavar="FILE|SPLIT", help="Many tasks: a file with one on each line, or a pack's split."),
    ] = None,
    out_: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Where the plan goes instead of standard output; with --tasks the results, a line of JSON for each.",
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write the proof that the plan is valid, with a program that checks it."),
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="With --tasks: how many are planned at once (for hosted models 32).")
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="With --tasks: plan those again that failed before.")
    ] = False,
    in_batches: Annotated[
        bool,
        typer.Option(
            "--batch",
            help="With --tasks: ask in batches (openai:, anthropic:), which take up to a day, for half --prices.",
        ),
    ] = False,
) -> None:
    """Plan a task."""
    chosen = read_config(config)
    if chosen.length_penalty and search is not Search.best_first:
        raise FormalLLMError(f"{config}: length_penalty is for --search best-first")
    if max_cost is not None and prices is None:
        raise FormalLLMError("--max-cost needs --prices, or nobody knows what a token costs")
    if tasks is None and (concurrency is not None or retry_failed or in_batches):
        raise FormalLLMError("--concurrency, --retry-failed and --batch are for many tasks: --tasks FILE")
    check_writable(out_, cache, record)
    loaded = load(source, set_, rule)
    for warning in loaded.warnings:
        err().print(f"warning: {warning}")
    planner = Planner(
        loaded.source,
        RandomLLM(can=TEXTS),  # never asked: wrong arguments are reported before a model is loaded
        constraints=loaded.constraints,
        limits=read_limits(limit, require, loaded.source),
        lookahead=chosen.lookahead,
        search=search.value if search is not None else None,
        length_penalty=chosen.length_penalty,
        seed=chosen.seed,
        wording=worded(loaded, wording, conversation=chosen.conversation, rules=chosen.rules),
        pages=chosen.page_size,
        budget=Budget(questions=max_questions or None, steps=chosen.max_steps, backtracks=chosen.max_backtracks),
        prices=read_prices(prices, in_batches=in_batches),
        tries=chosen.tries,
        max_states=max_states,
        search_time=chosen.search_time,
        on_event=TracePrinter(err()) if trace else None,
    )
    asking = partial(asked_of, planner, llm, cache, record, suit=wording is None)
    if tasks is not None:
        together = Budget(requests=max_requests, tokens=max_tokens, cost=max_cost)
        results = results_file(out_, task or input_ or goal or show or certificate)
        if in_batches and together.metered and concurrency is None:
            raise FormalLLMError(
                "a batch is paid as a whole, so what all plans may use is checked between batches; give --concurrency, "
                "the most questions of a batch"
            )
        stop = Event() if in_batches else None
        batch = Batch(results, concurrency, together if together.metered else None, retry_failed, stop)
        wanted = read_tasks(tasks, loaded)
        with asking(stop=stop):
            plan_tasks(planner, wanted, batch)
        return
    planner.budget = replace(planner.budget, requests=max_requests, tokens=max_tokens, cost=max_cost)
    forms = show or [form_for(out_)]
    one = loaded.task(task, inputs=input_ or (), goal=goal)
    if certificate is not None:
        check_folder(certificate)
    made = _make_plan(planner, one, asking, forms)
    write_plan(made, forms, out_)
    if certificate is not None:
        write_certificate(certificate, made)


def _make_plan(
    planner: Planner, task: Task, asking: Callable[[], AbstractContextManager[None]], forms: list[Show]
) -> Plan:
    """The plan of a task; where a budget is used up, what there is of it is printed."""
    try:
        planner.start(task)  # that there is no plan is reported before a model is loaded as well
        with asking():
            return planner.plan(task)
    except BudgetExceeded as error:
        print_plan(error.plan, forms)
        raise


def worded(loaded: LoadedRules, file: Path | None, *, conversation: bool, rules: bool) -> Wording:
    """The wording of a file or of the rules, in one conversation or with the rules where that is wanted."""
    words = loaded.wording_of(file)
    words = replace(words, conversation=conversation or words.conversation)
    return words.with_rules() if rules else words


@contextmanager
def asked_of(
    planner: Planner, name: str, cache: Path | None, record: Path | None, *, suit: bool, stop: Event | None = None
) -> Iterator[None]:
    """Have a planner ask the LLM of a provider string.

    Args:
        planner: the planner; what it was made with for an LLM is not asked.
        name: the provider string.
        cache: see :func:`answerer`.
        record: likewise.
        suit: whether its wording is shortened for LLMs that read so best.
        stop: likewise.

    Raises:
        WritesNoText: drafts are wanted of an LLM that only chooses.
    """
    with answerer(name, cache, record, stop) as llm:
        if planner.search == "draft" and "write" not in llm.can:
            raise WritesNoText(llm, "draft a plan", "let it choose: --search greedy")
        planner.llm = llm
        if suit:
            planner.wording = adapt_wording(planner.wording, llm)
        yield


def results_file(out: Path | None, beside: object) -> Path:
    """Where the results of many tasks go; raise where that is not given, or where there are options for one task."""
    if out is None:
        raise FormalLLMError("--tasks needs --out FILE, where the results go")
    if beside:
        raise FormalLLMError("--tasks brings the tasks: no TASK, --input, --goal, --show or --certificate beside it")
    return out


def form_for(out: Path | None) -> Show:
    """The form for the ending of a file; steps for all others."""
    return {".json": Show.json, ".mmd": Show.mermaid}.get(out.suffix if out is not None else "", Show.steps)


def write_plan(made: Plan, forms: list[Show], out: Path | None) -> None:
    """A plan in each of the forms: on standard output, or in a file."""
    if out is None:
        print_plan(made, forms)
        return
    with redirect_stdout(StringIO()) as printed:
        print_plan(made, forms)
    out.write_text(printed.getvalue(), encoding="utf-8")


@contextmanager
def answerer(name: str, cache: Path | None, record: Path | None, stop: Event | None = None) -> Iterator[LLM]:
    """The LLM of a provider string; what it answers is kept and recorded where that is wanted.

    With ``stop``, which ends the run once it is set, it is asked in batches.
    """
    with ExitStack() as opened:
        llm: LLM
        if stop is None:
            llm = resolve(name)
        else:
            from formal_llm.llms.hosted.batches import BatchedLLM

            llm = BatchedLLM(name, stop)
        if isinstance(llm, BuiltinLLM):
            opened.enter_context(_report_ties(llm, name))
        yield keep_answers(llm, cache, record, opened, None if hasattr(llm, "identity") else name)


@contextmanager
def _report_ties(llm: BuiltinLLM, name: str) -> Iterator[None]:
    """Report afterwards how often the first of equally good options was taken, and which were the first such ones."""
    first, times = "", 0

    def note_tie(question: Question, best: tuple[int, ...]) -> None:
        nonlocal first, times
        first = first or " | ".join(question.options[number - 1].text for number in best)
        times += 1

    llm.on_tie = note_tie
    try:
        yield
    finally:
        if times:
            often = "once" if times == 1 else f"{times:,} times"
            message = (
                f"{name}: the task does not tell options apart; {often} the first of them was taken, as of: {first}"
            )
            err().print(message, style="yellow")


def read_prices(text: str | None, *, in_batches: bool = False) -> Prices | None:
    """The prices that ``--prices IN,OUT[,CACHED[,WRITTEN]]`` gives; half of them in batches.

    Raises:
        FormalLLMError: it is not of that form.
    """
    if text is None:
        return None
    try:
        input_, output, *more = map(float, text.split(","))
        return Prices(input_, output, *more).scaled(BATCH_SHARE if in_batches else 1)
    except (TypeError, ValueError):
        raise FormalLLMError(f"--prices takes IN,OUT[,CACHED[,WRITTEN]], as in --prices 0.25,2; not {text!r}") from None


def print_plan(made: Plan, forms: list[Show]) -> None:
    """A plan on standard output, in each of the forms."""
    for number, form in enumerate(forms):
        if number:
            print_text("")
        match form:
            case Show.tree:
                out().print(made, soft_wrap=False)  # a panel wraps its own lines
            case Show.call if made.call is not None:
                print_text(str(made.call))
            case Show.call | Show.word:
                print_text(write_word(made.word) if made.word else "")
            case Show.json:
                print_text(made.to_json(indent=2))
            case Show.mermaid:
                print_text(made.to_mermaid())
            case Show.steps:
                print_text(str(made))
