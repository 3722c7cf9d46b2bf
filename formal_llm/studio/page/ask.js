// Questions to the server. Each lane has one question at a time: a new one gives the one before up.

const page = crypto.randomUUID();
const running = new Map();

/** Give up what a lane is asking. */
export function cancel(lane) {
  running.get(lane)?.abort();
  running.delete(lane);
}

/** Ask, and hand on the parts of the answer as they come; true when all of them came. */
export async function ask(lane, question, data, onPart) {
  cancel(lane);
  const control = new AbortController();
  running.set(lane, control);
  try {
    const response = await fetch("api/ask", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...data, question, lane: `${page}-${lane}` }),
      signal: control.signal,
    });
    if (!response.ok) throw new Error((await response.text()).slice(0, 300));
    let rest = "";
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (running.get(lane) !== control) return false;
        if (line) onPart(JSON.parse(line));
      }
    }
    return running.get(lane) === control;
  } catch (error) {
    if (control.signal.aborted) return false;
    onPart({ part: "problems", problems: [{ kind: "error", message: `the studio does not answer: ${error.message}. Is it still running in the terminal?`, line: null, column: null, way_out: "" }] });
    return false;
  } finally {
    if (running.get(lane) === control) running.delete(lane);
  }
}

/** A request for data that is no question. */
export async function fetched(path, data) {
  const options = data === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(data) };
  const response = await fetch(path, options);
  const found = await response.json();
  if (!response.ok) throw new Error(found.problem ?? response.statusText);
  return found;
}
