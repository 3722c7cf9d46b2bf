"""``formal-llm check``: what is wrong with rules, and what they describe."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import process_time
from typing import Annotated
from warnings import catch_warnings

import typer

from formal_llm.authoring import load_plan_examples
from formal_llm.automata import CFG, PDA, Lookahead, Source, Word
from formal_llm.automata.languages.emptiness import explain_unused, find_unused_terminals, why_empty
from formal_llm.automata.languages.grammar_warnings import warn_of_similar_steps
from formal_llm.automata.languages.word_lists import count_plans
from formal_llm.automata.lookahead.limited import as_automaton
from formal_llm.automata.lookahead.verdicts import SEARCH_TIME, START
from formal_llm.automata.models.behaviour import Behaviour
from formal_llm.automata.models.clockwork import base_with_clock
from formal_llm.automata.models.flowchart import Flowchart
from formal_llm.automata.models.symbols import Symbol, turn_word
from formal_llm.cli import options
from formal_llm.cli.console import command, counted, err, print_text, said_of
from formal_llm.cli.sources import LoadedRules, load, read_limits
from formal_llm.errors import BudgetExceeded, InputError, NoValidPlan, Undecided
from formal_llm.llms.doubles import RandomLLM
from formal_llm.planning.plans.usage import Usage
from formal_llm.planning.plans.vocabulary import SLASH, order_of, write_word
from formal_llm.planning.walks.budget import QUESTIONS, Budget
from formal_llm.planning.walks.choices import ChoiceTable
from formal_llm.planning.walks.trail import describe_hard_rule
from formal_llm.planning.walks.walk import Walk

HELP = """Check rules: errors with their place, warnings, and what they describe.

Rules are a task pack, or a file: sentences (.rules), a grammar (.cfg), a flowchart in Mermaid (.mmd), an automaton
(.pda), a behaviour (.agent), a procedure (.procedure), or rules for tool calls (.guard). Of the last, conflicts are
reported, each with the shortest trace that shows it; of a procedure, what it declares and what was not understood. The
examples in the file beside the rules (NAME.examples) are checked: plans and traces that must be allowed, those that
must not, and the runs of an agent.

With --count, the number of plans is printed and nothing else; with --sample, plans drawn at random, all equally likely,
and the same each time. Where there are infinitely many, --max-length has to bound them.

Examples:

  formal-llm check my.cfg

  formal-llm check daily --strict

  formal-llm check my.cfg --count --limit wok=0

  formal-llm check my.cfg --sample 3 --max-length 12
