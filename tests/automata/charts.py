"""Random flowcharts, and nine written as people write them."""

from __future__ import annotations

from hypothesis import strategies as st

from formal_llm import Flowchart, FlowEdge, FlowNode
from formal_llm.automata.models.flowgraph import SHAPES

STEP_SHAPES = [shape for shape in SHAPES if shape not in ("diamond", "hexagon")]
NASTY = st.one_of(
    st.text(max_size=8),
    st.text('"#;&<>br/ `\n*_{}[]()|-.=fa:xo%\\é漢\u2028\x85', max_size=8),
    st.sampled_from(
        ["Start", "End", "", "end", "a --> b", "1. list", "- item", "<b>x</b>", "#quot;", "{buyer}", "%% x"]
    ),
)


RETURNS = Flowchart.from_mermaid("""
flowchart TD
    ask([Customer returns goods]) --> days{"Within {limit} days?"}
    days -->|yes| take[Take the goods]
    days -->|no| refuse([Refuse])
    take --> seal{Seal broken?}
    seal -->|yes| half[Refund half]
    seal -->|no| all[Refund all]
    half & all --> stop((End))
""")


@st.composite
def flowcharts(draw: st.DrawFn, *, loops: bool = True, texts: st.SearchStrategy[str] = NASTY) -> Flowchart:
    """Random charts that describe plans: a tree from the start, and more arrows from its inner nodes."""
    size = draw(st.integers(1, 8))
    arrows = [(draw(st.integers(max(0, node - 3), node - 1)), node) for node in range(1, size)]
    inner = sorted({source for source, _ in arrows})
    if inner:
        more = draw(st.lists(st.tuples(st.sampled_from(inner), st.integers(1, size - 1)), max_size=4))
        arrows += [(one, other) for one, other in more if loops or one < other]
    arrows = draw(st.permutations(arrows))
    names = draw(
        st.lists(st.from_regex(r"\A[A-Za-zé_][\w]{0,3}(-[\w]+)?\Z"), min_size=size, max_size=size, unique=True)
    )
    names = [f"n{name}" if name.islower() else name for name in names]
    if len(set(names)) < size:
        names = [f"n{number}" for number in range(size)]
    nodes = [
        FlowNode(names[n], draw(texts), draw(st.sampled_from(SHAPES if n in inner else STEP_SHAPES)))
        for n in range(size)
    ]
    edges = [FlowEdge(names[a], names[b], f"{draw(texts)} {n}") for n, (a, b) in enumerate(arrows)]
    direction = draw(st.sampled_from(["TB", "BT", "LR", "RL"]))
    return Flowchart(tuple(nodes), tuple(edges), direction, draw(texts))


#: Each with what it means: its decisions and its steps.
WILD: list[tuple[str, list[str], list[str]]] = [
    (  # the first example of Mermaid's own pages
        "graph TD\n    A[Christmas] -->|Get money| B(Go shopping)\n    B --> C{Let me think}\n    C -->|One| D[Laptop]"
        "\n    C -->|Two| E[iPhone]\n    C -->|Three| F[fa:fa-car Car]\n",
        ["Let me think"],
        ["Christmas", "Go shopping", "Laptop", "iPhone", "Car"],
    ),
    (  # semicolons, everything on few lines
        "graph LR; A([Start])-->B{Paid?}; B--yes-->C[Ship]; B--no-->D[Remind]; D-->B; C-->E([End]);",
        ["Paid?"],
        ["Ship", "Remind"],
    ),
    (  # quotes, line breaks, entities, an outcome as a stadium
        'flowchart TB\n  S(["Claim received"]) --> q1{"Filed within<br/>30 days?"}\n  q1 -- "Yes" -->'
        ' ok["Say #quot;accepted#quot;"]\n  q1 -- "No, late" --> late(["Refuse"])\n',
        ["Filed within\n30 days?"],
        ['Say "accepted"', "Refuse"],
    ),
    (  # styles, classes, links, front matter, comments, an init directive
        "---\ntitle: Data subject request\nconfig:\n  theme: base\n---\n%%{init: {'theme': 'dark'}}%%\nflowchart LR\n"
        "%% who asks\nid[Identify the person]:::blue --> known{Known to us?}\nknown -->|yes| give[Send the data]\n"
        "known -->|no| deny[Say that there is none]\nclassDef blue fill:#bbf,stroke:#f66;\nclass give,deny blue\n"
        "style deny stroke-dasharray: 5 5\nlinkStyle 0 stroke:#ff3\nclick give \"https://example.org\" _blank\n",
        ["Known to us?"],
        ["Identify the person", "Send the data", "Say that there is none"],
    ),
    (  # subgraphs with directions
        'flowchart TB\n subgraph intake [Intake]\n  direction LR\n  a[Open file] --> b[Check conflict]\n end\n'
        ' subgraph "Work"\n'
        "  c{Conflict?}\n end\n b --> c\n c -.->|no| d[Sign mandate]\n c ==>|yes| e[Decline]\n",
        ["Conflict?"],
        ["Open file", "Check conflict", "Sign mandate", "Decline"],
    ),
    (  # chains and groups, arrows of every kind and length
        "flowchart LR\na --> b ----> c{c?}\nc -- left --o d\nc -. right .-> e & f\n"
        .replace("e & f", "e") + "d & e ==> g((Done))\n",
        ["c?"],
        ["a", "b", "d", "e"],
    ),
    (  # Windows line ends, tabs, byte order mark
        "\ufeffflowchart TD\r\n\tA[Weigh parcel]\t-->\tB{Heavy?}\r\n\tB\t-->|yes|\tC[Van]\r\n"
        "\tB -->|no| D[Bicycle]\r\n",
        ["Heavy?"],
        ["Weigh parcel", "Van", "Bicycle"],
    ),
    (  # a hexagon, Markdown strings, steps of many shapes, a decision that is a plain box
        'graph TD\nA[[Look up]] --> B[(Register)]\nB --> C(Enter)\nC --> D([Print])\nD --> E{{Which court?}}\n'
        'E -->|"`**High** court`"| F[Plead]\nE -->|Local| G((Write))\nF --> H[[Flag]]\nG --> H\nH --> I[Next]\n'
        "I -->|more| A2[Again]\nI -->|enough| Z((Stop))\nA2 --> I\n",
        ["Which court?", "Next"],
        ["Look up", "Register", "Enter", "Print", "Plead", "Write", "Flag", "Again"],
    ),
    (  # links and texts that begin on another line, accessible texts
        'flowchart TD\naccTitle: Returns\naccDescr: How goods come back\nA["Take\nthe goods"]\n--> B{Seal\nbroken?}\n'
        "B -->|yes| C[Half]\nB -->|no|\nD[All]\n",
        ["Seal\nbroken?"],
        ["Take\nthe goods", "Half", "All"],
    ),
]  # fmt: skip
