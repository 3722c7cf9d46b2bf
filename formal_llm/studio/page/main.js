// The studio: puts the parts of the page together.
import { ask, cancel, fetched } from "./ask.js";
import { byId, download, el } from "./dom.js";
import { Editor } from "./editor.js";
import { Compare, Judge, Run } from "./elsewhere.js";
import { Picture } from "./picture.js";
import { Plans } from "./plans.js";
import { Steps } from "./steps.js";
import { Tree } from "./tree.js";

/** Milliseconds of rest before a check; longer where the last one took long. */
const REST = 120, LONG_REST = 350;
const VIEWS = ["rules", "picture", "plans", "step", "tree", "run", "judge", "compare"];
/** The views that are tabs in one column only, and lie beside the others where there is room. */
const PANES = ["rules", "picture"];
/** What is judged by notations that are about no plans. */
const JUDGED = { ".procedure": "Judge a run", ".guard": "Judge a trace" };
const column = matchMedia("(max-width: 800px)");

class Studio {
  constructor(start) {
    this.start = start;
    this.ending = start.ending === ".mermaid" ? ".mmd" : start.ending;
    this.version = start.version;
    this.saved = start.text;
    this.took = 0;
    this.editor = new Editor(() => this.changed());
    this.picture = new Picture();
    this.plans = new Plans(this);
    this.steps = new Steps(this);
    this.tree = new Tree(this);
    this.editor.text = start.text;
    this.run = new Run(this, start.llms);
    this.judge = new Judge(this);
    this.compare = new Compare(this);
    this.bind();
    byId("name").textContent = start.name;
    document.title = `${start.name} – studio`;
    this.tab("plans");
    this.notation();
    if (column.matches) this.tab("rules");
    if (start.followed) this.judge.follow();
    this.check(0);
  }

  /** What every question is about. */
  get rules() { return { text: this.editor.text, ending: this.ending }; }

  get stem() { return this.start.name.replace(/\.[^.]*$/, ""); }

