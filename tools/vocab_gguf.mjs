// vocab_gguf.mjs TOKENIZER.json OUT.gguf - the vocabulary of a Hugging Face tokenizer.json (BPE
// with byte fallback, as Gemma's) as a GGUF file without weights.
//
// For measurements that need the real pieces and no model, such as
// `bezel grammar maskbench --model OUT.gguf`.
import { readFileSync, writeFileSync } from 'node:fs';

const [from, to] = process.argv.slice(2);
if (!to) {
  console.error('usage: node tools/vocab_gguf.mjs TOKENIZER.json OUT.gguf');
  process.exit(2);
}

const NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, BYTE = 6;
const U32 = 4, I32 = 5, STRING = 8, ARRAY = 9;

const file = JSON.parse(readFileSync(from, 'utf8'));
const tokens = [];
for (const [text, id] of Object.entries(file.model.vocab)) tokens[id] = text;
for (const { id, content } of file.added_tokens) tokens[id] = content;
for (let id = 0; id < tokens.length; id++)
  if (tokens[id] === undefined) throw new Error(`${from}: no token has the id ${id}`);
const types = tokens.map((text) => (/^<0x[0-9A-F]{2}>$/.test(text) ? BYTE : NORMAL));
for (const { id, special } of file.added_tokens) types[id] = special ? CONTROL : USER_DEFINED;
types[file.model.vocab[file.model.unk_token]] = UNKNOWN;
const merges = file.model.merges.map((m) => (typeof m === 'string' ? m : m.join(' ')));

const parts = [];
const put = (size, write) => {
  const b = Buffer.alloc(size);
  write(b);
  parts.push(b);
};
const putU32 = (n) => put(4, (b) => b.writeUInt32LE(n));
const putU64 = (n) => put(8, (b) => b.writeBigUInt64LE(BigInt(n)));
const putString = (s) => {
  const bytes = Buffer.from(s);
  putU64(bytes.length);
  parts.push(bytes);
};
const putKey = (key, type) => {
  putString(key);
  putU32(type);
};
const putArray = (key, type, values, putOne) => {
  putKey(key, ARRAY);
  putU32(type);
  putU64(values.length);
  values.forEach(putOne);
};

parts.push(Buffer.from('GGUF'));
putU32(3);
putU64(0); // tensors
putU64(8); // keys
putKey('general.architecture', STRING);
putString('gemma4');
putKey('tokenizer.ggml.model', STRING);
putString('gemma4');
putArray('tokenizer.ggml.tokens', STRING, tokens, putString);
putArray('tokenizer.ggml.token_type', I32, types, putU32);
putArray('tokenizer.ggml.merges', STRING, merges, putString);
for (const [name, text] of [['bos', '<bos>'], ['eos', '<eos>'], ['unknown', '<unk>']]) {
  putKey(`tokenizer.ggml.${name}_token_id`, U32);
  putU32(tokens.indexOf(text));
}
writeFileSync(to, Buffer.concat(parts));
console.log(`${to}: ${tokens.length} tokens, ${merges.length} merges`);
