"""The old paths of guards."""

import subprocess
import sys


def test_old_paths_give_the_same_classes_with_a_warning() -> None:
    code = (
        "import warnings; warnings.simplefilter('error')\n"
        "import formal_llm.guard.rules.rule_set as new, formal_llm.control.search\n"
        "import formal_llm.guard.traces.trace as trace\n"
        "try: import formal_llm.agents.guard\n"
        "except DeprecationWarning as warning: print(warning)\n"
        "warnings.simplefilter('ignore')\n"
        "from formal_llm.agents.guard import Guard, GuardRules\n"
        "from formal_llm.agents.guard.rules import GuardRule\n"
        "from formal_llm.agents.guard.traces.trace import __name__ as name\n"
        "import formal_llm.agents.guard.search, formal_llm.guard\n"
        "assert GuardRule is new.GuardRule and Guard is formal_llm.guard.Guard\n"
        "assert formal_llm.control.search.ViabilitySearch is formal_llm.agents.guard.search.ViabilitySearch\n"
        "assert formal_llm.control.search.__spec__.name == 'formal_llm.control.search' and trace.__name__ == name\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "formal_llm.agents.guard is now formal_llm.guard\n"
