"""What a mask costs a token: ours around xgrammar's own, and by our automata.

Run: python benchmarks/masks.py [--tokens N] [--vocabulary N] [--fuzz N] [--first]

The vocabulary is made up: all bytes, numbers, words of many lengths with and without a blank before them. Times are of
the thread's processor, in microseconds, for one mask and one token taken. xgrammar alone and xgrammar behind MaskEngine
follow the same texts in turn, five times, and of each token the least time counts. Without xgrammar only the automata
are measured. The first table is of 80 tools that may be used once each, where nothing is known yet: of masks and of
Monitor.allowed(), with Python's garbage collector and without; with --first it is the only one. With --fuzz, random
grammars are compared: what either engine allows, against the other.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from formal_llm import CFG, Limits, Production
from formal_llm.agents import Monitor
from formal_llm.agents.decoding.automaton_masks import AutomatonMasks
from formal_llm.agents.decoding.contents import (
    Content,
    FreeText,
    Grammar,
    JsonSchema,
    OneOf,
    Regex,
    SegmentPattern,
    cfg_to_ebnf,
)
from formal_llm.agents.decoding.masks import TokenMatcher, list_mask_tokens
from formal_llm.agents.decoding.plan_texts import PlanTexts
from formal_llm.agents.decoding.token_vocabulary import TokenVocabulary
from formal_llm.agents.decoding.xgrammar_masks import XGrammarMasks
from formal_llm.authored.places import find
from formal_llm.errors import MissingDependency, NoValidPlan

MARKERS = ("[Action]", "[Answer]")
NEVER = ("[Thought]", "[Observation]")
SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"tool": {"enum": ["search", "lookup"]}, "query": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["tool", "query"],
}
CONTENTS: dict[str, Content] = {
    "free text": FreeText(),
    "one of ten texts": OneOf(*(f" the tool number {number}" for number in range(10))),
    "regex": Regex(r" [A-Za-z ]{1,200}\."),
    "JSON by a schema": JsonSchema.from_schema(SCHEMA),
    "grammar": Grammar(cfg_to_ebnf(CFG.from_string("%order forward\nS -> T | T S\nT -> wash | dry | wash_hot"), ", ")),
}


def openagi() -> CFG:
    """The grammar of the OpenAGI pack."""
    return CFG.from_file(find("grammars", "openagi", (".cfg",)))


def vocabulary(size: int, rng: random.Random) -> TokenVocabulary:
    """All bytes, then words: what tools are called among them, and many that are nothing."""
    cfg = openagi()
    told = [cfg.label(name) for name in cfg.terminals]
    pieces = dict.fromkeys([b"", *(bytes([byte]) for byte in range(256))])
    for text in [*told, *MARKERS, *NEVER, '{"tool": "search", "query": "', "\n", ", "]:
        for begin in range(len(text)):
            for end in range(begin + 2, min(begin + 9, len(text)) + 1):
                pieces[text[begin:end].encode()] = None
    pieces |= dict.fromkeys(str(number).encode() for number in range(1_000))
    while len(pieces) < size:
        word = "".join(rng.choices("etaoinshrdlucmfwypvbgkqjxz", weights=range(26, 0, -1), k=rng.randint(2, 10)))
        pieces[(word if rng.random() < 0.4 else f" {word}").encode()] = None
    return TokenVocabulary(list(pieces), [0])


def percentiles(times: list[int]) -> tuple[float, float]:
    """The median and the 99th percentile, in microseconds."""
    ordered = sorted(times)
    return ordered[len(ordered) // 2] / 1_000, ordered[int(len(ordered) * 0.99)] / 1_000


def least(passes: list[list[int]]) -> list[int]:
    """For each token the least of its times: the same work is done in each pass, and what others do is left out."""
    return [min(times) for times in zip(*passes, strict=True)]


def random_texts(matcher: TokenMatcher, tokens: int, seed: int) -> list[list[int]]:
    """Texts that a matcher allows, token by token at random: so many tokens together."""
    rng = random.Random(seed)
    texts: list[list[int]] = []
    total = 0
    while total < tokens:
        matcher.reset()
        text: list[int] = []
        # The last mask of a text that ends with a marker is looked at no more: the next state begins there.
        while len(text) < 200 and not matcher.stopped and not (text and matcher.may_stop()):
            text.append(rng.choice(list_mask_tokens(matcher.mask())))
            matcher.accept(text[-1])
        texts.append(text)
        total += len(text)
    return texts


def replay(
    texts: list[list[int]], reset: Callable[[], object], mask: Callable[[], object], accept: Callable[[int], object]
) -> list[int]:
    """Nanoseconds of a mask and a token taken, for each token of the texts."""
    times = []
    now = time.thread_time_ns
    for text in texts:
        reset()
        for token in text:
            begin = now()
            mask()
            accept(token)
            times.append(now() - begin)
    return times


def beside_xgrammar(words: TokenVocabulary, tokens: int, table: Table) -> None:
    """Xgrammar alone, and behind our interface, over the same texts in turn."""
    engine = XGrammarMasks(words)
    import torch
    import xgrammar

    bits = torch.zeros((1, -(-words.size // 32)), dtype=torch.int32)
    for name, content in CONTENTS.items():
        what = SegmentPattern(content, MARKERS, never=NEVER)
        matcher = engine.compile(what)
        raw = xgrammar.GrammarMatcher(engine._compiled[what][0])
        texts = random_texts(matcher, tokens, 0)
        alone, ours = [], []
        for _ in range(5):
            alone.append(
                replay(texts, raw.reset, lambda: raw.fill_next_token_bitmask(bits), raw.accept_token)  # noqa: B023
            )
            ours.append(replay(texts, matcher.reset, matcher.mask, matcher.accept))
        (half, most), (our_half, our_most) = percentiles(least(alone)), percentiles(least(ours))
        more = f"{our_most - most:+.1f}"
        table.add_row(name, f"{half:.1f}", f"{most:.1f}", f"{our_half:.1f}", f"{our_most:.1f}", more)


def automata(words: TokenVocabulary, tokens: int, table: Table) -> None:
    """Our automata: the first time that a text is written, and when its places are known."""
    tools = CFG([Production("S", (f"tool_{n}", "S")) for n in range(200)] + [Production("S", ("end",))])
    few = CFG([Production("S", (f"tool_{n}", "S")) for n in range(20)] + [Production("S", ("end",))])
    cases = {
        "OpenAGI, each tool once": openagi(),
        "20 tools, each once": few.with_limits(Limits(default=1)),
        "200 tools, no limits": tools,
    }
    for name, cfg in cases.items():
        texts = random_texts(AutomatonMasks(words).compile(PlanTexts(cfg)), tokens, 1)
        matcher = AutomatonMasks(words).compile(PlanTexts(cfg))
        first, *known = [replay(texts, matcher.reset, matcher.mask, matcher.accept) for _ in range(4)]
        table.add_row(name, *(f"{value:.1f}" for times in (first, least(known)) for value in percentiles(times)))


def first_looks(words: TokenVocabulary, tokens: int, table: Table) -> None:
    """80 tools, each at most once: masks, and what a monitor allows, where nothing is known yet."""
    names = [f"tool_{number}" for number in range(80)]
    rules = CFG([*(Production("S", (name, "S")) for name in names), Production("S", ("end",))])
    cfg = rules.with_limits(Limits(default=1))
    texts = random_texts(AutomatonMasks(words).compile(PlanTexts(cfg)), tokens, 2)
    rng = random.Random(3)
    traces = [rng.sample(names, 40) for _ in range(tokens // 400)]
    for collector in (True, False):
        (gc.enable if collector else gc.disable)()
        gc.collect()
        matcher, start = AutomatonMasks(words).compile(PlanTexts(cfg)), Monitor(cfg)
        times = {"a mask": replay(texts, matcher.reset, matcher.mask, matcher.accept), "Monitor.allowed()": []}
        for trace in traces:
            monitor = start
            for name in trace:
                begin = time.thread_time_ns()
                monitor.allowed()
                monitor = monitor.after(name)
                times["Monitor.allowed()"].append(time.thread_time_ns() - begin)
        for what, found in times.items():
            values = [f"{value / 1_000:.2f}" for value in (*percentiles(found), max(found) / 1_000)]
            table.add_row(what, "on" if collector else "off", *values)
    gc.enable()


def doubled(words: TokenVocabulary, token: int) -> bool:
    """Whether it is a token that xgrammar 0.2.8 leaves out now and then: ``xxa`` where ``xa`` is a token, too."""
    piece = words.pieces[token]
    return len(piece) > 2 and piece[0] == piece[1] and piece[1:] in words.pieces


def fuzz(count: int, console: Console) -> None:
    """Random grammars: the masks of both engines, along random texts."""
    compared = grammars = lost = 0
    seed = 0
    while grammars < count:
        rng = random.Random(seed)
        seed += 1
        heads, letters = "SAB"[: rng.randint(1, 3)], "abc"
        rules = [
            Production(rng.choice(heads), tuple(rng.choices(heads + letters, k=rng.randint(0, 3))))
            for _ in range(rng.randint(1, 7))
        ]
        cfg = CFG([Production("S", tuple(rng.choices(heads + letters, k=rng.randint(0, 3)))), *rules])
        texts = {name: "".join(rng.choices("xy ,", k=rng.randint(1, 4))) for name in cfg.terminals}
        separator = rng.choice(["", " ", ", ", "x"])
        longer = ["".join(rng.choices("xy ,", k=rng.randint(2, 6))) for _ in range(8)]
        pieces = [b"", *(piece.encode() for piece in ["x", "y", " ", ",", *longer])]
        words = TokenVocabulary(pieces, [0])
        try:
            ours: TokenMatcher = AutomatonMasks(words).compile(PlanTexts(cfg, separator=separator, texts=texts))
        except NoValidPlan:
            continue
        grammars += 1
        theirs: TokenMatcher = XGrammarMasks(words).compile(
            SegmentPattern(Grammar(cfg_to_ebnf(cfg, separator, texts)), may_end=True)
        )
        for _ in range(12):
            allowed = list_mask_tokens(ours.mask())
            found = list_mask_tokens(theirs.mask())
            missing = set(allowed) - set(found)
            if set(found) - set(allowed) or any(not doubled(words, token) for token in missing):
                raise SystemExit(f"grammar {seed - 1}: the masks differ\n{cfg}")
            lost += len(missing)
            compared += 1
            token = rng.choice(allowed)
            if not (ours.accept(token) and theirs.accept(token)) or ours.stopped:
                break
    console.print(
        f"{grammars:,} random grammars, {compared:,} masks compared: nothing illegal allowed; of what is legal, "
        f"xgrammar's masks leave out {lost} tokens"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=4_000, help="how many tokens each case takes")
    parser.add_argument("--vocabulary", type=int, default=128_000, help="how many tokens there are")
    parser.add_argument("--fuzz", type=int, default=0, help="how many random grammars are compared")
    parser.add_argument("--first", action="store_true", help="measure only what the first look at a place takes")
    settings = parser.parse_args()
    console = Console(width=120)
    words = vocabulary(settings.vocabulary, random.Random(0))
    first = Table("80 tools, each once", "collector", "p50", "p99", "most", title="ms a token or event, at new places")
    first_looks(words, settings.tokens, first)
    console.print(first)
    if settings.first:
        return
    table = Table("content", "xgrammar p50", "p99", "MaskEngine p50", "p99", "more at p99", title="µs a token")
    try:
        beside_xgrammar(words, settings.tokens, table)
        console.print(table)
        if settings.fuzz:
            fuzz(settings.fuzz, console)
    except MissingDependency as error:
        console.print(str(error))
    table = Table("rules", "new places p50", "p99", "known p50", "p99", title="µs a token, by our automata")
    automata(words, settings.tokens, table)
    console.print(table)


if __name__ == "__main__":
    main()
