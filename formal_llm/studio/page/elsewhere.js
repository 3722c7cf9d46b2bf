// What was made elsewhere: a run of a model, a plan or a recording that is judged, another version that is compared.
import { ask, cancel, fetched } from "./ask.js";
import { byId, el, planRow } from "./dom.js";

const problemsOf = (part) => part.problems.map((one) => el("p", { class: one.kind }, [one.message, one.way_out].filter(Boolean).join("\n")));

export class Run {
  constructor(studio, llms) {
    this.studio = studio;
    this.log = el("ol", { class: "log", "aria-live": "polite", "aria-label": "What happens" });
    this.name = el("input", { type: "text", id: "llm", value: "test:random", size: 26 });
    this.name.setAttribute("list", "llms");
    this.task = el("input", { type: "text", id: "task", size: 40, placeholder: "what the plan is for" });
    this.start = el("button", { type: "submit", class: "main" }, "Run");
    this.stop = el("button", { type: "button", disabled: true, onclick: () => { cancel("run"); this.ended("stopped"); } }, "Stop");
    const known = el("datalist", { id: "llms" }, Object.entries(llms).map(([form, meaning]) => el("option", { value: form, label: meaning })));
    const form = el("form", { class: "bar", onsubmit: (event) => { event.preventDefault(); this.run(); } },
      el("label", {}, "Model ", this.name), el("label", {}, "Task ", this.task), this.start, this.stop, known);
    byId("view-run").replaceChildren(form, this.log);
  }

  say(quiet, ...what) { this.log.append(el("li", { class: quiet ? "quiet" : "" }, ...what)); }

  ended(why) {
    this.start.disabled = false;
    this.stop.disabled = true;
    if (why) this.say(true, why);
  }

  async run() {
    this.log.replaceChildren();
    this.start.disabled = true;
    this.stop.disabled = false;
    this.studio.steps.task = this.task.value;
    let number = 0;
    await ask("run", "run", { ...this.studio.rules, llm: this.name.value, task: this.task.value }, (part) => {
      if (part.part === "asked") this.asked = part.prompt;
      else if (part.part === "answered") {
        number += 1;
        this.say(false, `${number}. `, el("strong", {}, part.text), el("span", { class: "note" }, `  (${part.answer.join(", ")})`));
        this.watch(part.answers);
      } else if (part.part === "forced") this.say(true, `taken without a question: ${part.text}`);
      else if (part.part === "backtracked") this.say(true, `dead end; back, without: ${part.text}`);
      else if (part.part === "finished") this.finished(part);
      else if (part.part === "problems") this.log.append(el("li", {}, problemsOf(part)));
      else if (part.part === "given up" || part.part === "bad question") this.say(false, part.reason);
    });
    this.ended();
  }

  finished(part) {
    const step = part.answers === null ? null : el("button", { type: "button", onclick: () => this.studio.stepTo(part.answers) }, "Step through it");
    this.log.append(el("li", {}, el("p", { class: "verdict good" }, `A plan after ${part.questions} questions`), planRow(part.word), el("pre", { class: "prompt", tabindex: "0" }, part.plan), step));
  }

  /** Where the model stands, in the picture. */
  watch(answers) {
    ask("watch", "step", { ...this.studio.rules, answers, task: this.task.value }, (part) => {
      if (part.part === "picture") this.studio.picture.keep("run", part);
    });
  }
}

export class Judge {
  constructor(studio) {
    this.studio = studio;
    this.area = el("textarea", { class: "drop", id: "plan", "aria-label": "A plan, or a recording", placeholder: "Drop a file here, or type: the steps of a plan, names with blanks between them, a recording of answers (.jsonl), a transcript of an agent, the outcome or journal of a procedure, a trace for a guard." });
    this.file = el("input", { type: "file", "aria-label": "A file with a plan", onchange: () => this.open(this.file.files[0]) });
    this.result = el("div", { "aria-live": "polite", id: "judged" });
    byId("view-judge").replaceChildren(this.area, el("div", { class: "bar" }, el("button", { type: "button", class: "main", id: "judge", onclick: () => this.judge() }, "Judge"), this.file), this.result);
  }

  async open(file) {
    if (!file) return;
    if (file.size > 8_000_000) { this.result.replaceChildren(el("p", { class: "error" }, `${file.name} is too large: 8 MB are the most`)); return; }
    this.area.value = await file.text();
    this.studio.tab("judge");
    this.judge();
  }

  /** Judge a run that is under way again whenever its file has grown. */
  follow() {
    this.studio.tab("judge");
    const look = async () => {
      try {
        const { text } = await fetched("api/followed");
        if (text !== this.area.value) { this.area.value = text; await this.judge(); }
      } catch (error) { this.result.replaceChildren(el("p", { class: "error" }, error.message)); }
      setTimeout(look, 1000);
    };
    look();
  }

