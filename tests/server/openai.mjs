// OpenAI's own client against `confab serve`.
import assert from 'node:assert/strict';
import { load, run, url } from './run.mjs';

const { OpenAI, APIError } = load('openai');
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
const model = 'guide';
const messages = [{ role: 'user', content: 'How do I quit?' }];
const chat = (more) => client.chat.completions.create({ model, messages, seed: 5, ...more });

await run({
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
  async 'a text is continued'() {
    const answer = await client.completions.create({ model, prompt: 'How do I', seed: 5, max_tokens: 4, echo: true });
    assert.ok(answer.choices[0].text.startsWith('How do I'));
    assert.equal(answer.usage.completion_tokens, 4);
    let text = '';
    const more = { model, prompt: 'How do I', seed: 5, max_tokens: 4, echo: true, stream: true };
    for await (const chunk of await client.completions.create(more)) text += chunk.choices[0].text;
    assert.equal(text, answer.choices[0].text);
  },
  async 'an echo is scored'() {
    const complete = async (more) =>
      (await client.completions.create({ model, temperature: 0, logprobs: 2, ...more })).choices;
    const [next] = await complete({ prompt: 'How do I', max_tokens: 1 });
    const prompt = 'How do I' + next.text;
    const [scored] = await complete({ prompt, echo: true, max_tokens: 0 });
    const { tokens, token_logprobs: scores, top_logprobs: tops } = scored.logprobs;
    assert.equal(scored.text, prompt);
    assert.equal(tokens.join(''), prompt);
    assert.equal(scores[0], null);
    assert.equal(tops[0], null);
    scores.slice(1).forEach((p, i) => assert.ok(p <= 0 && tops[i + 1][tokens[i + 1]] === p));
    assert.ok(Math.abs(scores.at(-1) - next.logprobs.token_logprobs[0]) < 1e-3);
    const body = JSON.stringify({ content: prompt });
    const ids = (await (await fetch(`${url}/tokenize`, { method: 'POST', body })).json()).tokens;
    for (const c of await complete({ prompt: [ids, ids], echo: true, max_tokens: 1 })) {
      assert.ok(c.text.startsWith(prompt));
      assert.deepEqual(c.logprobs.tokens.slice(0, -1), tokens);
    }
  },
  async 'several texts are continued at once'() {
    const prompt = ['How do I', 'What is', 'Where'];
    const more = { model, prompt, n: 2, seed: 5, max_tokens: 4, echo: true };
    const answer = await client.completions.create(more);
    assert.deepEqual(answer.choices.map((c) => c.index), [0, 1, 2, 3, 4, 5]);
    for (const c of answer.choices) assert.ok(c.text.startsWith(prompt[c.index >> 1]));
    assert.equal(answer.usage.completion_tokens, 24);
    const texts = Array(6).fill('');
    for await (const chunk of await client.completions.create({ ...more, stream: true }))
      for (const c of chunk.choices) texts[c.index] += c.text;
    assert.deepEqual(texts, answer.choices.map((c) => c.text));
  },
  async 'a response, whole and as a stream'() {
    const more = { model, input: 'How do I quit?', seed: 5 };
    const whole = await client.responses.create(more);
    assert.match(whole.output_text, /^Ctrl\+Q leaves confab/);
    assert.equal(whole.status, 'completed');
    assert.ok(whole.usage.output_tokens > 10);
    let text = '';
    const stream = client.responses.stream({ ...more, input: [{ role: 'user', content: 'How do I quit?' }] });
    stream.on('response.output_text.delta', (e) => (text += e.delta));
    const final = await stream.finalResponse();
    assert.equal(text, whole.output_text);
    assert.equal(final.output_text, whole.output_text);
    const cut = await client.responses.create({ ...more, max_output_tokens: 3 });
    assert.equal(cut.incomplete_details.reason, 'max_output_tokens');
    await assert.rejects(client.responses.create({ ...more, previous_response_id: 'x' }), (e) => e.status === 400);
  },
  async 'answers have the form that is asked for'() {
    const schema = {
      type: 'object', additionalProperties: false, required: ['key', 'times'],
      properties: { key: { enum: ['Ctrl+Q', 'F5'] }, times: { type: 'integer', minimum: 1, maximum: 9 } },
    };
    const format = { type: 'json_schema', json_schema: { name: 'key', strict: true, schema } };
    for (let seed = 1; seed <= 5; seed++) {
      const answer = JSON.parse((await chat({ seed, response_format: format })).choices[0].message.content);
      assert.ok(schema.properties.key.enum.includes(answer.key) && answer.times >= 1 && answer.times <= 9);
    }
    const text = { format: { type: 'json_schema', name: 'key', schema } };
    const response = await client.responses.create({ model, input: 'Name a key.', text });
    assert.ok(JSON.parse(response.output_text).times >= 1);
    const wrong = { type: 'json_schema', json_schema: { name: 'x', schema: { $ref: 'http://x/y' } } };
    await assert.rejects(chat({ response_format: wrong }), (e) => e.status === 400 && /\$ref/.test(e.message));
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
});
