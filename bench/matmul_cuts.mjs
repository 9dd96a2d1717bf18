// matmul_cuts.mjs - the cuts that matmul.mjs times: WGSL of a product in tiles of several sizes, on
// tiles of f32 or on subgroup matrices, and the repository's own kernel.

/** What a kernel declares, as [name, text]. */
function declarations(source) {
  const found = [];
  for (let at = 0, from = 0, depth = 0; at < source.length; at++) {
    depth += { '{': 1, '}': -1 }[source[at]] ?? 0;
    if (depth || !';}'.includes(source[at])) continue;
    const text = source.slice(from, at + 1);
    found.push([
      /\b(?:fn|struct|alias|const|override|var(?:<[^>]*>)?)\s*(\w+)/.exec(text)?.[1], text,
    ]);
    from = at + 1;
  }
  return found;
}
/** Those of the repository's matmul that these need: its buffers, where results go, and eight
 *  weights of a format. */
function io(source) {
  const all = new Map(declarations(source));
  const names = new Set(['x', 'w', 'z', 'b', 'by', 'y', 'put', 'eight', 'flat_group']);
  for (const name of names)
    for (const [word] of all.get(name).matchAll(/(?<!\.)\b\w+/g))
      if (all.has(word)) names.add(word);
  return [...all].filter(([name]) => names.has(name)).map(([, text]) => text).join('');
}
// bindings must be used: it is called where rank > 0
const keep = 'fn unread() -> f32 { return z[0] + b[0]; }';
const times = (n, f) => Array.from({ length: n }, (_, i) => f(i)).join('\n');
const grid = (bm, bn) => (s, nTok) => Math.ceil(s.rows / bm) * Math.ceil(nTok / bn);

/** Outer products from tiles that lie column by column: a thread has tm x tn results, 4 apart by
 * half a tile. With slices, row groups of threads share the tile's columns and add up at the end.
 * */
