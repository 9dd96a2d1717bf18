// The server without a model to speak of: what a request may say, in OpenAI's words and Ollama's.
import net from 'node:net';

import { done, equal, ok, same, test } from './check.mjs';
import { ask, echo, post, startServer, until } from './server_fixture.mjs';
import { s, say } from './server_with_store.mjs';

/** What a client hears that looks at the answer once it has sent all of so many MiB, as most do. */
async function heardAtTheEnd(port, size) {
  const piece = 'y'.repeat(1 << 20), socket = net.connect(port, '127.0.0.1');
  const heard = await new Promise((resolve) => {
    const send = (left) => {
      if (left) socket.write(piece, () => setTimeout(send, 5, left - 1));
      else socket.on('data', (d) => resolve(String(d).split('\r\n')[0]));
    };
    const head = [
      'POST /api/chat HTTP/1.1', 'Host: localhost', `Content-Length: ${size << 20}`, '', '',
    ];
    socket.on('error', (e) => resolve(e.code)).write(head.join('\r\n'), () => send(size));
  });
  socket.destroy();
  return heard;
}

test('a body that is too large, or no JSON, is refused in the words of each protocol', async () => {
  for (const path of ['/v1/chat/completions', '/api/chat']) {
    const words = (r) => (path.startsWith('/v1') ? r.json.error.message : r.json.error);
    const large = await post(s.port, path, say('x'.repeat(2 << 20)));
    same([large.status, words(large)], [413, 'the request is larger than 1 MiB']);
    equal(await heardAtTheEnd(s.port, 24), 'HTTP/1.1 413 Payload Too Large', 'however much it is');
    const chunked = await ask(s.port, path, {
      method: 'POST', headers: { 'transfer-encoding': 'chunked' }, body: 'y'.repeat((1 << 20) + 1),
    });
    equal(chunked.status, 413);
    for (const body of ['', '{', '[]', '3', '"x"', Buffer.from([0x7b, 0xff, 0x7d])])
      equal((await ask(s.port, path, { method: 'POST', body })).status, 400);
    const none = await post(s.port, path, say('x', { model: 'none' }));
    same([none.status, words(none)], [404, 'there is no model "none" on this machine']);
  }
  equal((await post(s.port, '/api/chat', say('x', { options: { mirostat: 2 } }))).status, 400);
  equal(
    (await post(s.port, '/api/chat', say('x', { options: { seed: { toString: 1 } } }))).status, 400,
  );
  equal((await post(s.port, '/api/chat', say('x', { keep_alive: 'soon' }))).status, 400);
  equal((await post(s.port, '/api/chat', { model: 'tiny', messages: 3 })).status, 400);
});

test('a body of many values, or beside too many others, is refused; what has no effect is not kept',
    async () => {
  const one = await startServer({ limits: { bodyValues: 1000, allBodiesBytes: 8000 } });
  try {
    const many =
      await post(one.port, '/v1/chat/completions', { ...say('x'), metadata: Array(1000).fill([]) });
    same([many.status, many.json.error.message], [413, 'the body has more than 1000 values']);
    equal(
      (await post(one.port, '/v1/chat/completions', say(',[{"\\'.repeat(400)))).status,
      200,
      'a text is one value',
    );
    const waits = net
      .connect(
        one.port,
        '127.0.0.1',
        () => waits.write(
          `POST /api/chat HTTP/1.1\r\nHost: localhost\r\n`
            + `Content-Length: 7800\r\n\r\n${'x'.repeat(7700)}`,
        ),
      )
      .on('error', () => {});
    await until(() => one.server.bodies.bytes === 7700);
    const full = await post(one.port, '/v1/chat/completions', say('y'.repeat(400)));
    same([full.status, full.json.error.code], [503, 'bodies_full']);
    equal(await heardAtTheEnd(one.port, 24), 'HTTP/1.1 503 Service Unavailable');
    equal(one.server.bodies.bytes, 7700);
    waits.destroy();
    await until(() => !one.server.bodies.bytes);
    equal((await post(one.port, '/v1/chat/completions', say('y'.repeat(400)))).status, 200);
  } finally {
    await one.close();
  }
  const seen = [];
  const two = await startServer({
    load: async (wish) => ({
      ...(await echo([])(wish)),
      answer: async (_kind, request) => (seen.push(Object.keys(request).sort()), { choices: [] }),
    }),
  });
  try {
    equal(
      (await post(
        two.port,
        '/v1/chat/completions',
        say('x', { metadata: { a: 'b' }, user: 'u', store: true }),
      )).status,
      200,
    );
    same(seen, [['messages', 'prompt_cache_key']]);
  } finally {
    await two.close();
  }
});