"""

#: The random walks of a forecast, and the seconds of processor time after which none is begun or continued.
_WALKS, _FORECAST_TIME = 20, 1.0


@command
def check(
    source: options.SourceArgument,
    strict: Annotated[bool, typer.Option("--strict", help="End with exit code 1 when there are warnings.")] = False,
    set_: options.SetOption = None,
    rule: options.RuleOption = None,
    limit: options.LimitOption = None,
    count: Annotated[bool, typer.Option("--count", help="Print the number of plans, and nothing else.")] = False,
    sample: Annotated[int | None, typer.Option(min=1, metavar="N", help="Print N plans at random instead.")] = None,
    max_length: Annotated[
        int | None, typer.Option(min=0, help="Count and draw only plans of at most this many terminals.")
    ] = None,
    max_states: options.MaxStatesOption = 20_000,
    as_json: options.JsonOption = False,
) -> None:
    """Check rules."""
    if count or sample:
        _print_plans(load(source, set_, rule), limit, count, sample or 0, max_length, max_states, as_json)
        return
    if limit or max_length is not None:
        raise InputError("--limit and --max-length are for --count and --sample")
    show(source, strict, set_, rule, max_states, as_json)


def show(
    source: str,
    strict: bool = False,
    set_: Sequence[str] | None = None,
    rule: Sequence[str] | None = None,
    max_states: int = 20_000,
    as_json: bool = False,
) -> None:
    """Print what the check of rules finds.

    Raises:
        Exit: with code 1 where an example is not kept, or ``strict`` found warnings.
    """
    if source.endswith((".guard", ".procedure")):
        if set_ or rule:
            given = "--set and --rule"
            raise InputError(f"{given} are for rules of plans; write the rule into the {Path(source).suffix} file")
        _show_rules_of_calls(source, strict, as_json)
        return
    loaded = load(source, set_, rule)
    warnings = list(loaded.warnings)
    found = _written(loaded)
    lookahead = Lookahead(loaded.whole, max_states=max_states)
    bound = lookahead.work.limit_seconds(START * SEARCH_TIME)
    with bound:
        described, words = _language(lookahead)
    with bound:
        is_empty = "plans" not in described and lookahead.completable().value == "no"
    if is_empty:
        why = why_empty(lookahead.source, max_states=max_states)
        described["no valid plan"] = why.reason
    else:
        described["forecast"] = _forecast_cost(lookahead)
        never, open_ = find_unused_terminals(lookahead, max_states, used={name for word in words for name in word})
        described |= {"in no plan": _explain_unused(lookahead, never, max_states)} if never else {}
        described |= {"maybe in none": f"{', '.join(open_)}: not decided in one second"} if open_ else {}
    found |= described
    found |= dict(_list_uncounted(loaded.whole))
    if isinstance(loaded.rules, Behaviour):
        found |= _agent(str(loaded.file or source))
    plans, broken = _examples(loaded)
    if plans and "examples" in found:
        found["examples"] = f"{found['examples']}; {plans}"
    elif plans:
        found["examples"] = plans
    if broken:
        found["not kept"] = broken
    warnings += warn_of_similar_steps(lookahead.automaton.terminals, lookahead.automaton.label)
    _tell(found, warnings, as_json)
    if broken or (strict and warnings):
        raise typer.Exit(1)


def _print_plans(
    loaded: LoadedRules,
    limit: Sequence[str] | None,
    count: bool,
    number: int,
    max_length: int | None,
    max_states: int,
    as_json: bool,
) -> None:
    """Print how many plans there are, or some at random."""
    if count and number:
        raise InputError("--count and --sample cannot both be given")
    rules, limits = loaded.whole, read_limits(limit, None, loaded.whole)
    # A lookahead never counts with a smaller budget than this.
    lookahead = Lookahead(rules, limits, max_states=max(max_states, 100_000))
    if count:
        total = lookahead.count(max_length=max_length)
        print_text(json.dumps({"count": total, "max_length": max_length}) if as_json else str(total))
        return
    rng = random.Random(0)
    words = [word for _ in range(number) if (word := lookahead.sample(rng, max_length=max_length)) is not None]
    if not words:
        within = "" if max_length is None else f" of at most {max_length} terminals"
        raise NoValidPlan(f"there is none{within} to draw")
    if as_json:
        print_text(json.dumps(words))
    else:
        print_text("\n".join(write_word(word, order_of(rules)) if word else "ε" for word in words))


def _explain_unused(lookahead: Lookahead, names: Sequence[str], max_states: int) -> str:
    """Name terminals that no plan uses, each with the rules that leave no place for it."""
    shown = []
    for name in names:
        rules = explain_unused(lookahead, name, max_states, START * SEARCH_TIME / len(names))
        shown.append(f"{name} ({'; '.join(line.lstrip('%') for line in rules)})" if rules else name)
    return ", ".join(shown)


def _show_rules_of_calls(source: str, strict: bool, as_json: bool) -> None:
    """Print what the check of a guard's rules or of a procedure finds; raise Exit as :func:`show` does."""
    found = _guard(source) if source.endswith(".guard") else _describe_procedure(source)
    _tell(found, [], as_json)
    if "not kept" in found or (strict and found.keys() & {"conflicts", "never", "never done", "not understood"}):
        raise typer.Exit(1)


def _list_uncounted(rules: CFG | PDA) -> Iterator[tuple[str, str]]:
    """List for each quantity under a limit the terminals without it, where others have it."""
    for limit in rules.limits.sums:
        without = [name for name in rules.terminals if limit.quantity not in rules.symbols.get(name, Symbol()).numbers]
        if len(without) < len(rules.terminals) and without:
            yield f"no {limit.quantity}", f"{', '.join(without)}: counts as 0"


