// mutate_json - JSON with odd values in odd places. The same changes come in the same order in
// every process.

let state = 1;
function random() { // splitmix32
  state = (state + 0x9e3779b9) | 0;
  let z = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
  return (z ^ (z >>> 16)) >>> 0;
}
export const any = (n) => random() % n;
export const pick = (list) => list[any(list.length)];

const odd = [
  null, true, false, 0, -0, -1, 1.5, 1e308, 2 ** 53, -(2 ** 63), '', ' ', '\0', '\ud800', 'a\udfff',
  '🧪', '首都', '__proto__', 'constructor', '../x', 'a/b', 'm1', 'mine',
  'user', 'assistant', 'tool', 'streaming', 'error', 'gpu', 'x'.repeat(300), '<|turn>model\n',
  '"; DROP TABLE message; --', '%_\\', [], {}, [[]], [null], { id: 1 }, [{}], { toString: 1 },
];

/** What means something in a text. */
const words = [
  '..', '/', '//', '://', ':', '%2e', '%2f', '@', '\\', '"', '"""', '\n', '\r\n', '#', '<', '>',
  ';', ',', '=', '?', 'http', '127.0.0.1', '[::1]', '\0', '\u00a0', ' '.repeat(999), '1'.repeat(99),
];

/** Every place in a value: its holder and its key. */
function places(value, list = []) {
  if (typeof value !== 'object' || value === null) return list;
  for (const key of Object.keys(value)) {
    list.push([value, key]);
    places(value[key], list);
  }
  return list;
}

const copy = (value) => (value === undefined ? null : JSON.parse(JSON.stringify(value)));

function changeValue(root) {
  const all = places(root);
  if (!all.length) return;
  const [holder, key] = pick(all), [from, name] = pick(all);
  switch (any(8)) {
    case 0: delete holder[key]; break;
    case 1: holder[key] = copy(from[name]); break; // another part of the file
    case 2:
      if (Array.isArray(holder)) holder.push(copy(holder[key]));
      else holder[pick(all)[1]] = copy(holder[key]);
      break;
    case 3: { // one message's id in another's place
      const ids =
        all.filter(([o, k]) => k === 'id' && typeof o[k] === 'string').map(([o, k]) => o[k]);
      const links =
        all.filter(([, k]) => ['id', 'parent', 'leaf', 'conversation', 'toolCallId'].includes(k));
      if (ids.length && links.length) { const [o, k] = pick(links); o[k] = pick(ids); }
      break;
    }
    case 4:
      if (typeof holder[key] === 'number')
        holder[key] = pick([holder[key] + 1, -holder[key], holder[key] * 1e6, holder[key] / 3]);
      break;
    case 5:
      if (typeof holder[key] === 'string')
        holder[key] = holder[key].slice(any(holder[key].length + 1))
          + pick(odd.filter((o) => typeof o === 'string'));
      break;
    default: holder[key] = copy(pick(odd));
  }
}

/** A text with other bytes in some of its places. */
export function mutateText(seed) {
  let bytes = new TextEncoder().encode(seed);
  for (let n = 1 + any(4); n > 0; n--) {
    const at = any(bytes.length + 1), word = new TextEncoder().encode(pick(words));
    bytes = any(3)
      ? changeBytes(bytes)
      : new Uint8Array([...bytes.slice(0, at), ...word, ...bytes.slice(at)]);
  }
  return bytes;
}

function changeBytes(bytes) {
  const at = any(bytes.length + 1), end = Math.min(bytes.length, at + any(40));
  switch (any(4)) {
    case 0: return bytes.slice(0, at);
    case 1: return new Uint8Array([...bytes.slice(0, at), ...bytes.slice(end)]);
    case 2: return new Uint8Array([...bytes.slice(0, end), ...bytes.slice(at)]);
    default: return bytes.map((b, i) => (i === at ? random() & 255 : b));
  }
}

/** A JSON text with something else in some of its places, as bytes. */
export function mutate(seed) {
  const value = JSON.parse(seed);
  for (let n = 1 + any(4); n > 0; n--) changeValue(value);
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  return any(10) ? bytes : changeBytes(bytes);
}