test('a message is measured as a whole, and errors repeat a little of what was asked', async () => {
  const chat = (message, more) => post(s.port, '/v1/chat/completions', {
    model: 'tiny', messages: [{ role: 'user', content: 'x' }, message], ...more,
  });
  await chat({ role: 'user', content: 'x' }); // whose context is known from now on
  const large = 'y'.repeat(400_000);
  for (const message of [
    {
      role: 'assistant',
      tool_calls: [{ id: '1', type: 'function', function: { name: 'f', arguments: large } }],
    },
    { role: 'assistant', content: '', reasoning_content: large },
    { role: 'user', content: '', name: large },
  ]) {
    const r = await chat(message);
    same(
      [r.status, r.json.error.code], [400, 'context_length_exceeded'], Object.keys(message).join(),
    );
  }
  const long = 'z'.repeat(100_000);
  for (const more of [
    { [long]: 1 }, { typical_p: long }, { chat_template_kwargs: { [long]: 1 } },
    { chat_template_kwargs: { thinking: long } }, { model: long }, { logit_bias: { [long]: 1 } },
    { logit_bias: Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [i, 1])) },
  ]) {
    const r = await chat({ role: 'user', content: 'x' }, more);
    ok(
      r.status >= 400 && r.status < 500 && r.text.length < 500,
      `${Object.keys(more)[0].slice(0, 30)}: ${r.status} ${r.text.length}`,
    );
  }
  for (const more of [{ options: { [long]: 1 } }, { keep_alive: long }])
    ok((await post(s.port, '/api/chat', say('x', more))).text.length < 500);
});

test("Ollama's messages reach the engine in its own shape", async () => {
  let request;
  const { port, close } = await startServer({ load: async () => ({ device: {
    backend: 'cpu', name: 'x',
  }, context: 1e6, bytes: 0, close: async () => {}, async *stream(_k, r) {
    request = r;
    yield { choices: [{ index: 0, delta: { reasoning_content: 'hm' } }] };
    yield {
      choices: [{
        index: 0,
        delta: {
          tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '{"x":1}' } }],
        },
      }],
    };
    yield { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] };
  } }) });
  try {
    const call = (name, args) => ({ function: { name, arguments: args } });
    const messages = [
      { role: 'user', content: 'q' },
      {
        role: 'assistant',
        content: '',
        thinking: 't',
        tool_calls: [call('one', { a: 1 }), call('two', {})],
      },
      { role: 'tool', tool_name: 'two', content: '2' },
      { role: 'tool', tool_name: 'one', content: '1' },
    ];
    const r = await post(port, '/api/chat', {
      model: 'tiny', messages, tools: [{ type: 'function', function: { name: 'f' } }],
      think: 'high',
      options: {
        num_predict: 5, num_ctx: 64, temperature: 0, seed: 7, stop: ['z'], repeat_last_n: 3,
        num_thread: 4,
      },
      stream: false,
    });
    same(r.json.message, {
      role: 'assistant',
      content: '',
      thinking: 'hm',
      tool_calls: [{ function: { name: 'f', arguments: { x: 1 } } }],
    });
    same(request.messages[1].tool_calls.map((c) => c.function), [
      { name: 'one', arguments: '{"a":1}' }, { name: 'two', arguments: '{}' },
    ]);
    same(request.messages.slice(2).map((m) => m.tool_call_id), ['call_1', 'call_0']);
    same(request.messages[1].reasoning_content, 't');
    const { max_tokens: most, temperature, seed, stop, repeat_last_n: back, thinking } = request;
    same([most, temperature, seed, stop, back, thinking], [5, 0, 7, ['z'], 3, true]);
  } finally {
    await close();
  }
});

