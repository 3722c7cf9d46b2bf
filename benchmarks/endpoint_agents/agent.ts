// Agents as people write them in TypeScript, around npm's `openai` and the AI SDK; nothing in them knows of a guard.
// node --import tsx agent.ts BASE_URL MODEL RUNS TOOL...  prints, for each run, the calls that were made, as JSON.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import OpenAI from "openai";
import { z } from "zod";

const [baseURL, model, runs, ...tools] = process.argv.slice(2);
const MOST_ROUNDS = 12;
type Run = { agent: string; calls: string[]; answer?: string; error?: string };

async function chat(run: Run, number: number, stream: boolean) {
  const client = new OpenAI({ apiKey: "-", baseURL, maxRetries: 0 });
  const offered = tools.map((name) => ({ type: "function" as const, function: { name, parameters: { type: "object", properties: {} } } }));
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: `run ${number}` }];
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const asked = { model: `${model}:${number}`, messages, tools: offered };
    const message = stream
      ? (await client.chat.completions.stream(asked).finalChatCompletion()).choices[0].message
      : (await client.chat.completions.create(asked)).choices[0].message;
    messages.push(message);
    if (!message.tool_calls?.length) return message.content ?? "";
    for (const call of message.tool_calls) {
      if (call.type !== "function") continue;
      run.calls.push(call.function.name);
      messages.push({ role: "tool", tool_call_id: call.id, content: "done" });
    }
  }
}

async function sdk(run: Run, number: number, stream: boolean) {
  const provider = createOpenAI({ apiKey: "-", baseURL }); // Responses
  const made = Object.fromEntries(
    tools.map((name) => [name, tool({ inputSchema: z.object({}), execute: async () => (run.calls.push(name), "done") })]),
  );
  const asked = { model: provider(`${model}:${number}`), prompt: `run ${number}`, tools: made, maxRetries: 0, stopWhen: stepCountIs(MOST_ROUNDS) };
  const answered = (reason: string, text: string) => (reason === "tool-calls" ? undefined : text); // else out of steps
  if (!stream) {
    const { finishReason, text } = await generateText(asked);
    return answered(finishReason, text);
  }
  let failed: unknown;
  const answer = streamText({ ...asked, onError: ({ error }) => { failed = error; } });
  await answer.consumeStream();
  if (failed) throw failed;
  return answered(await answer.finishReason, await answer.text);
}

const AGENTS: [string, (run: Run, number: number) => Promise<string | undefined>][] = [
  ["openai", (run, n) => chat(run, n, false)], ["openai, streamed", (run, n) => chat(run, n, true)],
  ["AI SDK", (run, n) => sdk(run, n, false)], ["AI SDK, streamed", (run, n) => sdk(run, n, true)],
];
for (let number = 0; number < Number(runs); number++) {
  const [agent, start] = AGENTS[number % AGENTS.length];
  const run: Run = { agent, calls: [] };
  try {
    run.answer = await start(run, number);
  } catch (error) {
    run.error = String(error);
  }
  console.log(JSON.stringify(run));
}
