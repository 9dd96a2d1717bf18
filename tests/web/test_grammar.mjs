// test_grammar.mjs BEZEL - schemas against an independent validator (ajv): random walks through the
// masks of random schemas end in valid documents, and documents are accepted exactly if ajv says
// that they are valid. SCHEMAS=N for more schemas than usual, SEED=N for others.
import Ajv from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { done, equal, ok, test } from './check.mjs';

const bezel = process.argv[2] ?? 'build/bezel';
const nSchemas = Number(process.env.SCHEMAS ?? 120);
const folder = mkdtempSync(join(tmpdir(), 'bezel-grammar-'));

/** Random numbers that are the same in each run. */
function rng(seed) {
  let state = BigInt(seed) + 0x9e3779b97f4a7c15n;
  const next = () => {
    state = BigInt.asUintN(64, state + 0x9e3779b97f4a7c15n);
    let z = state;
    z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    return Number((z ^ (z >> 31n)) >> 33n);
  };
  const below = (n) => next() % n;
  return { below, pick: (list) => list[below(list.length)], often: (n) => below(n) > 0 };
}

// ---- random schemas ----

const names = ['a', 'b', 'ab', 'id', 'x-1', 'é', 'q"', 'n\n'];
const patterns = [
  '^[a-z]{2,4}$', '^x', '[0-9]$', '^(ab|cd)*$', '^[^é]*$', '\\d{3}', '^\\p{L}+$', 'a|^b$', '^.{2}$',
];
// Not email: ajv wants a dot in its domain, RFC 5321 does not.
const formatNames = ['date', 'time', 'date-time', 'uuid', 'ipv4', 'hostname', 'duration'];
const values = [
  null, true, false, 0, 1, -3, 2.5, 100, '', 'a', 'ab', 'xyz', 'é😀', 'x-1', '12', '2024-02-29',
  [], [1], [1, 'a'], ['a', 'a'], {}, { a: 1 }, { a: 'x', b: null }, { id: [1, 2] }, { 'x-1': {} },
];

class Generator {
  constructor(seed) {
    Object.assign(this, rng(seed));
    this.refs = ['#/$defs/p', '#/$defs/q'];
  }

  document() {
    const schema = this.schema(3);
    if (typeof schema === 'boolean' || !JSON.stringify(schema).includes('$ref')) return schema;
    return { ...schema, $defs: { p: this.schema(2), q: this.schema(1) } };
  }

  schema(depth) {
    const simple = ['number', 'string', 'value', 'type', 'string', 'number'];
    const deep = ['object', 'object', 'array', 'object', 'array', 'combined', 'combined', 'ref'];
    return this[this.pick(depth > 0 && this.often(3) ? deep : simple)](depth - 1);
  }

  type() {
    return this.pick([
      {}, true, { type: 'null' }, { type: 'boolean' }, { type: ['integer', 'string'] },
      { type: 'integer' }, { type: 'object' }, { type: ['array', 'null'] },
    ]);
  }

  number() {
    const s = { type: this.pick(['integer', 'number']) };
    if (this.often(2)) s[this.pick(['minimum', 'exclusiveMinimum'])] = this.pick([-50, 0, 1.5, 7]);
    if (this.often(2)) s[this.pick(['maximum', 'exclusiveMaximum'])] = this.pick([8, 9.25, 120]);
    if (!this.often(3)) s.multipleOf = this.pick([2, 7, 0.5]);
    return s;
  }

  string() {
    const s = { type: 'string' };
    if (!this.often(3)) s.minLength = this.below(4);
    if (!this.often(3)) s.maxLength = 2 + this.below(6);
    if (!this.often(2)) s.pattern = this.pick(patterns);
    else if (!this.often(3)) s.format = this.pick(formatNames);
    return s;
  }

  value() {
    if (!this.often(2)) return { const: this.pick(values) };
    const list = Array.from({ length: 1 + this.below(4) }, () => this.pick(values));
    return { enum: [...new Set(list)] };
  }

  array(depth) {
    const s = { type: 'array' };
    if (this.often(2)) s.items = this.schema(depth);
    if (!this.often(3)) s.prefixItems = [this.schema(depth), this.schema(depth)];
    if (!this.often(3)) s.minItems = this.below(3);
    if (!this.often(3)) s.maxItems = 1 + this.below(4);
    if (!s.prefixItems && !this.often(3)) s.contains = this.schema(depth);
    if (s.contains && !this.often(2)) s.minContains = this.below(3);
    if (s.contains && !this.often(3)) s.maxContains = 1 + this.below(3);
    // ajv 8.20 keeps what it found in the items before: beside prefixItems, and of empty arrays.
    if (s.contains && s.minContains !== 0) s.minItems = Math.max(1, s.minItems ?? 0);
    // Beside prefixItems ajv 8.20 compares only items of the types in `items`.
    if (!s.prefixItems && !this.often(3)) s.uniqueItems = true;
    return s;
  }

  object(depth) {
    const s = { type: 'object', properties: {} };
    for (let i = this.below(4); i > 0; i--) s.properties[this.pick(names)] = this.schema(depth);
    if (this.often(2)) s.required = names.filter(() => !this.often(4));
    if (this.often(2)) s.additionalProperties = this.often(2) ? false : this.schema(depth);
    if (!this.often(4)) s.patternProperties = { [this.pick(patterns)]: this.schema(depth) };
    if (!this.often(5))
      s.propertyNames = this.often(2) ? this.string() : { enum: names.slice(0, 4) };
    if (!this.often(4)) s.minProperties = this.below(4);
    if (!this.often(4)) s.maxProperties = 1 + this.below(4);
    if (!this.often(5)) s.dependentRequired = { a: ['b'], [this.pick(names)]: [this.pick(names)] };
    if (!this.often(6)) s.dependentSchemas = { a: this.schema(depth) };
    return s;
  }

