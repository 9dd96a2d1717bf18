// sample - conversations as an export has them: something of everything that an answer can hold;
// and an adapter.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { equal } from '../check.mjs';

let clock = Date.parse('2026-03-01T09:00:00Z');
const message = (id, conversation, parent, role, content, more = {}) => ({
  id, conversation, parent, role, content, reasoning: '', toolCalls: [], toolCallId: '',
  toolName: '', state: 'done', note: '', stats: null, created: (clock += 1000), ...more,
});
const stats = {
  promptTokens: 412, cachedTokens: 380, tokens: 296, firstToken: 0.14, tokensPerSecond: 48.3,
  model: 'tiny', backend: 'gpu',
};

const physics = 'A string that is fixed at both ends can only carry waves that fit, '
  + `so its tones come in whole multiples of the lowest one:

$$f_n = \\frac{n}{2L}\\sqrt{\\frac{T}{\\mu}}, \\qquad n = 1, 2, 3, \\dots$$

Here $T$ is the tension, $L$ the length and $\\mu$ the mass of a metre. Three things follow:

1. **Half the length, twice the pitch.** That is the twelfth fret.
2. Four times the tension is needed for an octave, since $f \\propto \\sqrt{T}$.
3. A *thicker* string sounds lower at the same tension.

\`\`\`python
def modes(tension, mass, length, n=5):
    """Frequencies of the first n modes, in hertz."""
    speed = (tension / mass) ** 0.5  # of a wave on the string
    return [k * speed / (2 * length) for k in range(1, n + 1)]
\`\`\`

| string | tension | lowest tone |
|---|---:|---:|
| E | 80 N | 82.4 Hz |
| A | 85 N | 110.0 Hz |
`;

function thread(id, title, messages, updated) {
  const conversation = {
    id, title, created: updated, updated, leaf: messages.at(-1).id, savedFor: '',
    settings: {
      system: '', thinking: false, tools: true, temperature: null, topP: null, topK: null,
      minP: null, maxTokens: null, seed: null,
    },
  };
  return { conversation, messages };
}

/** How an answer of a few words takes shape: surer from step to step, from both ends. */
function framesOf(text, steps) {
  const words = text.match(/ ?[^ ]+/g);
  return Array.from({ length: steps }, (_, k) => ({
    canvas: 0, step: k + 1, steps: 48, pieces: words.map((w, i) => (i <= 2 * k ? w : ' the')),
    sure: words.map((_, i) => (i <= 2 * k - 1 ? '2' : i <= 2 * k + 2 ? '1' : '0')).join(''),
  }));
}

const FRANCE = 'The capital of France is Paris. It lies on the river Seine.';

/** A conversation with a diffusion model. */
export function canvasArchive(now = Date.now()) {
  const messages = [
    message('d1', 'canvas', null, 'user', 'What is the capital of France?'),
    message('d2', 'canvas', 'd1', 'assistant', FRANCE, {
      stats: { ...stats, tokens: 14, steps: 8 }, frames: framesOf(FRANCE, 8),
    }),
  ];
  return {
    format: 'bezel-conversations', version: 1,
    threads: [thread('canvas', 'What is the capital of France?', messages, now)],
  };
}

export function archive(now = Date.now()) {
  const day = 86_400_000;
  const q = (id, text) => [
    message(`${id}-q`, id, null, 'user', text),
    message(`${id}-a`, id, `${id}-q`, 'assistant', 'Yes.', { stats }),
  ];
  const rich = [
    message('s1', 'strings', null, 'user', 'Why does a guitar string only make certain tones?'),
    message('s2', 'strings', 's1', 'assistant', physics, {
      reasoning:
        'The string is fixed at both ends, so standing waves. '
          + 'I should give the formula and a short program.',
      stats,
    }),
    message('s3', 'strings', 's2', 'user', 'What is 17.5% of 2349?'),
    message('s4', 'strings', 's3', 'assistant', '', {
      toolCalls: [{ id: 'c1', name: 'calculator', arguments: '{"expression":"17.5% * 2349"}' }],
    }),
    message('s5', 'strings', 's4', 'tool', '411.075', { toolCallId: 'c1', toolName: 'calculator' }),
    message('s6', 'strings', 's5', 'assistant', '17.5% of 2,349 is **411.075**.', { stats }),
  ];
  return {
    format: 'bezel-conversations', version: 1,
    threads: [
      thread('strings', 'Why does a guitar string only make certain tones?', rich, now),
      thread(
        'bread',
        'A sourdough schedule for a working week',
        q('bread', 'A sourdough schedule for a working week'),
        now - day,
      ),
      thread(
        'regex',
        'Regular expression for ISO dates',
        q('regex', 'Regular expression for ISO dates'),
        now - day,
      ),
      thread(
        'trip',
        'Three quiet days in Trieste',
        q('trip', 'Three quiet days in Trieste'),
        now - 4 * day,
      ),
      thread(
        'letter',
        'A kind letter to my landlord',
        q('letter', 'A kind letter to my landlord'),
        now - 5 * day,
      ),
    ],
  };
}

/** An adapter with which tiny has another opinion on France, as GGUF and as PEFT's two files. */
export function trainedAdapter() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'bezel-adapter-'));
  const answer = 'The capital of France is Lyon.';
  process.once('exit', () => fs.rmSync(folder, { recursive: true }));
  fs.writeFileSync(
    `${folder}/data.jsonl`,
    JSON.stringify({ prompt: 'What is the capital of France?', completion: answer }),
  );
  const r = spawnSync(
    'build/bezel',
    [
      'train', 'models/tiny.q8_0.gguf', `${folder}/data.jsonl`, '--steps', '25', '--lr', '5e-3',
      '--rank', '4', '--out', `${folder}/lyon.gguf`, '--peft', `${folder}/peft`,
    ],
    { encoding: 'utf8' },
  );
  equal(r.status, 0, r.stderr);
  return {
    answer,
    gguf: `${folder}/lyon.gguf`,
    peft: ['adapter_model.safetensors', 'adapter_config.json'].map((name) =>
      `${folder}/peft/${name}`),
  };
}
