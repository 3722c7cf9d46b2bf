// What the rules mean: figures, how many plans, the shortest, some at random; and which of them should be allowed.
import { byId, el, planRow } from "./dom.js";

export class Plans {
  constructor(studio) {
    this.studio = studio;
    this.panel = byId("view-plans");
    this.verdicts = new Map(); // plan (names, joined) -> {plan, allowed}
    this.seed = 0;
    this.clear();
  }

  clear() { this.found = { facts: [], samples: [] }; }

  take(part) {
    if (part.part === "problems") this.found = { facts: part.facts ?? [], samples: [] };
    else if (part.part === "shortest") this.found.shortest = part.plan;
    else if (part.part === "count") this.found.count = part.text;
    else if (part.part === "samples") this.found.samples = part.plans;
    else if (part.part === "undecided") this.found.undecided = part.reason;
    else return;
    this.draw();
  }

  draw() {
    const { facts, count, shortest, samples, undecided } = this.found;
    const rows = facts.map(({ name, value }) => el("div", {}, el("dt", {}, name), el("dd", {}, value)));
    if (count) rows.unshift(el("div", {}, el("dt", {}, "plans"), el("dd", { id: "count" }, count)));
    if (undecided) rows.push(el("div", {}, el("dt", {}, "not decided"), el("dd", {}, undecided)));
    const parts = [el("dl", { class: "facts" }, rows)];
    if (shortest) parts.push(el("h3", {}, "Shortest plan"), this.row(shortest));
    if (samples.length) {
      const again = el("button", { type: "button", class: "judged", onclick: () => { this.seed += 1; this.studio.check(0); } }, "others");
      parts.push(el("h3", {}, "At random, all equally likely. Should they be allowed? ", again), samples.map((plan) => this.row(plan)));
    }
    const wrong = [...this.verdicts.values()].filter((one) => !samples.concat(shortest ?? []).some((plan) => key(plan) === key(one.plan)));
    if (wrong.length) parts.push(el("h3", {}, "Other examples"), wrong.map((one) => this.row(one.plan)));
    this.panel.replaceChildren(...parts.flat());
  }

  row(plan) { return planRow(plan, { more: this.judging(plan) }); }

  /** Two buttons: should this plan be allowed? */
  judging(plan) {
    const said = this.verdicts.get(key(plan))?.allowed;
    const button = (allowed, text) => el("li", {}, el("button", {
      type: "button", class: "judged", "aria-pressed": String(said === allowed), title: allowed ? "an example of a plan that is right" : "an example of a plan that must not be allowed",
      onclick: () => { this.judge(plan, said === allowed ? null : allowed); },
    }, text));
    return [button(true, "yes"), button(false, "no")];
  }

  judge(plan, allowed) {
    if (allowed === null) this.verdicts.delete(key(plan));
    else this.verdicts.set(key(plan), { plan, allowed });
    this.draw();
  }

  /** The examples as a file beside the rules. */
  get examples() { return [...this.verdicts.values()]; }
}

const key = (plan) => plan.names.join("\n");
