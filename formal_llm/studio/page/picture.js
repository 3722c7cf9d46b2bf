// The picture. It is shown as an image of its own, in which no script runs, whatever the labels say.
import { byId, download } from "./dom.js";

export class Picture {
  constructor() {
    this.image = byId("picture");
    this.canvas = byId("canvas");
    this.note = byId("picture-note");
    this.parts = new Map();
    this.shown = null;
    this.zoom = null;
    this.address = null;
    for (const button of byId("zoom").children) button.addEventListener("click", () => this.scale(button.dataset.zoom));
    this.image.addEventListener("load", () => this.size());
    new ResizeObserver(() => this.size()).observe(this.canvas);
  }

  /** Keep a picture under the name of the view that it belongs to; the view that is looked at shows it. */
  keep(view, part) {
    this.parts.set(view, part);
    if (view === this.view || (this.view && !this.parts.has(this.view) && view === "plans")) this.look(this.view);
  }

  forget(view) { this.parts.delete(view); }

  /** Look at the picture of a view, or at that of the rules where it has none. */
  look(view) {
    this.view = view;
    const part = this.parts.get(view) ?? this.parts.get("plans");
    if (!part || part === this.shown) return;
    this.shown = part;
    this.canvas.classList.remove("stale");
    if (this.address) URL.revokeObjectURL(this.address);
    this.address = part.svg ? URL.createObjectURL(new Blob([part.svg], { type: "image/svg+xml" })) : null;
    this.image.hidden = !part.svg;
    if (part.svg) this.image.src = this.address;
    this.image.alt = part.text;
    this.note.textContent = part.problem ?? "";
  }

  stale() { this.canvas.classList.add("stale"); }

  fresh() { this.canvas.classList.remove("stale"); }

  scale(how) {
    const now = this.image.width / (this.natural || 1);
    this.zoom = how === "fit" ? null : Math.min(8, Math.max(0.1, now * (how === "in" ? 1.25 : 0.8)));
    this.size();
  }

  size() {
    const { naturalWidth: width, naturalHeight: height } = this.image;
    if (!width) return;
    this.natural = width;
    const fit = Math.min(1.3, (this.canvas.clientWidth - 24) / width, (this.canvas.clientHeight - 24) / height);
    this.image.width = Math.max(20, Math.round(width * (this.zoom ?? Math.max(0.1, fit))));
  }

  exportSvg(name) {
    if (this.shown?.svg) download(`${name}.svg`, this.shown.svg, "image/svg+xml");
  }

  exportMermaid(name) {
    if (this.shown) download(`${name}.mmd`, this.shown.mermaid, "text/plain");
  }

  /** The picture at twice its size on white, drawn by the browser. */
  async exportPng(name) {
    if (!this.shown?.svg) return;
    const image = new Image();
    image.src = this.address;
    await image.decode();
    const canvas = document.createElement("canvas");
    const scale = Math.min(2, 8000 / Math.max(image.naturalWidth, image.naturalHeight));
    canvas.width = Math.ceil(image.naturalWidth * scale);
    canvas.height = Math.ceil(image.naturalHeight * scale);
    const pen = canvas.getContext("2d");
    pen.fillStyle = "#ffffff";
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
    download(`${name}.png`, blob);
  }
}