  combined(depth) {
    const some = () => Array.from({ length: 2 + this.below(2) }, () => this.schema(depth));
    const base = this.often(2) ? {} : this.object(depth);
    switch (this.below(6)) {
      case 0: return { ...base, anyOf: some() };
      case 1: return { ...base, oneOf: some() };
      case 2: return { ...base, allOf: [this.schema(depth), this.schema(depth)] };
      case 3: return { ...base, not: this.schema(depth) };
      case 4: return { ...base, if: this.schema(depth), then: this.schema(depth) };
      default: return { ...base, if: this.schema(depth), else: this.schema(depth) };
    }
  }

  ref() {
    return { $ref: this.pick(this.refs) };
  }

  // ---- documents near a valid one ----

  /** A copy with something else in it at one place. */
  mutate(value) {
    if (Array.isArray(value) && value.length && this.often(3)) {
      const copy = [...value], i = this.below(copy.length);
      if (this.often(2)) copy[i] = this.mutate(copy[i]);
      else if (this.often(2)) copy.splice(i, 1);
      else copy.push(copy[i]);
      return copy;
    }
    if (value && typeof value === 'object' && !Array.isArray(value) && this.often(3)) {
      const copy = { ...value }, key = this.pick([...Object.keys(copy), ...names]);
      if (this.often(2)) copy[key] = key in copy ? this.mutate(copy[key]) : this.pick(values);
      else delete copy[key];
      return copy;
    }
    if (typeof value === 'number' && this.often(3)) return value + this.pick([-1, 0.5, 1, 7, -100]);
    if (typeof value === 'string' && this.often(3))
      return this.pick([[...value].slice(1).join(''), value + 'z', value + value, '7' + value]);
    return this.pick(values);
  }
}

// ---- the two sides ----

function run(command, schema, args, input) {
  const file = join(folder, 'schema.json');
  writeFileSync(file, JSON.stringify(schema));
  const all = ['grammar', command, '--schema', file, ...args];
  const r = spawnSync(bezel, all, { input, encoding: 'utf8' });
  ok(r.status === 0 || r.status === 1, `${JSON.stringify(schema)}: ${r.signal} ${r.stderr}`);
  return { lines: r.stdout.split('\n').filter(Boolean), failed: r.status ? r.stderr.trim() : '' };
}

/** Null where the validator itself runs in circles: a reference that leads back to itself. */
function validator(schema) {
  const ajv = new Ajv({ strict: false, validateFormats: true });
  formats(ajv);
  try {
    return ajv.compile(schema);
  } catch (e) {
    if (e instanceof RangeError) return null;
    throw e;
  }
}

const seed0 = Number(process.env.SEED ?? 1) * 1_000_000;
const refused = new Map(); // sentence: how often
let nTexts = 0, nChecked = 0, nCompiled = 0;

/** Compile errors that say what they are about: no bug, if there are few. */
function isRefusal(sentence) {
  return /no JSON value|is not supported|is supported for|alternatives|back to itself/.test(
    sentence,
  );
}

const documents = []; // [schema, validate, documents, generator]

test('walks through masks end in documents that an independent validator accepts', () => {
  for (let i = 0; i < nSchemas; i++) {
    const g = new Generator(seed0 + i), schema = g.document(), validate = validator(schema);
    if (!validate) continue;
    const layout = i % 3 === 0 ? ['--indent'] : [];
    const args = ['--model', 'tiny', '--json', '--n', '6', '--seed', String(i), ...layout];
    const { lines, failed } = run('sample', schema, args);
    if (failed) {
      ok(isRefusal(failed), `${JSON.stringify(schema)}: ${failed}`);
      const sentence = failed.replace(/ at #[^:]*|.*sample: /g, '');
      refused.set(sentence, (refused.get(sentence) ?? 0) + 1);
    } else {
      nCompiled++;
      equal(lines.length, 6);
    }
    const texts = lines.map((line) => JSON.parse(line));
    for (const text of texts) {
      const valid = validate(JSON.parse(text)), why = JSON.stringify(validate.errors);
      ok(valid, `${JSON.stringify(schema)}: ${text}: ${why}`);
    }
    nTexts += texts.length;
    documents.push([schema, validate, texts.map((t) => JSON.parse(t)), g]);
  }
  if (process.env.VERBOSE) console.log(nTexts, refused);
  ok(nCompiled > 0.7 * nSchemas, `${nCompiled} of ${nSchemas}: ${JSON.stringify([...refused])}`);
});

test('documents are accepted exactly if the validator says that they are valid', () => {
  for (const [schema, validate, texts, g] of documents) {
    const near = [...values, ...texts];
    for (const t of texts) for (let k = 0; k < 6; k++) near.push(g.mutate(t));
    const input = near.map((d) => JSON.stringify(d)).join('\n') + '\n';
    const { lines, failed } = run('check', schema, [], input);
    if (failed) {
      ok(isRefusal(failed), `${JSON.stringify(schema)}: ${failed}`);
      continue;
    }
    equal(lines.length, near.length);
    near.forEach((d, i) => {
      const want = validate(d) ? 'accept' : 'reject';
      ok(lines[i].startsWith(want), `${JSON.stringify(schema)}: ${JSON.stringify(d)}: ${lines[i]}`);
    });
    nChecked += near.length;
  }
  ok(nChecked > 20 * nSchemas, `${nChecked} documents`);
});

await done();
rmSync(folder, { recursive: true });
