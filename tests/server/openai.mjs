// OpenAI's own client against `confab serve`: node openai.mjs PACKAGES URL.
import { createRequire } from 'node:module';
import assert from 'node:assert/strict';

const [packages, url] = process.argv.slice(2);
const { OpenAI, APIError } = createRequire(`${packages}/`)('openai');
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
const model = 'guide';
const messages = [{ role: 'user', content: 'How do I quit?' }];
const chat = (more) => client.chat.completions.create({ model, messages, seed: 5, ...more });

const tests = {
  async 'models are listed'() {
    const names = [];
    for await (const m of client.models.list()) names.push(m.id);
    assert.ok(names.includes(model));
    assert.equal((await client.models.retrieve(model)).id, model);
  },
  async 'a whole answer'() {
    const answer = await chat({ n: 2, logprobs: true, top_logprobs: 3 });
    assert.match(answer.choices[0].message.content, /^Ctrl\+Q leaves confab/);
    assert.equal(answer.choices.length, 2);
    assert.equal(answer.choices[0].finish_reason, 'stop');
    assert.equal(answer.choices[0].logprobs.content[1].top_logprobs.length, 3);
    assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens);
  },
  async 'a stream has the same text'() {
    const whole = (await chat()).choices[0].message.content;
    let text = '', usage;
    for await (const chunk of await chat({ stream: true, stream_options: { include_usage: true } })) {
      text += chunk.choices[0]?.delta.content ?? '';
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, whole);
    assert.ok(usage.completion_tokens > 10);
    const final = await client.chat.completions.stream({ model, messages, seed: 5 }).finalContent();
    assert.equal(final, whole);
  },
  async 'errors are those that the client knows'() {
    await assert.rejects(chat({ model: 'nosuch' }), (e) => e.status === 404 && e.code === 'model_not_found');
    await assert.rejects(chat({ temperature: 9 }), (e) => e.status === 400 && e.param === 'temperature');
    await assert.rejects(chat({ stop: [''] }), (e) => e instanceof APIError && e.param === 'stop');
    const long = [{ role: 'user', content: 'word '.repeat(5000) }];
    await assert.rejects(chat({ messages: long }), (e) => e.status === 400 && e.code === 'context_length_exceeded');
  },
  async 'a stream can be stopped'() {
    const stream = await chat({ stream: true, max_tokens: 1000 });
    for await (const chunk of stream) {
      if (chunk.choices[0].delta.content) break; // which aborts it
    }
    const abort = new AbortController();
    const waiting = client.chat.completions.create({ model, messages }, { signal: abort.signal });
    abort.abort();
    await assert.rejects(waiting);
    assert.match((await chat()).choices[0].message.content, /^Ctrl\+Q/);
  },
};

let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  try {
    await test();
  } catch (e) {
    failed++;
    console.log(`[  FAILED  ] ${name}\n${e.stack}`);
  }
}
console.log(`[  PASSED  ] ${Object.keys(tests).length - failed} test(s).`);
if (failed) console.log(`[  FAILED  ] ${failed} test(s)`);
process.exit(failed ? 1 : 0);