  async judge() {
    this.studio.picture.forget("judge");
    const found = [];
    await ask("judge", "judge", { ...this.studio.rules, plan: this.area.value }, (part) => {
      if (part.part === "verdict") found.push(...this.verdict(part));
      else if (part.part === "picture") this.studio.picture.keep("judge", part);
      else if (part.part === "problems") found.push(...problemsOf(part));
      else if (part.part === "given up" || part.part === "bad question") found.push(el("p", { class: "error" }, part.reason));
      this.result.replaceChildren(...found);
    });
  }

  verdict(part) {
    const rows = [el("p", { class: `verdict ${part.valid ? "good" : "bad"}` }, part.valid ? `Valid: ${part.reason}` : `Not valid: ${part.reason}`)];
    if (part.word) rows.push(planRow(part.word, part.position));
    if (part.events.length) rows.push(el("ol", { class: "log" }, part.events.map((one) => el("li", {}, el("span", { class: "note" }, one.place), one.text,
      one.action ? el("p", { class: one.action === "block" ? "error" : "warned" }, `${one.action}: ${one.why}`) : null))));
    if (part.events.length && part.changes.length) rows.push(el("h3", {}, "Nearest trace that keeps the rules"), el("p", {}, part.changes.join("; ")));
    if (part.allowed.length && !part.valid) rows.push(el("h3", {}, "There could stand"), el("p", {}, part.allowed.slice(0, 40).join(" / ")));
    if (!part.valid && part.nearest) rows.push(el("h3", {}, "Nearest valid plan, which the picture shows"), planRow(part.nearest), el("ul", {}, part.changes.map((one) => el("li", {}, one))));
    if (part.skipped.length) rows.push(el("h3", {}, "Left out as no step"), el("ul", {}, part.skipped.map((one) => el("li", {}, one))));
    if (part.answers) rows.push(el("button", { type: "button", onclick: () => this.studio.stepTo(part.answers) }, "Step to this place"));
    return rows;
  }
}

export class Compare {
  constructor(studio) {
    this.studio = studio;
    this.before = studio.editor.text;
    this.name = "as it was opened";
    this.title = el("span", { class: "note" });
    this.file = el("input", { type: "file", "aria-label": "Another version", onchange: async () => { const file = this.file.files[0]; if (file) this.keep(await file.text(), file.name); } });
    this.result = el("div", { "aria-live": "polite", id: "compared" });
    byId("view-compare").replaceChildren(el("div", { class: "bar" },
      el("button", { type: "button", class: "main", id: "compare", onclick: () => this.compare() }, "Compare with the version"), this.title,
      el("button", { type: "button", onclick: () => this.keep(this.studio.editor.text, `kept at ${new Date().toLocaleTimeString()}`) }, "Keep this version"), this.file), this.result);
    this.keep(this.before, this.name);
  }

  keep(text, name) {
    this.before = text;
    this.name = name;
    this.title.textContent = name;
    this.result.replaceChildren();
  }

  async compare() {
    this.result.replaceChildren(el("p", { class: "note" }, "…"));
    await ask("compare", "compare", { ...this.studio.rules, other: this.before }, (part) => {
      if (part.part === "differences") this.result.replaceChildren(...this.told(part));
      else if (part.part === "problems") this.result.replaceChildren(...problemsOf(part));
      else if (part.part === "given up" || part.part === "bad question") this.result.replaceChildren(el("p", { class: "error" }, part.reason));
    });
  }

  told(part) {
    const rows = [];
    const length = part.up_to === null ? "" : ` of at most ${part.up_to} terminals`;
    if (part.equal) rows.push(el("p", { class: "verdict good" }, part.exact ? "The same plans." : `The same plans${length}; longer ones were not compared.`));
    else rows.push(el("p", { class: "verdict bad" }, "Not the same plans."));
    const only = (title, plan) => rows.push(el("h3", {}, title), plan ? this.studio.plans.row(plan) : el("p", {}, part.exact ? "nothing" : `nothing${length}`));
    if (!part.equal) { only(`Only ${this.name}: a shortest plan`, part.only_before); only("Only now: a shortest plan", part.only_now); }
    if (part.counts.length) rows.push(el("h3", {}, "How many plans of each length"), el("table", {}, el("thead", {}, el("tr", {}, ["length", "before", "now"].map((one) => el("th", { scope: "col" }, one)))), el("tbody", {}, part.counts.map((row) => el("tr", {}, row.map((one) => el("td", {}, String(one))))))));
    return rows;
  }
}
