// Elements of text nodes only: nothing that a label says is ever read as markup.

/** An element with properties (data-*, aria-* and role as attributes) and children; texts become text nodes. */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name.includes("-") || name === "tabindex" || name === "role" || name === "for") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export const byId = (id) => document.getElementById(id);

/** A plan as a row of its steps; `wrong` is the place of the step that may not stand there. */
export function planRow(plan, wrong = null) {
  const steps = plan.labels.map((label, place) =>
    el("li", { class: place === wrong ? "step wrong" : "step", title: plan.names[place] }, label));
  if (!steps.length) steps.push(el("li", { class: "step" }, "ε (the empty plan)"));
  return el("ol", { class: "plan" }, steps);
}

/** Hand a file to the person. */
export function download(name, data, type) {
  const address = URL.createObjectURL(data instanceof Blob ? data : new Blob([data], { type }));
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