test("Ollama's results find their calls by name, however many there are", async () => {
  let request;
  const { port, close } = await startServer({ load: async () => ({ device: {
    backend: 'cpu', name: 'x',
  }, context: 1e6, bytes: 0, close: async () => {}, async *stream(_k, r) {
    request = r;
  } }) });
  try {
    const results = async (calls, tools) => {
      await post(port, '/api/chat', {
        model: 'tiny',
        messages: [
          {
            role: 'assistant',
            tool_calls: calls.map((name) => ({ function: { name, arguments: {} } })),
          },
          ...tools.map((tool_name) => ({ role: 'tool', tool_name, content: '' })),
        ],
        stream: false,
      });
      return request.messages.slice(1).map((m) => m.tool_call_id?.slice(5));
    };
    same(
      await results(['a', 'b', 'a', 'c'], ['a', 'x', 'a', undefined, 'a']),
      ['0', '1', '2', '3', undefined],
      'by name, else the first, while there are any',
    );
    const n = 60_000, names = Array.from({ length: n }, (_, i) => `f${i}`);
    const begin = process.cpuUsage().user;
    same(await results(names, names.toReversed()), names.map((_, i) => String(n - 1 - i)));
    ok(process.cpuUsage().user - begin < 3e6, 'the time for calls grows with their number alone');
  } finally {
    await close();
  }
});

test("Ollama's words for no limit, for all of the context and for what asks for nothing",
    async () => {
  let request;
  const { port, close } = await startServer({ load: async () => ({ device: {
    backend: 'cpu', name: 'x',
  }, context: 64, bytes: 1, close: async () => {}, async *stream(_kind, r) {
    request = r;
    yield { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };
  } }) });
  try {
    const asked = async (options, more = {}) => {
      const r = await post(port, '/api/chat', say('x', { stream: false, options, ...more }));
      return r.status === 200 ? request : [r.status, r.json.error];
    };
    for (const n of [0, -1, -2])
      equal('max_tokens' in (await asked({ num_predict: n })), false, `num_predict ${n}`);
    equal((await asked({ num_predict: 4 })).max_tokens, 4);
    equal((await asked({ repeat_last_n: -1 })).repeat_last_n, -1);
    ok(!Array.isArray(await asked({
      typical_p: 1, mirostat: 0, mirostat_tau: 5, mirostat_eta: 0.1, tfs_z: 1, num_thread: 2,
    })));
    same((await asked({ mirostat: 2 }))[0], 400);
    same(await asked({ num_ctx: -5 }), [400, '"num_ctx" is a number of tokens, not -5']);
    equal((await asked({})).truncation, 'auto');
    equal((await asked({}, { truncate: false })).truncation, 'disabled');
    same(await asked({}, { truncate: 'no' }), [400, '"truncate" is true or false']);
    same(await asked({}, { tools: {} }), [400, '"tools" must be a list']);
  } finally {
    await close();
  }
});

test('a stream that is neither wanted nor not is an error; errors name their parameter, '
  + 'and every answer has an id', async () => {
  const refused = await post(s.port, '/v1/chat/completions', say('x', { stream: 'yes' }));
  same([refused.status, refused.json.error.param, refused.json.error.type], [
    400, 'stream', 'invalid_request_error',
  ]);
  same((await post(s.port, '/api/chat', say('x', { stream: 'yes' }))).status, 400);
  same(
    (await post(s.port, '/v1/chat/completions', say('x', { model: 3 }))).json.error.param, 'model',
  );
  for (const session of [3, 'x'.repeat(1025)]) {
    const { status, json } = await post(s.port, '/v1/chat/completions', say('x', { session }));
    same([status, json.error.param], [400, 'session']);
  }
  same(
    (await post(s.port, '/v1/chat/completions', say('x', { session: 'x'.repeat(1024) }))).status,
    200,
  );
  const ids = [
    refused, await ask(s.port, '/v1/models'), await ask(s.port, '/api/tags'),
    await ask(s.port, '/nowhere'),
  ].map((r) => r.headers['x-request-id']);
  ok(ids.every((id) => /^req_[0-9a-f]{32}$/.test(id)) && new Set(ids).size === 4, String(ids));
  same((await ask(s.port, '/v1/models/')).json, (await ask(s.port, '/v1/models')).json);
});

await done(process.argv[2]);
await s.close();