def _describe_procedure(source: str) -> dict[str, object]:
    """Describe what a procedure declares, and the sentences that were not understood."""
    from formal_llm.procedures.procedure import Procedure

    procedure = Procedure.from_file(source)
    actions = sum(tool.acts for tool in procedure.tools.values())
    found: dict[str, object] = {
        "procedure": f"{len(procedure.tools) - actions} checks, {actions} actions, {len(procedure.facts)} facts",
        "goals": ", ".join(tool.name for tool in procedure.goals) or "none: no user can ask for anything",
    }
    if procedure.holes:
        found["not understood"] = [f"{name}: {text}" for name, text in procedure.holes]
    used = {one.name for one in procedure.walk_owners(*(tool.name for tool in procedure.goals))}
    used |= {one.tool for fact in procedure.facts.values() if fact.name in used for one in fact.until}
    if unused := [name for name in (*procedure.tools, *procedure.facts) if name not in used]:
        found["never used"] = [", ".join(unused)]
    return found


def _examples(loaded: LoadedRules) -> tuple[str, list[str]]:
    """How many plans the file of examples beside the rules holds, and those that the rules do not keep."""
    if loaded.file is None:
        return "", []
    plans = load_plan_examples(loaded.file, loaded.whole, others=isinstance(loaded.rules, Behaviour))
    broken = [
        f"line {one.line}: {'refused, and should be allowed' if one.allowed else 'allowed, and should not be'}: {one}"
        for one in plans
        if not one.satisfied_by(loaded.whole)
    ]
    return (_kept([one.allowed for one in plans], broken) if plans else ""), broken


def _kept(allowed: Sequence[bool], broken: Sequence[str]) -> str:
    kept = f"{len(broken)} not kept" if broken else "all kept"
    return f"{sum(allowed)} to allow, {len(allowed) - sum(allowed)} to refuse, {kept}"


def _tell(found: Mapping[str, object], warnings: Sequence[str], as_json: bool) -> None:
    if as_json:
        print_text(json.dumps({**found, "warnings": warnings}, indent=2, ensure_ascii=False))
        return
    for warning in warnings:
        err().print(f"warning: {warning}", style="yellow")
    for name, value in found.items():
        for line in value if isinstance(value, list) else [value]:
            print_text(f"{name:<15}{line}")


def _guard(source: str) -> dict[str, object]:
    """What rules for tool calls are, and where they get into each other's way."""
    from formal_llm.guard import Guard, GuardRules  # nothing else of this command needs the guards
    from formal_llm.guard.examples import load_trace_examples

    rules = GuardRules.from_file(source)
    found: dict[str, object] = {
        "letters": ", ".join(letter.name for letter in rules.rule_set.letters),
        "rules": ", ".join(rule.name for rule in rules.rule_set.rules),
    }
    weak = rules.check()
    # Of the stronger guarantee what the weaker one does not report: rules that results or users can make impossible.
    strong = [one for one in rules.check(guarantee="whatever") if one.kind == "empty" and one not in weak]
    for title, rows in (
        ("conflicts", [one for one in (*weak, *strong) if one.kind == "empty"]),
        ("never", [one for one in weak if one.kind == "never"]),
    ):
        if rows:
            found[title] = [str(one) for one in rows]
    traces, guard = load_trace_examples(source), Guard(rules)
    broken = [f"line {one.line}: {why}" for one in traces if (why := one.describe_mismatch(guard))]
    if traces:
        found["examples"] = _kept([one.allowed for one in traces], broken)
    if broken:
        found["not kept"] = broken
    return found


def _agent(source: str) -> dict[str, object]:
    """The examples beside an agent's file, each of which its rules allow."""
    from formal_llm.agents.examples import load_examples  # nothing else of this command needs the room of agents

    found: dict[str, object] = {}
    with catch_warnings(action="ignore"):  # they were reported when the rules were read
        examples = load_examples(source)
    if examples:
        found["examples"] = f"{len(examples)}, all allowed"
    return found


def _forecast_cost(lookahead: Lookahead) -> str:
    """What plans cost, by walks with random answers; how many options were not decided, and by which rule."""
    table, llm, end = ChoiceTable(lookahead), RandomLLM(), process_time() + _FORECAST_TIME
    costs: list[Usage] = []
    ended = 0
    while len(costs) < _WALKS and process_time() < end:
        walk = Walk(table, budget=Budget(questions=QUESTIONS))
        with suppress(BudgetExceeded, NoValidPlan):
            while (question := walk.question) is not None and process_time() < end:
                walk.answer(llm.ask(question))
            ended += question is None
        costs.append(walk.usage)
    most = max(costs, key=lambda usage: (usage.wasted, usage.questions))
    mean = sum(usage.questions for usage in costs) / len(costs)
    asked = f"{mean:.1f} questions in the mean, at most {max(usage.questions for usage in costs)}"
    line = f"{ended} of {counted(len(costs), 'random walk')} ended; {asked}"
    if not (uncertain := sum(usage.uncertain for usage in costs)):
        return f"{line}; {most.wasted} wasted" if most.wasted else line
    solver = " without ortools" if lookahead.lacks_solver else ""
    wasted = f"{most.wasted} of {most.questions} questions may be wasted{solver}"
    return f"{line}; {uncertain} options not decided; {describe_hard_rule(lookahead) or 'the rules'}: {wasted}"


