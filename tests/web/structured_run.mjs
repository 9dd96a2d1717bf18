// structured_run - answers of an engine to cases of schemas, each looked at by an independent
// validator.
import Ajv from 'ajv/dist/2020.js';
import formats from 'ajv-formats';

// 0.07 is a multiple of 0.01, which doubles do not say by themselves
const ajv = new Ajv({ strict: false, allErrors: true, multipleOfPrecision: 9 });
formats(ajv);

/** What is wrong with a text that should be JSON of a schema; undefined: nothing. */
export function wrongWith(schema, text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (e) {
    return `${e.message}: ${text}`;
  }
  const valid = ajv.compile(schema);
  return valid(value) ? undefined : `${ajv.errorsText(valid.errors)}: ${text}`;
}

/** The answer of an engine to one case; `wrong`: what is not right about it. */
export async function answer(engine, { prompt, schema }, { thinking = false, ...more } = {}) {
  const begin = performance.now();
  try {
    const { choices: [{ message, finish_reason }], usage } = await engine.chat.completions.create({
      messages: [{ role: 'user', content: prompt }], temperature: 0, thinking,
      response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } }, ...more,
    });
    const { content: text, reasoning_content: thought = '' } = message;
    const wrong = finish_reason === 'stop'
      ? wrongWith(schema, text)
      : `it ended with "${finish_reason}": ${text.slice(0, 200)}`;
    return {
      wrong, thought, text, tokens: usage.completion_tokens, ms: performance.now() - begin,
    };
  } catch (e) {
    return { wrong: e.message, thought: '', text: '', tokens: 0, ms: performance.now() - begin };
  }
}
