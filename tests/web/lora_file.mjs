// lora_file - a LoRA adapter of random numbers on every linear of a model, as the bytes of a GGUF
// file: for tests and benches that want one without training.
import { inspect } from '../../web/engine/dist/core.js';

/** The linears that adapters hang on, by their names in a file. */
const LINEAR = /^blk\.(\d+)\.(attn_(q|k|v|output)|ffn_(gate|up|down)|inp_gate|proj)\.weight$/;
const SELF_CONDITIONING = /^self_cond_(gate|up|down)\.weight$/;

/** [name, columns, rows] of the linears of a model file. */
export function linearsOf(core, source) {
  const { shape: { n_own }, tensor_list } =
    JSON.parse(inspect(core, [source], { json: true, tensors: true }));
  const isUsed = (name) => {
    if (SELF_CONDITIONING.test(name)) return true;
    const [, layer, what] = LINEAR.exec(name) ?? [];
    // the others read another layer's keys
    return what && (+layer < n_own || !/attn_[kv]/.test(what));
  };
  return tensor_list.filter(({ name }) => isUsed(name)).map(({ name, shape: [cols, rows] }) =>
    [name, cols, rows]);
}

const u32 = (n) => Buffer.from(Uint32Array.of(n).buffer);
const u64 = (n) => Buffer.from(BigUint64Array.of(BigInt(n)).buffer);
const text = (s) => Buffer.concat([u64(Buffer.byteLength(s)), Buffer.from(s)]);
const STRING = 8, FLOAT = 6, F32 = 0, ALIGN = 32;

/** linears: [name, columns, rows]; size: how large what it adds is, about, beside a product of
 *  size 1. */
export function loraFile(
  linears, rank, { seed = 1, size = 0.3, architecture = 'gemma4' } = {},
) {
  let state = seed;
  const random = (scale) => ((state = (state * 48271) % 0x7fffffff) / 0x7fffffff - 0.5) * scale;
  const tensors = linears.flatMap(([name, cols, rows]) => [
    { name: `${name}.lora_a`, ne: [cols, rank], scale: 3.5 / Math.sqrt(cols) },
    { name: `${name}.lora_b`, ne: [rank, rows], scale: (3.5 * size) / Math.sqrt(rank) },
  ]);
  const keys = [
    ['general.architecture', architecture], ['general.type', 'adapter'], ['adapter.type', 'lora'],
  ].map(([key, value]) => Buffer.concat([text(key), u32(STRING), text(value)]));
  keys.push(Buffer.concat([
    text('adapter.lora.alpha'), u32(FLOAT), Buffer.from(Float32Array.of(rank).buffer),
  ]));
  let at = 0;
  const infos = [], data = [];
  for (const { name, ne, scale } of tensors) {
    const values =
      Buffer.from(Float32Array.from({ length: ne[0] * ne[1] }, () => random(scale)).buffer);
    infos.push(Buffer.concat([text(name), u32(2), ...ne.map(u64), u32(F32), u64(at)]));
    data.push(values, Buffer.alloc((ALIGN - (values.length % ALIGN)) % ALIGN));
    at += values.length + data.at(-1).length;
  }
  const head = Buffer.concat([
    Buffer.from('GGUF'), u32(3), u64(tensors.length), u64(keys.length), ...keys, ...infos,
  ]);
  return new Uint8Array(
    Buffer.concat([head, Buffer.alloc((ALIGN - (head.length % ALIGN)) % ALIGN), ...data]),
  );
}

/** The modules that transformers' classes have for the tensors of a layer. */
const MODULES = {
  attn_q: 'self_attn.q_proj', attn_k: 'self_attn.k_proj', attn_v: 'self_attn.v_proj',
  attn_output: 'self_attn.o_proj', ffn_gate: 'mlp.gate_proj', ffn_up: 'mlp.up_proj',
  ffn_down: 'mlp.down_proj',
};
const PASSES = {
  encoder: 'model.encoder.language_model.layers.', decoder: 'model.decoder.layers.',
};

/** The same as PEFT writes it for DiffusionGemma, as the bytes of a safetensors file and its
 *  config: in each pass that `seeds` names, {encoder, decoder}, random numbers of its own. */
export function peftFile(linears, rank, seeds, size = 0.3) {
  const data = [], header = {};
  let state, at = 0;
  const random = (scale) => ((state = (state * 48271) % 0x7fffffff) / 0x7fffffff - 0.5) * scale;
  const put = (name, rows, cols, scale) => {
    const bytes =
      Buffer.from(Float32Array.from({ length: rows * cols }, () => random(scale)).buffer);
    header[`base_model.model.${name}.weight`] = {
      dtype: 'F32', shape: [rows, cols], data_offsets: [at, (at += bytes.length)],
    };
    data.push(bytes);
  };
  for (const [pass, prefix] of Object.entries(PASSES))
    for (const [name, cols, rows] of seeds[pass] ? linears : []) {
      state = (state ?? 0) + seeds[pass];
      const [, layer, what] = /^blk\.(\d+)\.(\w+)\.weight$/.exec(name) ?? [];
      const [, self] = SELF_CONDITIONING.exec(name) ?? [];
      if (self && pass === 'encoder') continue;
      const module = self
        ? `model.decoder.self_conditioning.${self}_proj`
        : `${prefix}${layer}.${MODULES[what]}`;
      put(`${module}.lora_A`, rank, cols, 3.5 / Math.sqrt(cols));
      put(`${module}.lora_B`, rows, rank, (3.5 * size) / Math.sqrt(rank));
    }
  const head = Buffer.from(JSON.stringify(header));
  return {
    bytes: new Uint8Array(Buffer.concat([u64(head.length), head, ...data])),
    config: JSON.stringify({ peft_type: 'LORA', r: rank, lora_alpha: rank }),
  };
}
