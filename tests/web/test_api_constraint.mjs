// What a request says of structured output, as what the core is told: no model answers here.
import { readChat, readCompletion } from '../../web/engine/dist/api/completions_request.js';
import { done, equal, same, test, throws } from './check.mjs';

const messages = [{ role: 'user', content: 'x' }], none = { system: null, messages: [], stop: [] };
const read = (fields) => readChat({ messages, ...fields }, none);
const wish = (fields) => read(fields).constraint;
const constraint = (fields) => wish(fields)?.constraint;
const refused = (fields, kind, param, words) => throws(() => read(fields), (e) => {
  same([e.kind, e.param], [kind, param], e.message);
  return words.test(e.message);
});

const schema = { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] };
const tool = (name, more = {}) =>
  ({ type: 'function', function: { name, parameters: schema, ...more } });
const known = (name, more = {}) => ({ name, parameters: schema, ...more });
const tools = [tool('add'), tool('ask')];

test('response_format is JSON of a schema, any object, a grammar, or nothing', () => {
  const of = (response_format) => constraint({ response_format });
  equal(of({ type: 'text' }), undefined);
  equal(of(null), undefined);
  same(of({ type: 'json_object' }), { json: true });
  same(of({ type: 'json_object', schema }), { schema });
  for (const strict of [true, false, null, undefined])
    same(of({ type: 'json_schema', json_schema: { name: 'x', schema, strict } }), { schema });
  same(of({ type: 'json_schema', json_schema: { name: 'x', schema: true } }), { schema: true });
  same(of({ type: 'grammar', grammar: 'root ::= "a"' }), { gbnf: 'root ::= "a"' });
});

test('what response_format cannot be is refused by name', () => {
  const wrong = (response_format, kind, param, words) =>
    refused({ response_format }, kind, param, words);
  wrong({ type: 'xml' }, 'unsupported', 'response_format', /json_schema.*"xml"/);
  wrong({}, 'unsupported', 'response_format', /undefined/);
  wrong('json', 'unsupported', 'response_format', /"json"/);
  wrong({ type: 'json_schema' }, 'argument', 'response_format.json_schema', /needs a schema/);
  wrong(
    { type: 'json_schema', json_schema: { name: 'x' } }, 'argument', 'response_format.json_schema',
    /needs a schema/,
  );
  wrong(
    { type: 'json_schema', json_schema: { name: 'x', schema: [1] } }, 'argument',
    'response_format.json_schema.schema', /\[1\]/,
  );
  wrong({ type: 'grammar' }, 'argument', 'response_format.grammar', /must be a text/);
});

test("llama.cpp's and vLLM's fields mean the same", () => {
  same(constraint({ json_schema: schema }), { schema });
  same(constraint({ grammar: 'root ::= "a"' }), { gbnf: 'root ::= "a"' });
  same(constraint({ regex: '[ab]+' }), { regex: '[ab]+' });
  same(constraint({ guided_json: schema }), { schema });
  same(constraint({ guided_json: JSON.stringify(schema) }), { schema });
  same(constraint({ guided_regex: 'a' }), { regex: 'a' });
  same(constraint({ guided_grammar: 'root ::= "a"' }), { gbnf: 'root ::= "a"' });
  const choice = ['yes', 'no (really?)'];
  same(constraint({ guided_choice: choice }), { regex: 'yes|no \\(really\\?\\)' });
  same(constraint({ structured_outputs: { choice } }), { regex: 'yes|no \\(really\\?\\)' });
  same(constraint({ structured_outputs: { json: schema, regex: null } }), { schema });
  same(constraint({ structured_outputs: { json_object: true } }), { json: true });
  for (const nothing of [
    { grammar: '' }, { regex: '' }, { guided_choice: [] }, { structured_outputs: {} },
    { structured_outputs: { json_object: false } }, { guided_json: '' },
  ])
    equal(constraint(nothing), undefined, JSON.stringify(nothing));
});

test('other servers\' fields are refused where they are not what they should be', () => {
  refused({ json_schema: [] }, 'argument', 'json_schema', /JSON Schema/);
  refused({ grammar: { root: 1 } }, 'argument', 'grammar', /must be a text/);
  refused({ guided_json: '{' }, 'argument', 'guided_json', /not valid JSON/);
  refused({ guided_choice: 'a' }, 'argument', 'guided_choice', /list of texts/);
  refused(
    { structured_outputs: { structural_tag: 'x' } }, 'unsupported',
    'structured_outputs.structural_tag', /there are json, regex/,
  );
  refused({ structured_outputs: 'x' }, 'argument', 'structured_outputs', /must be an object/);
});

test('two ways to say it at once are refused', () => {
  const response_format = { type: 'json_object' };
  refused({ response_format, grammar: 'root ::= "a"' }, 'argument', 'grammar', /"response_format"/);
  refused({ regex: 'a', guided_regex: 'a' }, 'argument', 'guided_regex', /give one/);
  refused(
    { structured_outputs: { json: schema, regex: 'a' } }, 'argument', 'structured_outputs.regex',
    /"structured_outputs.json"/,
  );
  same(constraint({ response_format: { type: 'text' }, regex: 'a' }), { regex: 'a' });
});

