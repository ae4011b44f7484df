// Anthropic's own client against `confab serve`.
import assert from 'node:assert/strict';
import { load, run, url } from './run.mjs';

const { Anthropic } = load('@anthropic-ai/sdk');
const client = new Anthropic({ baseURL: url, apiKey: 'none', maxRetries: 0 });
const model = 'guide';
const messages = [{ role: 'user', content: 'How do I quit?' }];
const ask = (more) => client.messages.create({ model, messages, seed: 5, max_tokens: 200, ...more });

await run({
  async 'a whole answer'() {
    const answer = await ask({ system: 'Be brief.' });
    assert.equal(answer.content.length, 1);
    assert.match(answer.content[0].text, /^Ctrl\+Q leaves confab/);
    assert.equal(answer.stop_reason, 'end_turn');
    assert.ok(answer.usage.output_tokens > 10);
    assert.equal((await ask({ max_tokens: 3 })).stop_reason, 'max_tokens');
  },
  async 'a stream has the same text'() {
    const whole = (await ask()).content[0].text;
    const stream = client.messages.stream({ model, messages, seed: 5, max_tokens: 200 });
    let text = '';
    stream.on('text', (piece) => (text += piece));
    const final = await stream.finalMessage();
    assert.equal(text, whole);
    assert.equal(final.content[0].text, whole);
    assert.equal(final.stop_reason, 'end_turn');
    assert.ok(final.usage.output_tokens > 10);
  },
  async 'an answer says which text stopped it'() {
    const more = { stop_sequences: ['nowhere', 'leaves'] };
    const whole = await ask(more);
    assert.deepEqual([whole.stop_reason, whole.stop_sequence], ['stop_sequence', 'leaves']);
    assert.equal(whole.content[0].text, 'Ctrl+Q ');
    const final = await client.messages.stream({ model, messages, seed: 5, max_tokens: 200, ...more }).finalMessage();
    assert.deepEqual([final.stop_reason, final.stop_sequence], ['stop_sequence', 'leaves']);
    assert.equal((await ask()).stop_sequence, null);
  },
  async 'tokens are counted'() {
    const counted = await client.messages.countTokens({ model, messages, system: 'Be brief.' });
    const answer = await ask({ system: 'Be brief.', max_tokens: 1 });
    const { input_tokens, cache_read_input_tokens } = answer.usage;
    assert.equal(counted.input_tokens, input_tokens + cache_read_input_tokens);
  },
  async 'errors are those that the client knows'() {
    await assert.rejects(ask({ model: 'nosuch' }), (e) => e instanceof Anthropic.NotFoundError);
    await assert.rejects(ask({ temperature: 9 }), (e) => e instanceof Anthropic.BadRequestError);
    await assert.rejects(ask({ tools: [{ name: 'x', input_schema: {} }] }), (e) => e.status === 400);
  },
  async 'a stream can be stopped'() {
    const stream = await ask({ stream: true });
    for await (const event of stream) if (event.type === 'content_block_delta') break;
    assert.match((await ask()).content[0].text, /^Ctrl\+Q/);
  },
});
