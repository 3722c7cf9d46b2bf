// The plan space: what can be chosen, how many plans lie behind it, opened branch by branch.
import { ask } from "./ask.js";
import { byId, el } from "./dom.js";

export class Tree {
  constructor(studio) {
    this.studio = studio;
    this.panel = byId("view-tree");
    this.queue = Promise.resolve();
    this.panel.addEventListener("keydown", (event) => this.key(event));
  }

  /** The branches at the start. */
  async refresh() {
    const root = el("ul", { role: "tree", "aria-label": "Plan space" });
    this.panel.replaceChildren(el("p", { class: "note" }, "How many plans begin with each choice. Of infinitely many, those up to a length are counted. Enter steps there."), root);
    await this.open(root, []);
    const first = root.querySelector('[role="treeitem"]');
    if (first) first.tabIndex = 0;
    else root.removeAttribute("role"); // a tree has branches
  }

  /** One question after the other: opening a branch does not give up the one before. */
  open(list, answers) {
    this.queue = this.queue.then(() => this.load(list, answers));
    return this.queue;
  }

  async load(list, answers) {
    const rows = [];
    await ask("tree", "branches", { ...this.studio.rules, answers, task: this.studio.steps.task }, (part) => {
      if (part.part === "branch") { rows.push(part); list.append(this.item(part, [...answers, part.answer])); this.shares(list, rows); }
      else if (part.part === "more branches") list.append(el("li", { role: "none", class: "note" }, "… and more"));
      else if (part.part === "problems") list.append(el("li", { role: "none", class: "error" }, part.problems[0]?.message ?? ""));
      else if (part.part === "given up" || part.part === "bad question") list.append(el("li", { role: "none", class: "note" }, `not counted further: ${part.reason}`));
    });
    if (!list.children.length) list.append(el("li", { role: "none", class: "note" }, "there is nothing to choose"));
  }

  item(part, answers) {
    const count = part.plans === null ? "not counted" : `${Number(part.plans).toLocaleString("en")} plans${part.longest === null ? "" : ` up to length ${part.longest}`}`;
    const bar = el("div", { class: "share" });
    const row = el("div", { class: "row", id: `branch-${JSON.stringify(answers)}` }, el("span", { class: "twist", "aria-hidden": "true" }, part.done ? "■" : "▸"), el("span", {}, part.text),
      " ", el("span", { class: "count" }, part.done ? "a finished plan" : count), el("div", { class: "shares" }, bar));
    const item = el("li", { role: "treeitem", tabindex: "-1", "aria-labelledby": row.id }, row);
    if (!part.done) item.setAttribute("aria-expanded", "false");
    item.answers = answers;
    row.addEventListener("click", () => { this.focus(item); if (!part.done) this.toggle(item); });
    row.addEventListener("dblclick", () => this.studio.stepTo(answers));
    return item;
  }

  /** Bars as long as the share of the plans behind a branch. */
  shares(list, rows) {
    const total = rows.reduce((sum, row) => sum + Number(row.plans ?? 0), 0);
    const bars = list.querySelectorAll(':scope > [role="treeitem"] > .row .share');
    rows.forEach((row, place) => { bars[place].style.width = total ? `${100 * Number(row.plans ?? 0) / total}%` : "0"; });
  }

  toggle(item, open = item.getAttribute("aria-expanded") === "false") {
    if (!item.hasAttribute("aria-expanded")) return;
    item.setAttribute("aria-expanded", String(open));
    item.querySelector(".twist").textContent = open ? "▾" : "▸";
    let group = item.querySelector(':scope > [role="group"]');
    if (!group && open) {
      group = el("ul", { role: "group", class: "branches" });
      item.append(group);
      this.open(group, item.answers);
    }
    if (group) group.hidden = !open;
  }

  focus(item) {
    for (const other of this.panel.querySelectorAll('[role="treeitem"][tabindex="0"]')) other.tabIndex = -1;
    item.tabIndex = 0;
    item.focus();
  }

  key(event) {
    const item = event.target.closest('[role="treeitem"]');
    if (!item) return;
    const items = [...this.panel.querySelectorAll('[role="treeitem"]')].filter((one) => !one.closest("[hidden]"));
    const place = items.indexOf(item), open = item.getAttribute("aria-expanded") === "true";
    const to = (other) => { if (other) this.focus(other); };
    if (event.key === "ArrowDown") to(items[place + 1]);
    else if (event.key === "ArrowUp") to(items[place - 1]);
    else if (event.key === "Home") to(items[0]);
    else if (event.key === "End") to(items.at(-1));
    else if (event.key === "ArrowRight") { if (open) to(items[place + 1]); else this.toggle(item, true); }
    else if (event.key === "ArrowLeft") { if (open) this.toggle(item, false); else to(item.parentElement.closest('[role="treeitem"]')); }
    else if (event.key === "Enter") this.studio.stepTo(item.answers);
    else return;
    event.preventDefault();
  }
}