export function outer({ bm, bn, bk, tm, tn, ahead, slices = 1 }) {
  const rowGroup = (bm / tm) * (bn / tn), threads = rowGroup * slices, parts = bk / 8;
  const nw = Math.ceil((bm * parts) / threads), nx = Math.ceil((bn * parts) / threads);
  const rw = bm / tm, tw = bn / tn; // threads by rows, by tokens
  const wr = Math.min(8, rw), wt = 32 / wr; // a warp's
  const w4 = tm / 4, x4 = tn / 4, xs = (bk * bm) / 4; // where x begins in the tile
  const load = (to) => `{
    ${times(nw, (i) => `{ let row = (id + ${threads * i}u) / ${parts}u;
      let col = ${to} + id % ${parts}u;
      e${i} = Eight();
      if (col < eights) { e${i} = eight(min(row0 + row, p.rows - 1u) * eights + col); } }`)}
    ${times(nx, (i) => `{ let row = (id + ${threads * i}u) / ${parts}u;
      let col = ${to} + id % ${parts}u;
      let at = min(tok0 + row, p.n_tok - 1u) * (p.x_stride / 4u) + 2u * col;
      v${i} = Eight(); if (col < eights) { v${i} = Eight(x[at], x[at + 1u]); } }`)}
  }`;
  const put = (base, rows, name, i) => {
    const cell = (j) => `tile[${base}u + (k + ${j}u) * ${rows / 4}u + row / 4u][row % 4u]`;
    return `${threads * (i + 1) > rows * parts ? `if (id < ${rows * parts}u) ` : ''}{ `
      + `let row = (id + ${threads * i}u) / ${parts}u; let k = id % ${parts}u * 8u; `
      + `${times(8, (j) => `${cell(j)} = ${name}${i}.${j < 4 ? 'a' : 'b'}[${j % 4}];`)} }`;
  };
  const sums = Array.from({ length: tn * w4 }, (_, n) => `s${n % w4}_${Math.floor(n / w4)}`);
  const each = (line) => sums.map((name, i) => line(name, `${i * rowGroup}u + mine`)).join('\n');
  return {
    name:
      `f32 ${bm}x${bn}x${bk} `
        + `${tm}x${tn}${slices > 1 ? ` by ${slices}` : ''}${ahead ? ' ahead' : ''}`,
    bytes: 4 * bk * (bm + bn), threads, groups: grid(bm, bn),
    source: (sourceOf, format) => `${io(sourceOf(`matmul[${format}]`))}
${keep}
var<workgroup> tile : array<vec4<f32>, ${(bk * (bm + bn)) / 4}>;
@compute @workgroup_size(${threads})
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32) {
  let tok_tiles = (p.n_tok + ${bn - 1}u) / ${bn}u;
  let group = flat_group(wid, num);
  let row0 = group / tok_tiles * ${bm}u;
  let tok0 = group % tok_tiles * ${bn}u;
  if (row0 >= p.rows) { return; }
  let eights = (p.cols + 7u) / 8u;
  let slice = id / ${rowGroup}u; let mine = id % ${rowGroup}u;
  let lane = mine % 32u; let warp = mine / 32u;
  let r = lane % ${wr}u + ${wr}u * (warp % ${rw / wr}u);
  let t = lane / ${wr}u + ${wt}u * (warp / ${rw / wr}u);
  ${sums.map((n) => `var ${n} = vec4<f32>();`).join('\n')}
  ${times(nw, (i) => `var e${i} = Eight();`)}
  ${times(nx, (i) => `var v${i} = Eight();`)}
  ${ahead ? load('0u') : ''}
  for (var first = 0u; first < eights; first += ${parts}u) {
    ${ahead ? '' : load('first')}
    ${times(nw, (i) => put(0, bm, 'e', i))}
    ${times(nx, (i) => put(xs, bn, 'v', i))}
    workgroupBarrier();
    ${ahead ? load(`first + ${parts}u`) : ''}
    for (var i = 0u; i < ${bk / slices}u; i++) {
      let k = slice * ${bk / slices}u + i;
      ${times(w4, (i) => `let w${i} = tile[k * ${bm / 4}u + r + ${i * rw}u];`)}
      ${times(x4, (i) => `let x${i} = tile[${xs}u + k * ${bn / 4}u + t + ${i * tw}u];`)}
      ${times(tn, (j) => times(w4, (i) => `s${i}_${j} += w${i} * x${j >> 2}[${j & 3}];`))}
    }
    workgroupBarrier();
  }
  ${slices > 1 ? `for (var n = 1u; n < ${slices}u; n++) {
    if (slice == n) { ${each((name, at) => `tile[${at}] = ${name};`)} }
    workgroupBarrier();
    if (slice == 0u) {
      ${each((name, at) => `${name} += tile[${at}];`)}
    }
    workgroupBarrier();
  }
  if (slice != 0u) { return; }` : ''}
  var extra = 0.0;
  if (p.rank > 0u) { extra = unread(); }
  ${times(tn, (j) => times(w4, (i) => `{
    let tok = tok0 + 4u * (t + ${(j >> 2) * tw}u) + ${j & 3}u;
    let row = row0 + 4u * (r + ${i * rw}u);
    for (var c = 0u; c < 4u; c++) {
      if (tok < p.n_tok && row + c < p.rows) { put(tok, row + c, s${i}_${j}[c] + extra); }
    } }`))}
}`,
  };
}

/** Subgroup matrices: W rows x columns of tokens, f16 operands, f32 sums; subgroups in sr x sc.
 * how: how f16 lies in workgroup memory ('f16', 'vec4<f16>', 'vec4<u32>'); half: x comes as halves
 * already; direct: and is not staged. */
