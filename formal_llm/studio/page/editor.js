// The editor: a plain text area, with line numbers, marks and coloured words laid around it. Only what is visible is drawn,
// so that a file of ten thousand lines costs no more than one of fifty.
import { byId, el } from "./dom.js";

const LINE = 20, TOP = 8, LEFT = 10, TAB = 4;
/** The most characters of a line that are coloured. */
const MOST = 2000;
const COMMENTS = { ".mmd": "%%.*", ".agent": "[#;].*" };
const WORDS = {
  ".mmd": "\\b(?:flowchart|graph|subgraph|end|direction)\\b", ".agent": "(?<=\\():?[\\w>-]+|:[\\w-]+",
  ".procedure": "\\b(?:goal|check|action|fact|constant|all|any|first|none|in order|or|and|not)\\b",
  ".guard": "(?<![\\w.-])(?:rule|tools|for each|before|after|never|only|at most|at least|between|until|since|within|budget|with|block|ask|warn|log|or|and|not)(?![\\w-])",
};
/** What is coloured in a line: a comment, a text, a word of the notation, an arrow or bar. */
function colours(ending) {
  return new RegExp(`(${COMMENTS[ending] ?? "#.*"})|("(?:[^"\\\\]|\\\\.)*"?)|(%\\w+|${WORDS[ending] ?? "\\bsome(?=\\s*\\()"})|([-=.]{1,3}>|→|::=|[|])`, "g");
}

export class Editor {
  constructor(onChange) {
    this.area = byId("text");
    this.gutter = byId("gutter");
    this.marks = byId("marks");
    this.colours = byId("colours");
    this.problems = [];
    this.lines = 1;
    this.pen = document.createElement("canvas").getContext("2d");
    this.area.addEventListener("input", () => { this.count(); this.draw(); onChange(); });
    this.area.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.resized()).observe(this.area);
  }

  /** The bar of problems takes room from the editor: the line that is written stays in sight. */
  resized() {
    const line = this.area.value.slice(0, this.area.selectionStart).split("\n").length, hidden = TOP + line * LINE - this.area.scrollTop - this.area.clientHeight;
    if (hidden > 0 && document.activeElement === this.area) this.area.scrollTop += hidden + LINE;
    this.draw();
  }

  set ending(ending) {
    this.pattern = colours(ending);
    this.draw();
  }

  get text() { return this.area.value; }

  set text(text) {
    this.area.value = text;
    this.area.setSelectionRange(0, 0);
    this.area.scrollTop = 0;
    this.count();
    this.draw();
  }

  count() {
    const text = this.area.value;
    let lines = 1;
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++;
    this.lines = lines;
  }

  /** Show what is wrong, and where. */
  show(problems) {
    this.problems = problems.filter((one) => one.line !== null);
    this.area.setAttribute("aria-invalid", problems.some((one) => one.kind === "error"));
    this.draw();
  }

  draw() {
    const top = this.area.scrollTop, height = this.area.clientHeight;
    const first = Math.max(0, Math.floor((top - TOP) / LINE)), last = Math.min(this.lines - 1, Math.ceil((top + height) / LINE));
    const kinds = new Map(this.problems.map((one) => [one.line - 1, one.kind]));
    const numbers = [];
    for (let line = first; line <= last; line++) {
      const number = el("div", { class: kinds.get(line) ?? "" }, String(line + 1));
      number.style.top = `${TOP + line * LINE - top}px`;
      numbers.push(number);
    }
    this.gutter.replaceChildren(...numbers);
    const seen = this.problems.filter((one) => one.line - 1 >= first && one.line - 1 <= last);
    this.marks.replaceChildren(...seen.map((one) => this.mark(one)));
    const text = el("pre", {}, ...this.area.value.slice(this.begin(first), this.begin(last + 1)).split("\n").flatMap((line) => [...this.coloured(line), "\n"]));
    text.style.left = `${LEFT - this.area.scrollLeft}px`;
    text.style.top = `${TOP + first * LINE - top}px`;
    this.colours.replaceChildren(text);
  }

  /** The parts of a line, each in its colour. */
  *coloured(line) {
    let at = 0;
    for (const found of this.pattern ? line.slice(0, MOST).matchAll(this.pattern) : []) {
      yield line.slice(at, found.index);
      yield el("span", { class: ["comment", "string", "word", "arrow"][found.slice(1).findIndex(Boolean)] }, found[0]);
      at = found.index + found[0].length;
    }
    yield line.slice(at);
  }

  mark(problem) {
    this.pen.font = getComputedStyle(this.area).font;
    const line = this.line(problem.line - 1), from = Math.max(0, (problem.column ?? 1) - 1);
    const end = problem.column === null ? line.length : from + Math.max(1, (/^[^\s|]+/.exec(line.slice(from)) ?? [" "])[0].length);
    const left = this.width(line.slice(0, from)), right = this.width(line.slice(0, end));
    const mark = el("div", { class: problem.kind });
    mark.style.left = `${LEFT + left - this.area.scrollLeft}px`;
    mark.style.top = `${TOP + (problem.line - 1) * LINE - this.area.scrollTop}px`;
    mark.style.width = `${Math.max(8, right - left)}px`;
    return mark;
  }

  /** How wide a text is, with its tabs. */
  width(text) {
    let shown = "";
    for (const sign of text) shown += sign === "\t" ? " ".repeat(TAB - (shown.length % TAB)) : sign;
    return this.pen.measureText(shown).width;
  }

  /** Where a line begins in the text. */
  begin(line) {
    let at = 0;
    for (let n = 0; n < line; n++) {
      const end = this.area.value.indexOf("\n", at);
      if (end < 0) return this.area.value.length;
      at = end + 1;
    }
    return at;
  }

  line(number) {
    const at = this.begin(number), end = this.area.value.indexOf("\n", at);
    return this.area.value.slice(at, end < 0 ? undefined : end);
  }

  /** Go to a place, counted from 1. */
  go(line, column) {
    const at = this.begin(line - 1) + Math.max(0, (column ?? 1) - 1);
    this.area.focus();
    this.area.setSelectionRange(at, at);
    this.area.scrollTop = Math.max(0, (line - 1) * LINE - this.area.clientHeight / 2);
  }

  /** The word under the cursor. */
  get near() {
    const at = this.area.selectionStart, text = this.area.value;
    const before = /[^\s|"()]*$/.exec(text.slice(Math.max(0, at - 200), at))[0], after = /^[^\s|"()]*/.exec(text.slice(at, at + 200))[0];
    return before + after;
  }
}
