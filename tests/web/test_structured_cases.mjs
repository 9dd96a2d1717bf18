// Answers of the tiny model to held-out questions with many schemas, thinking and not: each is JSON
// that ajv takes. bench/structured.mjs has all of the questions.
//
//   node tests/web/test_structured_cases.mjs
import { above, engine, finish } from './api_fixture.mjs';
import { equal, ok } from './check.mjs';
import { cases } from './structured_cases.mjs';
import { answer, wrongWith } from './structured_run.mjs';

for (const thinking of [false, true])
  above(`every answer is of its schema, ${thinking ? 'after thoughts' : 'without thoughts'}`,
    async () => {
  let thoughts = 0;
  for (const [i, one] of cases(40).entries()) {
    const { wrong, thought } = await answer(engine, one, { thinking, seed: i });
    equal(wrong, undefined, one.prompt);
    thoughts += thought !== '';
  }
  ok(thinking ? thoughts > 20 : !thoughts, `${thoughts} with thoughts`);
});

above('the validator sees what is wrong', () => {
  const schema = { type: 'object', properties: { a: { type: 'integer' } } };
  equal(wrongWith(schema, '{"a":1}'), undefined);
  for (const text of ['{"a":"1"}', '[]', '{"a":1', '']) ok(wrongWith(schema, text), text);
});

above('drawn at random an answer is of its schema too, the same for the same seed', async () => {
  const hot = { temperature: 1.8, top_k: 0, top_p: 1 };
  for (const [i, one] of cases(20).entries()) {
    const made = await answer(engine, one, { ...hot, seed: i });
    equal(made.wrong, undefined, one.prompt);
    if (i % 5 === 0) equal((await answer(engine, one, { ...hot, seed: i })).text, made.text);
  }
});

await finish();