def _written(loaded: LoadedRules) -> dict[str, object]:
    """What the rules are, as they are written."""
    found: dict[str, object] = {}
    if loaded.pack is not None:
        count = len(loaded.pack.tasks)
        found["task pack"] = f"{loaded.pack.title}; {counted(count, 'task')}" if count else loaded.pack.title
        if loaded.pack.facts:
            found["facts"] = [f"{name} = {value}" for name, value in loaded.pack.facts.items()]
    rules, source = loaded.rules, loaded.source
    if isinstance(source, CFG):
        automaton = PDA.from_cfg(source)
        found |= {
            "start symbol": source.start,
            "grammar": f"{len(source.nonterminals)} nonterminals, {len(source.terminals)} terminals, "
            f"{len(source.productions)} productions",
            "automaton": _size(automaton),
            "classes": ", ".join(sorted(source.classes)) or "none",
        }
    else:
        if isinstance(rules, Flowchart):
            kinds = [rules.kind(node.id) for node in rules.nodes]
            found["flowchart"] = f"{kinds.count('decision')} decisions, {kinds.count('step')} steps"
            if len(rules.starts) > 1:  # legal, and easily an arrow that was forgotten
                found["begins"] = f"with a choice of {' or '.join(rules.starts)}: no arrow leads to these"
        elif isinstance(rules, Behaviour):
            found["behaviour"] = f"{len(rules.states)} states: {', '.join(rules.terminals)}"
        found["automaton"] = _size(rules.whole if isinstance(rules, Behaviour) else source)
    if source.order == "prefix":
        found["order"] = "rules write a plan from last to first (%order prefix)"
    found["limits"] = "; ".join(line.lstrip("%") for line in source.limits.lines()) or "none"
    if loaded.constraints:
        found["constraints"] = [one.name for one in loaded.constraints]
    return found


def _size(automaton: PDA) -> str:
    return f"{len(automaton.states)} states, {len(automaton.transitions)} transitions"


def _write_line(word: Word, rules: Source) -> str:
    """A plan on one line, for people: labels, decisions with their questions; of a grammar its names."""
    automaton = as_automaton(rules)
    base = base_with_clock(automaton) if isinstance(automaton, PDA) else None
    if base is None or base.cfg is not None or not word:
        return write_word(word, order_of(rules))
    asked = {move.read: move.question.rstrip() for move in base.transitions if move.decision}
    parts = []
    for name in turn_word(word, base.order):
        question = asked.get(name, "")
        colon = "" if question[-1:] in ("", "?", ":") else ":"
        parts.append(f"{question}{colon} {base.label(name)}".strip())
    return write_word(word, order_of(rules)) if any(SLASH in part for part in parts) else SLASH.join(parts)


def _language(lookahead: Lookahead) -> tuple[dict[str, object], list[Word]]:
    """What the language is: how many plans, the shortest, three at random; as far as budgets reach.

    And the words among these.
    """
    found: dict[str, object] = {}
    words: list[Word] = []
    try:
        shortest = lookahead.shortest_word()
        if shortest is None:
            return {}, words
        words.append(shortest)
        many = count_plans(lookahead)
        found["plans"] = many.describe_count("of at most {} terminals")
        found["shortest plan"] = _write_line(shortest, lookahead.automaton)
        rng = random.Random(0)
        drawn = [lookahead.sample(rng, of=many.of, max_length=many.bound) for _ in range(3)]
        words += [word for word in drawn if word is not None]
        found["at random"] = [_write_line(word or (), lookahead.automaton) for word in drawn]
    except Undecided as error:
        late = "the shortest plan was not found in one second of search"
        found["not decided"] = late if lookahead.work.left <= 0 else said_of(error)
    return found, words