export function matrices({
  bm, bn, bk, sr, sc, how = 'f16', half = false, direct = false, ahead = false, pad = 8, slices = 1,
}) {
  const threads = 32 * sr * sc * slices, parts = bk / 8, nw = (bm * parts) / threads;
  const nx = (bn * parts) / threads;
  const per = { f16: 1, 'vec4<f16>': 4, 'vec4<u32>': 8 }[how], pitch = (bk + pad) / per;
  const mi = bm / sr / 16, ni = bn / sc / 16; // 16 x 16 results of a subgroup
  const put = (tile, name, i) => {
    const head =
      `{ let row = (id + ${threads * i}u) / ${parts}u; let at = row * ${pitch}u + id % `
        + `${parts}u * ${8 / per}u;`;
    const h = (x) => `vec4<f16>(${x})`;
    if (name === 'h')
      return how === 'vec4<u32>' ? `${head} ${tile}[at] = h${i}; }`
          : how === 'vec4<f16>'
          ? `${head} ${tile}[at] = bitcast<vec4<f16>>(h${i}.xy); `
          + `${tile}[at + 1u] = bitcast<vec4<f16>>(h${i}.zw); }`
        : `${head} let a = bitcast<vec4<f16>>(h${i}.xy); let c = bitcast<vec4<f16>>(h${i}.zw); `
        + `${times(8, (j) => `${tile}[at + ${j}u] = ${j < 4 ? 'a' : 'c'}[${j % 4}];`)} }`;
    if (how === 'vec4<u32>')
      return `${head} ${tile}[at] = vec4<u32>(bitcast<vec2<u32>>(${h(`${name}${i}.a`)}), `
        + `bitcast<vec2<u32>>(${h(`${name}${i}.b`)})); }`;
    if (how === 'vec4<f16>')
      return `${head} ${tile}[at] = ${h(`${name}${i}.a`)}; `
        + `${tile}[at + 1u] = ${h(`${name}${i}.b`)}; }`;
    return `${head} let a = ${h(`${name}${i}.a`)}; let c = ${h(`${name}${i}.b`)}; `
      + `${times(8, (j) => `${tile}[at + ${j}u] = ${j < 4 ? 'a' : 'c'}[${j % 4}];`)} }`;
  };
  const load = (to) => `{
    ${times(nw, (i) => `{ let row = (id + ${threads * i}u) / ${parts}u;
      let col = ${to} + id % ${parts}u;
      e${i} = Eight();
      if (col < eights) { e${i} = eight(min(row0 + row, p.rows - 1u) * eights + col); } }`)}
    ${direct ? '' : half ? times(nx, (i) => `{ let row = (id + ${threads * i}u) / ${parts}u;
      let col = ${to} + id % ${parts}u; h${i} = vec4<u32>();
      if (col < eights) { h${i} = x[min(tok0 + row, p.n_tok - 1u) * (eights + 1u) + col]; } }`)
    : times(nx, (i) => `{ let row = (id + ${threads * i}u) / ${parts}u;
      let col = ${to} + id % ${parts}u;
      let at = min(tok0 + row, p.n_tok - 1u) * (p.x_stride / 4u) + 2u * col;
      v${i} = Eight(); if (col < eights) { v${i} = Eight(x[at], x[at + 1u]); } }`)}
  }`;
  const declared = (source) =>
    (half ? io(source).replace('x:array<vec4<f32>>', 'x:array<vec4<u32>>') : io(source));
  const left = (i) => 'subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&ws, '
    + `(rc + ${16 * i}u) * ${pitch}u + ${16 / per}u * k, ${pitch}u)`;
  const slice = (n) => `out[sg * 256u + ${256 * sr * sc * n}u + c]`;
  const all = Array.from({ length: slices }, (_, n) => slice(n)).join(' + ');
  const right = (j) => direct
    ? 'subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, col_major>(&x, '
      + `(tok0 + tc + ${16 * j}u) * (eights + 1u) + first + 2u * k, eights + 1u)`
    : 'subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, col_major>(&xs, '
      + `(tc + ${16 * j}u) * ${pitch}u + ${16 / per}u * k, ${pitch}u)`;
  return {
    name:
      `matrix ${bm}x${bn}x${bk} ${sr}x${sc} `
        + `${how}${half ? ' x16' : ''}${direct ? ' direct' : ''}`
        + `${slices > 1 ? ` by ${slices}` : ''}${ahead ? ' ahead' : ''}`,
    half, matrix: true,
    bytes: 2 * (bk + pad) * (bm + (direct ? 0 : bn)) + 1024 * sr * sc * slices, threads,
    groups: grid(bm, bn),
    source: (sourceOf, format) => `enable f16; enable subgroups;
enable chromium_experimental_subgroup_matrix;
${declared(sourceOf(`matmul[${format}]`))}
${keep}
var<workgroup> ws : array<${how}, ${bm * pitch}>;
${direct ? '' : `var<workgroup> xs : array<${how}, ${bn * pitch}>;`}
var<workgroup> out : array<f32, ${256 * sr * sc * slices}>;
@compute @workgroup_size(${threads})
fn main(@builtin(workgroup_id) wid : vec3<u32>, @builtin(num_workgroups) num : vec3<u32>,
        @builtin(local_invocation_index) id : u32,
        @builtin(subgroup_id) sg : u32) {
  let tok_tiles = (p.n_tok + ${bn - 1}u) / ${bn}u;
  let group = flat_group(wid, num);
  let row0 = group / tok_tiles * ${bm}u;
  let tok0 = group % tok_tiles * ${bn}u;
  if (row0 >= p.rows) { return; }
  let eights = (p.cols + 7u) / 8u;
  let slice = sg / ${sr * sc}u;
  let rc = sg % ${sr}u * ${bm / sr}u;
  let tc = sg % ${sr * sc}u / ${sr}u * ${bn / sc}u;
  ${times(mi, (i) => times(ni, (j) => `var s${i}_${j} = subgroup_matrix_result<f32, 16, 16>();`))}
  ${times(nw, (i) => `var e${i} = Eight();`)}
  ${direct ? '' : times(nx, (i) => half ? `var h${i} = vec4<u32>();` : `var v${i} = Eight();`)}
  ${ahead ? load('0u') : ''}
  for (var first = 0u; first < eights; first += ${parts}u) {
    ${ahead ? '' : load('first')}
    ${times(nw, (i) => put('ws', 'e', i))}
    ${direct ? '' : times(nx, (i) => put('xs', half ? 'h' : 'v', i))}
    workgroupBarrier();
    ${ahead ? load(`first + ${parts}u`) : ''}
    ${times(bk / 16 / slices, (i) => `{ let k = ${bk / 16 / slices}u * slice + ${i}u;
      ${times(mi, (i) => `let l${i} = ${left(i)};`)}
      ${times(ni, (j) => `{ let m = ${right(j)};
        ${times(mi, (i) =>
          `s${i}_${j} = subgroupMatrixMultiplyAccumulate(l${i}, m, s${i}_${j});`)} }`)}
    }`)}
    workgroupBarrier();
  }
  var extra = 0.0;
  if (p.rank > 0u) { extra = unread(); }
  let lane = id % 32u;
  ${times(mi, (i) => times(ni, (j) => `
  subgroupMatrixStore<col_major>(&out, sg * 256u, s${i}_${j}, 16u);
  workgroupBarrier();
  for (var c = lane; c < 256u; c += 32u) {
    let row = row0 + rc + ${16 * i}u + c % 16u; let tok = tok0 + tc + ${16 * j}u + c / 16u;
    if (slice == 0u && tok < p.n_tok && row < p.rows) { put(tok, row, extra + ${all}); }
  }
  workgroupBarrier();`))}
}`,
  };
}

/** The repository's own kernel in one of its cuts. */
export const own = (rows, toks, threads) => ({
  name: `own ${rows}x${toks} ${threads}`, bytes: 16384, threads, groups: grid(rows, toks),
  constants: { ROWS: rows, TOKS: toks, WG: threads },
  source: (sourceOf, format) => sourceOf(`matmul[${format}]`),
});
/** buffers: stages in workgroup memory; splits: of the columns, each with results of its own. */
export const ownMatrix = (rows, toks, threads, { splits = 1, buffers = 2 } = {}) => ({
  ...own(rows, toks, threads),
  name:
    `matrix own ${rows}x${toks} `
      + `${threads}${buffers > 1 ? '' : ' one stage'}${splits > 1 ? ` by ${splits}` : ''}`,
  bytes: 2560 * Math.max((buffers * (rows + toks)) / 32, threads / 32), half: true, matrix: true,
  splits,
  groups: (s, nTok) => splits * grid(rows, toks)(s, nTok),
  constants: { ROWS: rows, TOKS: toks, WG: threads, BUFFERS: buffers },
  source: (sourceOf, format) => sourceOf(`matmul[${format} matrix]`),
});
