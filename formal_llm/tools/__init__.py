"""Tools, toolkits, and the executor that runs plans."""

from formal_llm.tools.cache import DiskCache
from formal_llm.tools.executor import Executor
from formal_llm.tools.kinds import IMAGE, TEXT, Kind, Value, kind_for, kind_named, read_input, register
from formal_llm.tools.report import html_report, save_report
from formal_llm.tools.result import Progress, Result, StepResult
from formal_llm.tools.tool import Tool, tool
from formal_llm.tools.toolkit import Toolkit, ToolkitMaker, toolkit_named

__all__ = [
    "IMAGE", "TEXT", "DiskCache", "Executor", "Kind", "Progress", "Result", "StepResult", "Tool",
    "Toolkit", "ToolkitMaker", "Value", "html_report", "kind_for", "kind_named", "read_input", "register",
    "save_report", "tool", "toolkit_named",
]  # fmt: skip
