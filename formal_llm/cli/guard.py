"""``formal-llm guard``: rules for agents that exist already, before MCP servers, as a hook, over what was recorded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formal_llm.cli.console import command, err, print_text
from formal_llm.cli.help_pages import PlainGroup

if TYPE_CHECKING:
    from typer._click.core import Context

    from formal_llm.guard import Guard, GuardRules
    from formal_llm.guard.mcp.servers import McpServer
    from formal_llm.planning.json_data import JSON

HELP = """Guard an agent that exists already: only steps from which the rules can still be kept.

In front of MCP servers: to its client this is one MCP server, on standard input and output or on a port of this
machine. It lists the tools that the rules allow now, checks each call again, and asks a person where the rules say so.

As a hook of Claude Code or Codex (--hook): one event on standard input, the answer on standard output. It takes --state
FOLDER for the sessions.

Over what was recorded (guard verify): where logs and traces break which rule.

Examples:

  formal-llm guard rules.guard -- npx -y @modelcontextprotocol/server-filesystem .

  formal-llm guard rules.guard --server "files=npx server-files ." --server web=http://127.0.0.1:80/mcp --log log

  formal-llm guard rules.guard --servers .mcp.json

  formal-llm guard --hook rules.guard

  formal-llm guard verify audit.jsonl rules.guard
"""
VERIFY_HELP = """Verify what was recorded: which rules a trace breaks, and where.

Read are the log of a guard (is it what was written?), and chat messages of OpenAI and Anthropic; JSON, or JSON lines.

Examples:

  formal-llm guard verify audit.jsonl rules.guard

  formal-llm guard verify conversations.jsonl rules.guard --json
"""


class GuaranteeName(StrEnum):
    """What a guard promises."""

    some = "some"
    whatever = "whatever"


class UnsureName(StrEnum):
    """What happens to a call of which it is not known whether the rules can be kept after it."""

    allow = "allow"
    ask = "ask"
    block = "block"


class GuardGroup(PlainGroup):
    """``guard RULES ...`` serves, ``guard verify ...`` verifies."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """The arguments, with the command that is meant where none is named."""
        if "--hook" in args and not {"-h", "--help"} & set(args):  # where the command line was not entered by its start
            from formal_llm.cli.guard_hook import run_hook

            raise SystemExit(run_hook(args))
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["serve", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(help=HELP, cls=GuardGroup, no_args_is_help=True)
RulesArgument = Annotated[Path, typer.Argument(metavar="RULES", help="A file of rules (.guard).")]
GuaranteeOption = Annotated[
    GuaranteeName,
    typer.Option(help="some: some continuation keeps the rules; whatever: there is one whatever tools return."),
]


@app.command(hidden=True)
@command
def serve(
    rules: RulesArgument,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND...", help="The command or the address of an MCP server.")
    ] = None,
    server: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=COMMAND", help="An MCP server: a command or an address. Repeatable."),
    ] = None,
    servers: Annotated[
        str | None, typer.Option(metavar="FILE", help='MCP servers as clients keep them: {"mcpServers": {...}}.')
    ] = None,
    log: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The audit log; the run goes on after what it contains.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="Serve over HTTP on this port of this machine.")] = None,
    guarantee: GuaranteeOption = GuaranteeName.some,
    unsure: Annotated[
        UnsureName | None,
        typer.Option(help="What happens to a call where the search reaches its bound; else as the file says, or ask."),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds that a server may take to start.", min=0.1)] = 60.0,
) -> None:
    """Serve."""
    from formal_llm.guard import Guard
    from formal_llm.guard.audit import AuditLog, make_audit
    from formal_llm.guard.mcp.serving import serve_guard as run

    read = _rules(rules)

    def make_guard(tools: Sequence[str] = ()) -> Guard:
        return Guard(read, tools, guarantee.value, unsure=None if unsure is None else unsure.value)

    behind = _servers(words, server, servers)
    # The fingerprint of the rules alone: which tools there are may change.
    record = AuditLog(log, make_guard().fingerprint) if log else None
    run(
        behind, make_guard, audit=make_audit(record) if record else None,
        past=record.read_events() if record else (), port=port, timeout=timeout,
    )  # fmt: skip


def _rules(path: Path) -> GuardRules:
    from formal_llm.guard import GuardRules

    return GuardRules.from_file(path)


def _servers(words: list[str] | None, named: list[str] | None, file: str | None) -> list[McpServer]:
    from formal_llm.errors import ToolkitError
    from formal_llm.guard.mcp.servers import McpServer, read_server_file

    made = [McpServer.from_command(words)] if words else []
    made += [McpServer.from_definition(one) for one in named or ()]
    made += read_server_file(file) if file else []
    if not made:
        raise ToolkitError(["no MCP server is named; write its command behind --, or --server, or --servers"])
    return made


@app.command(help=VERIFY_HELP)
@command
def verify(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="A log, or a file of traces.")],
    rules: RulesArgument,
    guarantee: GuaranteeOption = GuaranteeName.some,
    head: Annotated[
        str | None, typer.Option(metavar="HASH", help="The hash that the last line of the log had.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Verify what was recorded."""
    from formal_llm.guard import Guard
    from formal_llm.guard.audit import is_log, read_log
    from formal_llm.guard.traces import read_traces
    from formal_llm.guard.verifying import count_by_rule, verify_trace

    guard = Guard(_rules(rules), guarantee=guarantee.value, unsure="allow")  # what is not known breaks no rule
    wrong: list[str] = []
    last = ""
    if is_log(trace):
        reading = read_log(trace)
        wrong = [str(fault) for fault in reading.faults]
        last = reading.head
        if head is not None and head not in {entry.hash for entry in reading.entries}:
            wrong.append(f"no line has the hash {head}: lines were taken away at the end, or the log was written anew")
        if reading.rules and reading.rules != guard.fingerprint:
            err().print("note: the log was written under other rules, or another guarantee")
    reports = [verify_trace(guard, one) for one in read_traces(trace)]
    counts = count_by_rule(reports)
    if as_json:
        data: JSON = {
            "traces": [report.to_dict() for report in reports],
            "rules": {name: {"violations": often, "traces": traces} for name, (often, traces) in counts.items()},
            "log": {"changed": wrong, "head": last} if last else None,
        }
        print_text(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        for fault in wrong:
            print_text(f"the log was changed: {fault}")
        for report in reports:
            if report.violations or len(reports) == 1:
                print_text(str(report))
        broken = sum(not report.valid for report in reports)
        print_text(f"{len(reports)} traces, {broken} of them break rules")
        for name, (often, traces) in counts.items():
            print_text(f"  {name}: {often} times, in {traces} traces")
        if last and not wrong:
            print_text(f"the log is as it was written; its last hash is {last}")
    if wrong or any(not report.valid for report in reports):
        raise typer.Exit(1)
