// Ollama's own client against `confab serve`.
import assert from 'node:assert/strict';
import { load, run, url } from './run.mjs';

const { Ollama } = load('ollama');
const client = new Ollama({ host: url });
const model = 'guide';
const messages = [{ role: 'user', content: 'How do I quit?' }];
const options = { seed: 5 };

await run({
  async 'models are listed and described'() {
    assert.ok((await client.list()).models.some((m) => m.name === model && m.details.format === 'gguf'));
    assert.ok((await client.ps()).models.some((m) => m.name === model));
    const shown = await client.show({ model });
    assert.ok(shown.capabilities.includes('completion'));
    assert.ok(shown.model_info['llama.context_length'] > 0);
    assert.match((await client.version()).version, /^\d+\.\d+\.\d+$/);
  },
  async 'a whole answer and a stream have the same text'() {
    const whole = await client.chat({ model, messages, options });
    assert.match(whole.message.content, /^Ctrl\+Q leaves confab/);
    assert.equal(whole.done_reason, 'stop');
    assert.ok(whole.eval_count > 10 && whole.prompt_eval_count > 5 && whole.total_duration > 0);
    let text = '', last;
    for await (const part of await client.chat({ model, messages, options, stream: true })) {
      text += part.message.content;
      last = part;
    }
    assert.equal(text, whole.message.content);
    assert.equal(last.done, true);
    const generated = await client.generate({ model, prompt: 'How do I quit?', options });
    assert.equal(generated.response, text);
  },
  async 'a length and a raw prompt'() {
    const short = await client.generate({ model, prompt: 'How do', raw: true, options: { num_predict: 3 } });
    assert.equal(short.eval_count, 3);
    assert.equal(short.done_reason, 'length');
  },
  async 'answers have the form that is asked for'() {
    const format = {
      type: 'object', additionalProperties: false, required: ['n'],
      properties: { n: { type: 'integer', minimum: 0, maximum: 99 } },
    };
    const answer = await client.chat({ model, messages, format, options: { ...options, num_predict: 200 } });
    assert.ok(Number.isInteger(JSON.parse(answer.message.content).n));
  },
  async 'a model stays as long as it is asked to'() {
    await client.chat({ model, messages, options: { ...options, num_ctx: 64 }, keep_alive: '10m' });
    const [loaded] = (await client.ps()).models;
    const minutes = (new Date(loaded.expires_at) - Date.now()) / 60000;
    assert.ok(loaded.name === model && loaded.size > 0 && minutes > 8 && minutes < 10.1);
    assert.equal((await client.generate({ model, prompt: '', keep_alive: 0 })).done_reason, 'unload');
    assert.equal((await client.ps()).models.length, 0);
    assert.equal((await client.generate({ model, prompt: '' })).done_reason, 'load');
    assert.equal((await client.ps()).models.length, 1);
  },
  async 'models are copied and deleted'() {
    const names = async () => (await client.list()).models.map((m) => m.name);
    await client.copy({ source: 'small', destination: 'tiny:1b' });
    assert.deepEqual((await names()).filter((n) => n !== model).sort(), ['small', 'tiny:1b']);
    const answer = await client.chat({ model: 'tiny:1b', messages, options });
    assert.match(answer.message.content, /^Ctrl\+Q/);
    await client.delete({ model: 'tiny:1b' });
    assert.ok(!(await names()).includes('tiny:1b'));
    const status = (code) => (e) => e.status_code === code && e.message.length > 10;
    await assert.rejects(client.delete({ model: 'tiny:1b' }), status(404));
    await assert.rejects(client.delete({ model }), status(403));
    await assert.rejects(client.copy({ source: 'small', destination: '../up' }), status(400));
  },
  async 'errors are those that the client knows'() {
    const status = (code) => (e) => e.status_code === code && e.message.length > 10;
    await assert.rejects(client.chat({ model: 'nosuch', messages }), status(404));
    await assert.rejects(client.chat({ model, messages, options: { temperature: 'hot' } }), status(400));
    await assert.rejects(client.chat({ model, messages, think: true }), status(400));
    await assert.rejects(client.embed({ model, input: 'x' }), status(400));
  },
  async 'a stream can be stopped'() {
    const stream = await client.chat({ model, messages, stream: true });
    await assert.rejects(async () => {
      for await (const part of stream) if (part.message.content) stream.abort();
    }, { name: 'AbortError' });
    assert.match((await client.chat({ model, messages, options })).message.content, /^Ctrl\+Q/);
  },
});
