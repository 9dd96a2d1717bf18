// unicode.mjs - src/grammar/unicode.def: what \p{...} of a pattern needs, from Node's own tables.
//
//     node tools/unicode.mjs > src/grammar/unicode.def
//
// General categories are runs over all code points: a byte has the category in its low five bits
// and the length in its high three, where 0 says that the length follows as a number. Category 30
// is a capital and a small letter in turn, and its length counts pairs. A number is written seven
// bits at a time, the lowest first, with the high bit set on all but the last byte. Scripts are
// lists of ranges: the gap before each one, then its length.
import process from 'node:process';

const CATEGORIES = ['Lu', 'Ll', 'Lt', 'Lm', 'Lo', 'Mn', 'Mc', 'Me', 'Nd', 'Nl', 'No', 'Pc', 'Pd',
  'Ps', 'Pe', 'Pi', 'Pf', 'Po', 'Sm', 'Sc', 'Sk', 'So', 'Zs', 'Zl', 'Zp', 'Cc', 'Cf', 'Cs', 'Co',
  'Cn'];
const PAIRS = 30;
const SCRIPTS = ['Latin', 'Greek', 'Cyrillic', 'Han', 'Hiragana', 'Katakana', 'Hangul', 'Arabic',
  'Hebrew', 'Thai', 'Devanagari'];

const tests = CATEGORIES.map((c) => new RegExp(`^\\p{${c}}$`, 'u'));
const category = new Uint8Array(0x110000);
for (let cp = 0; cp < 0x110000; cp++) {
  const s = String.fromCodePoint(cp);
  category[cp] = tests.findIndex((t) => t.test(s));
}

function number(out, n) {
  for (; n > 127; n >>= 7) out.push((n & 127) | 128);
  out.push(n);
}

function run(out, c, n) {
  out.push(c | (n < 8 ? n << 5 : 0));
  if (n >= 8) number(out, n);
}

function categories() {
  const out = [];
  for (let cp = 0; cp < 0x110000;) {
    let n = 0;
    while (cp + 2 * n + 1 < 0x110000 && category[cp + 2 * n] === 0 &&
           category[cp + 2 * n + 1] === 1) n++;
    if (n > 1) {
      run(out, PAIRS, n);
      cp += 2 * n;
      continue;
    }
    n = 1;
    while (cp + n < 0x110000 && category[cp + n] === category[cp]) n++;
    run(out, category[cp], n);
    cp += n;
  }
  return out;
}

function script(name) {
  const test = new RegExp(`^\\p{Script=${name}}$`, 'u'), out = [];
  let end = 0;
  for (let cp = 0; cp < 0x110000; cp++) {
    if (!test.test(String.fromCodePoint(cp))) continue;
    let last = cp;
    while (last + 1 < 0x110000 && test.test(String.fromCodePoint(last + 1))) last++;
    number(out, cp - end);
    number(out, last + 1 - cp);
    end = last + 1;
    cp = last;
  }
  return out;
}

function rows(bytes) {
  const lines = [];
  for (let i = 0; i < bytes.length; i += 18)
    lines.push(`    ${bytes.slice(i, i + 18).join(', ')},`);
  return lines.join('\n');
}

console.log(`/* unicode.def - made by tools/unicode.mjs of Unicode ${process.versions.unicode}. */

static const unsigned char category_runs[] = {
${rows(categories())}
};

static const struct {
    const char *name;
    unsigned char ranges[128]; /* ends with 0, 0 */
} scripts[] = {`);
for (const name of SCRIPTS) {
  const bytes = script(name);
  if (bytes.length > 126) throw new Error(`${name} has ${bytes.length} bytes`);
  console.log(`    { "${name}",\n      {\n${rows(bytes).replace(/^/gm, '      ')}\n      } },`);
}
console.log('};');
