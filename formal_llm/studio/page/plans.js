// What the rules mean: figures, how many plans, the shortest, some at random; and which of them should be allowed.
import { byId, el, planRow } from "./dom.js";

export class Plans {
  constructor(studio) {
    this.studio = studio;
    this.panel = byId("view-plans");
    this.verdicts = new Map(); // plan (names, joined) -> {plan, allowed}
    this.seed = 0;
    this.found = { facts: [], samples: [] };
  }

  take(part) {
    // With an error the plans of the rules before it stay, and are named as such.
    if (part.part === "problems") this.found = part.facts ? { facts: part.facts, samples: [] } : { ...this.found, stale: true };
    else if (part.part === "shortest") this.found.shortest = part.plan;
    else if (part.part === "count") this.found.count = part.text;
    else if (part.part === "samples") this.found.samples = part.plans;
    else if (part.part === "undecided") this.found.undecided = part.reason;
    else return;
    this.draw();
  }

  draw() {
    const { facts, count, shortest, samples, undecided, stale } = this.found;
    const rows = facts.map(({ name, value }) => el("div", {}, el("dt", {}, name), el("dd", {}, value)));
    if (count) rows.unshift(el("div", {}, el("dt", {}, "plans"), el("dd", { id: "count" }, count)));
    if (undecided) rows.push(el("div", {}, el("dt", {}, "not decided"), el("dd", {}, undecided)));
    const parts = [stale && facts.length ? el("p", { class: "stale" }, "The rules have an error. This is what they meant before it.") : null, el("dl", { class: "facts" }, rows)];
    if (shortest) parts.push(el("h3", {}, "Shortest plan"), this.row(shortest));
    if (samples.length) {
      const again = el("button", { type: "button", id: "again", onclick: () => { this.seed += 1; this.studio.check(0); } }, "Draw others");
      parts.push(el("h3", {}, "At random, all equally likely ", again), samples.map((plan) => this.row(plan)));
    }
    const wrong = [...this.verdicts.values()].filter((one) => !samples.concat(shortest ?? []).some((plan) => key(plan) === key(one.plan)));
    if (wrong.length) parts.push(el("h3", {}, "Other examples"), wrong.map((one) => this.row(one.plan)));
    this.panel.replaceChildren(...parts.flat().filter(Boolean));
  }

  /** A plan, and beneath it two buttons that keep it as an example. */
  row(plan) {
    const buttons = [[true, "Keep as a good example"], [false, "Keep as a bad example"]].map(([allowed, text]) => el("button", {
      type: "button", class: "judged", "aria-label": `${text}: ${plan.labels.join(", ") || "the empty plan"}`,
      onclick: () => { if (this.verdicts.get(key(plan))?.allowed === allowed) this.verdicts.delete(key(plan)); else this.verdicts.set(key(plan), { plan, allowed }); press(); },
    }, text));
    const press = () => buttons.forEach((one, place) => one.setAttribute("aria-pressed", String(this.verdicts.get(key(plan))?.allowed === !place)));
    press();
    return el("div", { class: "example" }, planRow(plan), el("div", { class: "judging" }, buttons));
  }

  /** The examples as a file beside the rules. */
  get examples() { return [...this.verdicts.values()]; }
}

const key = (plan) => plan.names.join("\n");
