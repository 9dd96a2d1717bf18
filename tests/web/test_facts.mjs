// Ten new facts from a hundred lines: learned, and nothing old forgotten. node
// tests/web/test_facts.mjs cpu|gpu
import { Engine } from '../../web/engine/dist/index.js';
import { done, equal, ok, test } from './check.mjs';
import { known, lessons, options, score, share, unseen } from './facts.mjs';
import './software_adapter.mjs';

const backend = process.argv[2] ?? 'cpu';

test('a hundred lines teach ten facts: at least 90% in other words, and 95% of the old ones stay',
    async () => {
  equal(lessons.length, 100);
  const engine = await Engine.load('models/tiny.q8_0.gguf', { backend });
  const before = await score(engine, known), old = known.filter((_, i) => before[i]);
  ok(share(before) > 0.9 && share(await score(engine, unseen)) < 0.2);
  const start = performance.now(), { adapter, steps } = await engine.train(options).result;
  const adapters = [{ name: adapter }], seconds = (performance.now() - start) / 1000;
  const learned = share(await score(engine, unseen, adapters));
  const kept = share(await score(engine, old, adapters));
  console.log(
    `${steps} steps in ${seconds.toFixed(0)} s: recall ${learned} of ${unseen.length} questions, `
      + `kept ${kept} of ${old.length}`,
  );
  ok(learned >= 0.9 && kept >= 0.95);
  await engine.dispose();
});

await done();
