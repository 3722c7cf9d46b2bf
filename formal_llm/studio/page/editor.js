// The editor: a plain text area, with line numbers and marks laid around it. Only what is visible is drawn, so that a
// file of ten thousand lines costs no more than one of fifty.
import { byId, el } from "./dom.js";

const LINE = 20, TOP = 8, LEFT = 10, TAB = 4;

export class Editor {
  constructor(onChange) {
    this.area = byId("text");
    this.gutter = byId("gutter");
    this.marks = byId("marks");
    this.problems = [];
    this.lines = 1;
    this.pen = document.createElement("canvas").getContext("2d");
    this.area.addEventListener("input", () => { this.count(); this.draw(); onChange(); });
    this.area.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.area);
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
      if (end < 0) break;
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
