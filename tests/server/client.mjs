// The official Node library against a running server: node client.mjs BASE_URL API_KEY NODE_MODULES.
// Prints one JSON object with what it saw.
import { createRequire } from "node:module";

const [baseURL, apiKey, modules] = process.argv.slice(2);
const OpenAI = createRequire(`${modules}/`)("openai").default;
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const who = { user: "anna", metadata: { session_id: "s" } };
const say = (content, more = {}) =>
  client.chat.completions.create({ model: "m", messages: [{ role: "user", content }], ...who, ...more });

const whole = await say("Какой торт?");

let streamed = "";
for await (const chunk of await say("Сколько коржей?", { stream: true })) {
  streamed += chunk.choices[0]?.delta?.content ?? "";
}

let refused = {};
try {
  await say("two answers", { n: 2 });
} catch (error) {
  refused = { name: error.constructor.name, status: error.status, param: error.param };
}

const headers = { "X-Nitka-User": "boris" };
const first = await client.responses.create({ model: "m", input: "One." }, { headers });
const second = await client.responses.create(
  { model: "m", input: "And two?", previous_response_id: first.id },
  { headers },
);

console.log(
  JSON.stringify({ whole: whole.choices[0].message.content, streamed, refused, response: second.output_text }),
);