test('how JSON is laid out, and what of a schema may be left out, are options', () => {
  same(constraint({ json_schema: schema, json_indent: true, json_lenient: true }), {
    schema, indent: true, lenient: true,
  });
  same(constraint({ json_schema: schema, json_indent: false }), { schema });
  equal(constraint({ json_indent: true }), undefined);
  refused({ json_indent: 2 }, 'argument', 'json_indent', /true or false/);
});

test('tools are called freely unless something is said of them', () => {
  for (const more of [{}, { tool_choice: 'auto' }, { tool_choice: null },
    { parallel_tool_calls: false }, { tool_choice: 'none' }])
    equal(constraint({ tools, ...more }), undefined, JSON.stringify(more));
  equal(read({ tools, tool_choice: 'none' }).tools, undefined);
  equal(read({ tools, tool_choice: 'required' }).tools, JSON.stringify(tools));
});

test('tool_choice required and parallel_tool_calls say which calls must be', () => {
  const all = [known('add'), known('ask')];
  same(constraint({ tools, tool_choice: 'required' }), {
    tools: all, call: 'required', one_call: false,
  });
  same(constraint({ tools, tool_choice: 'required', parallel_tool_calls: false }), {
    tools: all, call: 'required', one_call: true,
  });
  const named = { type: 'function', function: { name: 'ask' } };
  same(constraint({ tools, tool_choice: named }), {
    tools: [known('ask')], call: 'required', one_call: true,
  });
  same(
    constraint({
      tools,
      tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [named] } },
    }),
    { tools: [known('ask')], call: 'auto', one_call: false },
  );
  same(
    constraint({
      tools,
      tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'required', tools } },
    }),
    { tools: all, call: 'required', one_call: false },
  );
});

test('a strict tool has its schema kept, and a tool without parameters has none', () => {
  const some = [tool('add', { strict: true }), tool('ask', { strict: false, parameters: null })];
  same(constraint({ tools: some }), {
    tools: [known('add', { strict: true }), {
      name: 'ask', strict: false,
      parameters: { type: 'object', properties: {}, additionalProperties: false },
    }],
    call: 'auto',
    one_call: false,
  });
  equal(wish({ tools: some }).param, 'tools');
  equal(wish({ tools: some, tool_choice: 'required' }).param, 'tool_choice');
});

test('tool choices that make no sense are refused', () => {
  const odd = (tool_choice, kind, words, more = { tools }) =>
    refused({ ...more, tool_choice }, kind, 'tool_choice', words);
  odd('any', 'unsupported', /"any".*allowed_tools/);
  odd({ type: 'custom', custom: { name: 'x' } }, 'unsupported', /custom/);
  odd({ type: 'function', function: { name: 'none' } }, 'argument', /"none".*not among "tools"/);
  odd('required', 'argument', /needs "tools"/, {});
  const allowed = (allowed_tools) => ({ tool_choice: { type: 'allowed_tools', allowed_tools } });
  refused(
    { tools, ...allowed({ mode: 'any', tools }) }, 'argument', 'tool_choice.allowed_tools.mode',
    /"any"/,
  );
  refused(
    { tools, ...allowed({ mode: 'auto', tools: [] }) }, 'argument',
    'tool_choice.allowed_tools.tools', /is empty/,
  );
  refused(
    { tools: [tool('add', { strict: 1 })], tool_choice: 'required' }, 'argument',
    'tools[0].function.strict', /true or false/,
  );
  refused({ tools: [{ type: 'function' }], tool_choice: 'required' }, 'argument',
    'tools[0].function.name', /name/);
});

test('a schema and tools go together: text of the schema, or calls', () => {
  const both = { response_format: { type: 'json_object' }, tools };
  same(constraint(both), {
    json: true, tools: [known('add'), known('ask')], call: 'auto', one_call: false,
  });
  same(constraint({ ...both, tool_choice: 'none' }), { json: true });
});

test('thinking comes first where it is wanted', () => {
  same(constraint({ json_schema: schema, thinking: true }), { schema, thinking: true });
  same(constraint({ json_schema: schema, reasoning_effort: 'high' }), { schema, thinking: true });
});

test('what goes on from given content cannot be constrained, from thoughts it can', () => {
  const goOn = (last) => ({
    messages: [...messages, { role: 'assistant', ...last }], continue_final_message: true,
    json_schema: schema,
  });
  refused(goOn({ content: '{"a"' }), 'argument', 'continue_final_message', /"json_schema"/);
  same(constraint(goOn({ content: '', reasoning_content: 'I think' })), { schema });
});

test('raw completions have the same fields, but no tools', () => {
  const raw = (fields) => readCompletion({ prompt: 'x', ...fields }).constraint?.constraint;
  same(raw({ grammar: 'root ::= "a"' }), { gbnf: 'root ::= "a"' });
  same(raw({ response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } }), {
    schema,
  });
  equal(raw({}), undefined);
  throws(() => raw({ tools }), /"tools"/);
});

await done(process.argv[2]);
