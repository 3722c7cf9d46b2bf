"""The help of commands: the usual options first, all with ``--help-all``, by subject; the examples at the end."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from rich.markup import escape
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

if TYPE_CHECKING:
    from typer._click.core import Command, Context  # typer's own copy of click
    from typer._click.formatting import HelpFormatter

#: The options that ``--help`` shows of a command with many; the others need ``--help-all``.
USUAL = {
    "plan": "llm limit require rule search show trace out tasks cache",
    "agent": "llm tools corpus limit require approve state resume page chat",
    "openagi": "llm method methods limit tasks out toolkit concurrency show published",
}
#: The panels of ``--help-all``, by subject. What is in none of them is listed first.
PANELS = {
    "Rules": "limit require rule input goal set",
    "How it is planned": "search wording config method methods temperature",
    "Bounds": "max-questions max-states max-requests max-tokens max-cost prices times",
    "Output": "show trace out certificate page save published",
    "Many tasks": "tasks concurrency retry-failed batch repeats",
    "Answers and runs that are kept": "cache record state resume answer",
    "How results are judged": "toolkit data device text-score bert clip vit grouping",
}
_PANEL_OF = {option: panel for panel, options in PANELS.items() for option in options.split()}
_ALL = "formal_llm.help_all"


class LongCommand(TyperCommand):
    """A command with many options: its help shows the usual ones, and with ``--help-all`` all of them."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Read the arguments, where they do not ask for all options."""
        if "--help-all" in args:
            ctx.meta[_ALL] = True
            ctx.get_help()
            ctx.exit()
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Print the help."""
        options = [one for one in self.params if isinstance(one, TyperOption)]
        usual = USUAL[self.name or ""].split()
        before = self.epilog, [one.rich_help_panel for one in options]
        if _ALL not in ctx.meta:
            self.epilog = f"These are the usual options. --help-all shows all {len(options)}.\n\n{self.epilog or ''}"
        for one in options:
            name = one.opts[0].removeprefix("--")
            if _ALL in ctx.meta:
                one.rich_help_panel = one.rich_help_panel or _PANEL_OF.get(name)
            else:
                one.hidden, one.rich_help_panel = name not in usual, None
        super().format_help(ctx, formatter)
        self.epilog = before[0]
        for one, panel in zip(options, before[1], strict=True):
            one.hidden, one.rich_help_panel = False, panel  # the shell completes all of them


class PlainGroup(TyperGroup):
    """Commands whose help is plain text: brackets are no markup, and the terminal wraps paragraphs."""

    def __init__(self, **attributes: object) -> None:
        super().__init__(**attributes)  # type: ignore[arg-type]  # what typer gives them
        for one in self.commands.values():
            show_plainly(one)


def show_plainly(command: Command) -> None:
    """Have the help of a command show its texts as they are written, and its examples at the end."""
    paragraphs = (command.help or "").strip("\n").split("\n\n")
    if "Examples:" in paragraphs:
        first = paragraphs.index("Examples:")
        examples = ["Examples:", *takewhile(lambda text: text[:2] == "  ", paragraphs[first + 1 :])]
        del paragraphs[first : first + len(examples)]
        command.epilog = escape("\n\n".join(examples))
    command.help = escape("\n\n".join(text if text[:2] == "  " else " ".join(text.split()) for text in paragraphs))
    for parameter in command.params:
        if isinstance(parameter, (TyperArgument, TyperOption)):
            parameter.help = escape(parameter.help or "")
