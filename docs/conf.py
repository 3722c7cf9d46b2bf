"""Sphinx settings of the book: ``sphinx-build -W --keep-going -b html docs docs/_build/html``. Needs no network."""

import importlib

from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Operator, Punctuation, String
from sphinx.application import Sphinx

import formal_llm

project = "formal_llm"
author = "The formal_llm developers"
copyright = author
version = release = formal_llm.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "both"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
autoclass_content = "class"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]  # not "Variables"
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = "formal_llm"
html_copy_source = False
html_show_sphinx = False


class GrammarLexer(RegexLexer):
    """Colours for the grammar notation, so that Sphinx does not take it for an INI file."""

    name = "formal_llm grammar"
    aliases = ["cfg"]  # noqa: RUF012  # as pygments wants it
    tokens = {  # noqa: RUF012
        "root": [
            (r"#[^\n]*", Comment),
            (r'"(?:[^"\\\n]|\\.)*"?', String),
            (r"%\w+", Keyword),
            (r"->|→|::=|\||<=|>=|=", Operator),
            (r"[(),]", Punctuation),
            (r"some(?=\s*\()", Keyword),
            (r"(?:(?!->|→|::=|[<>]=)[^\s\"#(),|=%])+", Name),
            (r"\s+", Punctuation),
            (r".", Name),
        ]
    }


class FlowchartLexer(RegexLexer):
    """Colours for Mermaid, which Pygments does not know."""

    name = "Mermaid flowchart"
    aliases = ["mermaid"]  # noqa: RUF012
    tokens = {  # noqa: RUF012
        "root": [
            (r"%%[^\n]*", Comment),
            (r'"[^"]*"?|(?<=\|)[^|\n]+(?=\|)', String),
            (r"\b(?:flowchart|graph|subgraph|end|direction)\b", Keyword),
            (r"--+[->xo]?|==+>?|-\.+->?|[|&;]", Operator),
            (r"[\[\](){}]+", Punctuation),
            (r"\w+", Name),
            (r"\s+", Punctuation),
            (r".", Name),
        ]
    }


#: Packages that import what they export when it is first used; autodoc lists what is there.
LAZY = ("planning", "automata", "llms", "agents", "guard", "procedures", "tools", "authoring")


def load_exports() -> None:
    """Import what the packages export."""
    for name in LAZY:
        package = importlib.import_module(f"formal_llm.{name}")
        for exported in package.__all__:
            setattr(package, exported, getattr(package, exported))


#: What keyboards and screen readers need beyond what Sphinx and Furo write: what scrolls sideways can have the focus.
ACCESSIBLE = {
    "body": {"<pre>": '<pre tabindex="0">', '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper'},
    "furo_navigation_tree": {'role="heading"': 'role="heading" aria-level="2"'},
}


def make_accessible(_app: Sphinx, _page: str, _template: str, context: dict[str, object], _doctree: object) -> None:
    for part, changes in ACCESSIBLE.items():
        for written, wanted in changes.items():
            context[part] = str(context.get(part, "")).replace(written, wanted)


def setup(app: Sphinx) -> None:
    load_exports()
    app.connect("html-page-context", make_accessible, priority=900)  # after Furo, which writes the navigation
    app.add_lexer("cfg", GrammarLexer)
    app.add_lexer("pda", GrammarLexer)
    app.add_lexer("mermaid", FlowchartLexer)
