"""Arguments that a model writes, for steps whose tools find none among inputs and earlier results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from formal_llm.errors import InputError, LLMError, ToolError
from formal_llm.llms.llm import LLM
from formal_llm.llms.objects import ask_object
from formal_llm.llms.schemas import closed
from formal_llm.llms.usage import TokenUsage
from formal_llm.tools.kinds import Value
from formal_llm.tools.tool import Tool

#: The maximum number of characters of a value that the model is shown.
_SHOWN = 4_000


def fill_arguments(
    llm: LLM, task: str, tool: Tool, names: Sequence[str], known: Iterable[tuple[str, Value]]
) -> tuple[Mapping[str, Value], TokenUsage]:
    """Return the values that a model writes for parameters of a tool, by the schemas of these, and what that used.

    Args:
        llm: the model.
        task: the description of the task.
        tool: the tool.
        names: the parameters to be filled.
        known: what there is: inputs and results so far, with their names.

    Raises:
        ToolError: what the model wrote is no value of a parameter, or it wrote nothing.
    """
    parameters = {name: tool.signature.by_name[name] for name in names}
    about = [f"- {name}: {one.description}" for name, one in parameters.items() if one.description]
    shown = [f"- {name}: {value.kind.to_text(value.get())[:_SHOWN]}" for name, value in known]
    prompt = "\n".join(
        [
            f"The task: {task or 'none is given'}", "Known so far:", *(shown or ["- nothing"]),
            f"The next step is {tool.name}. {tool.description}".rstrip(),
            f"Write its arguments: {', '.join(names)}.", *about,
        ]
    )  # fmt: skip
    values: dict[str, Value] = {}

    def read_values(written: Mapping[str, object]) -> str | None:
        try:
            values.update({name: one.read(written[name]) for name, one in parameters.items()})
        except InputError as error:
            return str(error)
        return None

    try:
        schema = closed({name: one.schema for name, one in parameters.items()})
        used = ask_object(llm, prompt, schema, check=read_values).usage
    except (LLMError, ValueError) as error:
        problem = f"got no arguments from the model: {error}"
        raise ToolError(tool.name, problem, reason="arguments", cause=error) from error
    return values, used
