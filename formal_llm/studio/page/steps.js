// Being the model: the question, what is not offered and why, the configuration, and the way back.
import { ask } from "./ask.js";
import { byId, el, planRow } from "./dom.js";

export class Steps {
  constructor(studio) {
    this.studio = studio;
    this.panel = byId("view-step");
    this.answers = [];
    this.undone = [];
    this.task = "";
    this.panel.addEventListener("keydown", (event) => this.key(event));
  }

  /** Stand after some answers. */
  go(answers) {
    this.answers = answers;
    this.undone = [];
    return this.refresh();
  }

  answer(numbers) {
    this.answers = [...this.answers, numbers];
    this.undone = [];
    return this.refresh(true);
  }

  back() {
    if (!this.answers.length) return;
    this.undone.push(this.answers.at(-1));
    this.answers = this.answers.slice(0, -1);
    this.refresh(true);
  }

  forward() {
    if (!this.undone.length) return;
    this.answers = [...this.answers, this.undone.pop()];
    this.refresh(true);
  }

  async refresh(focus = false) {
    await ask("step", "step", { ...this.studio.rules, answers: this.answers, task: this.task }, (part) => {
      if (part.part === "position") { this.position = part; this.problem = null; this.draw(focus); }
      else if (part.part === "picture") this.studio.picture.keep("step", part);
      // Beside what stands: drawn anew it would lose the focus, and the boxes ticked in the meantime.
      else if (part.part === "left out") this.panel.querySelector("ol.options")?.append(...part.options.map(leftOut));
      else if (part.part === "problems") {
        if (this.answers.length) { this.answers = []; this.refresh(); return; } // the rules changed under the answers
        this.position = null;
        this.problem = part.problems[0]?.message;
        this.draw();
      } else if (part.part === "given up" || part.part === "bad question") { this.problem = part.reason; this.draw(); }
    });
  }

  key(event) {
    if (event.target.closest("input, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Backspace") { event.preventDefault(); this.back(); }
    else if (/^[1-9]$/.test(event.key) && this.position && !this.position.several) {
      const number = Number(event.key);
      if (this.position.options.some((one) => one.number === number)) { event.preventDefault(); this.answer([number]); }
    }
  }

  draw(focus = false) {
    const here = this.position;
    if (!here) {
      this.panel.replaceChildren(el("p", { class: this.problem ? "error" : "note" }, this.problem ?? "…"));
      return;
    }
    const bar = el("div", { class: "bar" },
      el("button", { type: "button", id: "back", disabled: !this.answers.length, onclick: () => this.back(), title: "Backspace" }, "← Back"),
      el("button", { type: "button", disabled: !this.undone.length, onclick: () => this.forward() }, "Again →"),
      el("button", { type: "button", disabled: !this.answers.length, onclick: () => this.go([]) }, "From the start"),
      el("span", { class: "note" }, `${this.answers.length} answered`));
    const left = el("div", {}, bar, el("h3", {}, "The plan so far"), here.done ? this.studio.plans.row(here.word) : planRow(here.word),
      here.done ? this.finished(here) : this.question(here));
    const right = el("div", {}, this.configuration(here));
    this.panel.replaceChildren(el("div", { class: "columns" }, left, right));
    if (focus) (this.panel.querySelector("ol.options button, ol.options input") ?? byId("back"))?.focus({ preventScroll: true });
  }

  finished(here) {
    const steps = el("ol", { class: "log" }, here.steps.map((step) => el("li", {}, step)));
    return el("div", {}, el("p", { class: "verdict good", id: "finished" }, "The plan is finished."), steps);
  }

  question(here) {
    const rows = here.options.map((one) => el("li", {}, here.several ? this.box(one) : this.button(one)));
    const send = here.several ? el("button", { type: "button", class: "main", onclick: () => this.send() }, "Choose these") : null;
    return el("div", {}, el("pre", { class: "prompt", tabindex: "0" }, question(here.prompt)), el("ol", { class: "options" }, rows), send);
  }

  button(one) {
    return el("button", { type: "button", "data-number": String(one.number), onclick: () => this.answer([one.number]) },
      el("span", { class: "number" }, String(one.number)), one.text);
  }

  box(one) {
    return el("label", {}, el("input", { type: "checkbox", value: String(one.number) }), " ", one.text);
  }

  async send() {
    const numbers = [...this.panel.querySelectorAll("ol.options input:checked")].map((box) => Number(box.value));
    if (numbers.length) this.answer(numbers);
  }

  configuration(here) {
    const stack = here.stack.map((name, place) => el("li", { class: place ? "" : "top" }, name));
    if (here.deeper) stack.push(el("li", {}, `… and ${here.deeper} more`));
    const limits = here.limits.flatMap((one) => [
      el("span", {}, one.line.replace(/^%/, "")),
      el("meter", { min: 0, max: one.whole || 1, value: one.now, "aria-label": one.line }),
      el("span", { class: one.kind === "left" && !one.now ? "used-up" : "" },
        `${one.amount} ${one.kind}`)]);
    return [el("h3", {}, "State"), el("p", { id: "state" }, here.state),
      el("h3", {}, stack.length ? "Stack, its top first" : "Stack: empty"), el("ol", { class: "stack", id: "stack", "aria-label": "Stack" }, stack),
      limits.length ? [el("h3", {}, "Limits"), el("div", { class: "limits" }, limits)] : []].flat();
  }
}

/** An option that the question does not offer, and why. */
function leftOut(one) {
  return el("li", {}, el("div", { class: "missing", tabindex: "0", title: one.reason },
    el("span", { class: "number" }, "–"), el("s", {}, one.text), el("span", { class: "why" }, one.reason)));
}

/** Of a prompt what asks: without the task and the progress, which stand elsewhere, and the numbered lines, which are buttons. */
function question(prompt) {
  const paragraphs = prompt.split(/\n\n+/).filter((one) => !/^(Task description|Current progress|Answer with)/.test(one));
  return paragraphs.map((one) => one.split("\n").filter((line) => !/^\d+: /.test(line)).join("\n")).join("\n\n").trim();
}