  bind() {
    const select = byId("ending");
    const names = { ".cfg": "grammar (.cfg)", ".mmd": "flowchart (.mmd)", ".pda": "automaton (.pda)", ".agent": "behaviour (.agent)", ".procedure": "procedure (.procedure)", ".guard": "guard (.guard)" };
    select.append(...this.start.endings.map((ending) => el("option", { value: ending }, names[ending] ?? ending)));
    select.value = this.ending;
    select.disabled = this.start.writable;
    select.addEventListener("change", () => { this.ending = select.value; this.notation(); this.changed(); });
    column.addEventListener("change", () => { if (PANES.includes(this.view)) this.tab("plans"); });
    byId("save").addEventListener("click", () => this.save());
    byId("save").textContent = this.start.writable ? "Save" : "Download";
    byId("export").addEventListener("change", (event) => { this.export(event.target.value); event.target.value = ""; });
    byId("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
    byId("tabs").addEventListener("keydown", (event) => this.tabKey(event));
    for (const view of VIEWS) byId(`tab-${view}`).addEventListener("click", () => this.tab(view));
    addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "s") { event.preventDefault(); this.save(); }
      if (event.key === "F8") { event.preventDefault(); this.nextProblem(); }
    });
    addEventListener("beforeunload", (event) => { if (this.start.writable && this.editor.text !== this.saved) event.preventDefault(); });
    addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dropping"); });
    addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dropping"); });
    addEventListener("drop", (event) => {
      event.preventDefault();
      document.body.classList.remove("dropping");
      this.judge.open(event.dataTransfer.files[0]);
    });
    byId("text").addEventListener("mouseup", () => this.lookAround());
    byId("text").addEventListener("keyup", (event) => { if (event.key.startsWith("Arrow")) this.lookAround(); });
  }

  /** A procedure and a guard have no plans: what is about plans is hidden. */
  notation() {
    const judged = JUDGED[this.ending];
    for (const view of ["step", "tree", "run", "compare"]) byId(`tab-${view}`).hidden = Boolean(judged);
    byId("tab-picture").hidden = this.ending === ".guard";
    document.body.dataset.ending = this.ending;
    byId("tab-judge").textContent = judged ?? "Judge a plan";
    byId("tab-plans").textContent = judged ? "Meaning" : "Plans";
    if (byId(`tab-${this.view}`).hidden) this.tab("plans");
    this.editor.ending = this.ending;
  }

  /** A key was pressed in the editor: what is being found out is given up, and asked anew after a short rest. */
  changed() {
    byId("dirty").hidden = this.editor.text === this.saved;
    cancel("check");
    cancel("step");
    this.check(this.took > 0.5 ? LONG_REST : REST);
  }

  check(rest) {
    clearTimeout(this.waiting);
    byId("status").textContent = "checking …"; // "checked" is said of the text that stands there only
    this.waiting = setTimeout(() => this.checkNow(), rest);
  }

  async checkNow() {
    const asked = { ...this.rules, near: this.large ? this.editor.near : "", seed: this.plans.seed };
    await ask("check", "check", asked, (part) => {
      if (part.part === "problems") {
        this.problems = part.problems;
        this.showProblems();
        const failed = !part.facts;
        if (failed) this.picture.stale();
        else { this.picture.fresh(); this.follow(); }
      } else if (part.part === "problems more") { this.problems = [...this.problems, ...part.problems]; this.showProblems(); }
      else if (part.part === "picture") { this.large = this.ending === ".procedure" || / of .* boxes/.test(part.mermaid.slice(0, 120)); this.picture.keep("plans", part); }
      else if (part.part === "end") { this.took = part.seconds; byId("status").textContent = `checked in ${part.seconds.toFixed(2)} s`; }
      else if (part.part === "given up" || part.part === "bad question") byId("status").textContent = `not decided: ${part.reason}`;
      this.plans.take(part);
    });
  }

  /** The view that is open follows the rules. */
  follow() {
    if (this.view === "step") this.steps.refresh();
    if (this.view === "tree") this.tree.refresh();
  }

  /** Of large rules the picture shows what lies around the cursor, of a procedure the goal that stands there. */
  lookAround() {
    if (!this.large || this.picture.view !== "plans" || !this.editor.near || this.editor.near === this.centre) return;
    this.centre = this.editor.near;
    ask("look", "picture", { ...this.rules, near: this.centre }, (part) => { if (part.part === "picture") this.picture.keep("plans", part); });
  }

  showProblems() {
    this.editor.show(this.problems);
    byId("tab-rules").textContent = this.problems.length ? `Rules (${this.problems.length})` : "Rules";
    byId("problems").replaceChildren(...this.problems.map((one) => el("button", {
      type: "button", class: one.kind, onclick: () => { if (one.line !== null) this.editor.go(one.line, one.column); },
    }, `${one.kind}${one.line === null ? "" : ` in line ${one.line}`}: ${one.message}`, one.way_out ? el("span", { class: "way-out" }, one.way_out) : null)));
  }

  nextProblem() {
    const places = (this.problems ?? []).filter((one) => one.line !== null);
    if (!places.length) return;
    this.at = ((this.at ?? -1) + 1) % places.length;
    if (column.matches) this.tab("rules");
    this.editor.go(places[this.at].line, places[this.at].column);
  }

  tab(view) {
    this.view = document.body.dataset.view = view;
    for (const other of VIEWS) {
      const tab = byId(`tab-${other}`);
      tab.setAttribute("aria-selected", String(other === view));
      tab.tabIndex = other === view ? 0 : -1;
      if (!PANES.includes(other)) byId(`view-${other}`).hidden = other !== view;
    }
    if (!PANES.includes(view)) this.picture.look(view);
    if (view === "plans") this.plans.draw();
    if (view === "step") this.steps.refresh();
    if (view === "tree") this.tree.refresh();
  }

  tabKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const views = VIEWS.filter((one) => byId(`tab-${one}`).checkVisibility());
    const view = views.at((views.indexOf(this.view) + step) % views.length);
    this.tab(view);
    byId(`tab-${view}`).focus();
    event.preventDefault();
  }

  stepTo(answers) {
    this.steps.answers = answers;
    this.steps.undone = [];
    this.tab("step");
  }

  async save() {
    if (!this.start.writable) { download(this.stem + this.ending, this.editor.text, "text/plain"); return; }
    const text = this.editor.text;
    try {
      this.version = (await fetched("api/save", { text, version: this.version })).version;
      this.saved = text;
      byId("dirty").hidden = this.editor.text === this.saved;
      byId("status").textContent = "saved";
    } catch (error) {
      byId("status").textContent = `not saved: ${error.message}`;
    }
  }

  export(what) {
    if (what === "svg") this.picture.exportSvg(this.stem);
    else if (what === "png") this.picture.exportPng(this.stem);
    else if (what === "mermaid") this.picture.exportMermaid(this.stem);
    else if (what === "text") download(this.stem + this.ending, this.editor.text, "text/plain");
    else if (what === "examples") this.exportExamples();
  }

  exportExamples() {
    const examples = this.plans.examples;
    if (!examples.length) { byId("status").textContent = "no examples yet: keep one beneath a plan"; return; }
    const shown = ({ names }) => names.map((name) => (/[\s"]/.test(name) ? `"${name.replace(/[\\"]/g, "\\$&")}"` : name)).join(" ") || "ε";
    const sections = examples.map(({ plan, allowed }) => `--- ${allowed ? "allowed" : "not allowed"}\n${shown(plan)}\n`);
    download(`${this.stem}.examples`, `# Plans that ${this.start.name} should allow, and plans that it must not.\n${sections.join("\n")}`, "text/plain");
  }
}

function theme(name) {
  document.documentElement.dataset.theme = name;
}

const dark = matchMedia("(prefers-color-scheme: dark)");
theme(dark.matches ? "dark" : "light");
dark.addEventListener("change", () => theme(dark.matches ? "dark" : "light"));
window.studio = new Studio(await fetched("api/start"));
