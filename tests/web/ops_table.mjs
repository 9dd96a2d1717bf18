// ops_table - the op table of tests/ops_cases.h on this host's GPU. No host's own API is used here, so that
// Node, Deno and a browser run the same lines.
import { Core, Gpu, openDevice, profiles } from '../../web/engine/dist/core.js';

/** One case. */
async function runCase(core, gpu, i) {
  const { exports } = core;
  const state = exports.ops_test_begin(i);
  const c = JSON.parse(core.resultText());
  try {
    if (state < 0) core.fail();
    await gpu.ready();
    await gpu.run([...c.placed, c.program]);
    await gpu.ready();
    for (const { buffer, offset, at, bytes } of c.results) {
      const copy = new Uint8Array(bytes);
      await gpu.read(buffer, offset, copy);
      new Uint8Array(core.memory.buffer, at, bytes).set(copy);
    }
    return { ...c, nmse: exports.ops_test_nmse() };
  } catch (e) {
    return { ...c, error: e.message.split('\n')[0] };
  } finally {
    exports.ops_test_end();
  }
}

/** Gradients have one tier. */
const isBackward = (op) => /_bwd$|^(head_loss|adamw|publish|zero)$/.test(op);

const NUMBERS = 'no one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen'.split(' ');

/** All cases on one tier; [passed, failed]. wide: joins, attention with a product, what they settle and gradients as devices with wide workgroups run them, in few
 * formats, since a software device takes seconds to compile each. */
async function runTier(wasm, info, tier, { as, only, spell, log, wide }) {
  const gpu = new Gpu(spell ? { ...info, limits: { ...info.limits, hasMatrix: 1 } } : info);
  const core = await Core.load(wasm, gpu);
  if (spell) {
    const kernel = core.kernel.bind(core);
    core.kernel = (i) => {
      const k = kernel(i);
      return k.name.endsWith('.matrix') ? { ...k, source: spell(k.source) } : k;
    };
  }
  const { exports } = core;
  const live = exports.bz_wasm_live();
  core.checkNumber(exports.ops_test_open(['plain', 'subgroup', 'matrix'].indexOf(tier), wide ? 1 : 0));
  const worst = new Map();
  let passed = 0, failed = 0;
  const bad = (why) => {
    failed++;
    log(`FAILED ${tier} ${why}`);
  };
  for (let i = 0, kind; (kind = exports.ops_test_op(i)); i++) {
    const op = core.resultText();
    if (!op || (only && !only.split(',').includes(op)) || (wide && (kind === 2 || !(/^join|^layer_|^norm_sum$|^attend_|then_|^linear_router$/.test(op) || isBackward(op)))) || (isBackward(op) && tier !== 'plain')) continue;
    const c = await runCase(core, gpu, i);
    if (c.nmse <= c.limit) passed++;
    else bad(`${c.op} ${c.format} ${c.rows} x ${c.cols} (${c.why}): ${c.error ?? `nmse ${c.nmse} > ${c.limit}`}`);
    // However many adapters a linear has, they cost one dispatch at most. (Subgroup matrices may want x as halves before.)
    if (c.op === 'linear' && tier !== 'matrix' && c.dispatches > (c.adapters ? 2 : 1)) bad(`${c.op} ${c.format} (${c.why}): ${c.dispatches} dispatches`);
    const said = /in (\w+) dispatch(es)?$/.exec(c.why)?.[1], wanted = /^\d+$/.test(said) ? +said : NUMBERS.indexOf(said);
    if (said && wanted < 0) bad(`${c.op} (${c.why}): no number is called that here`);
    if (wide && wanted >= 0 && c.dispatches !== wanted) bad(`${c.op} ${c.format} (${c.why}): ${c.dispatches} dispatches`);
    if (c.nmse <= c.limit) worst.set(c.op, Math.max(worst.get(c.op) ?? 0, c.nmse));
  }
  exports.ops_test_close();
  if (exports.ops_test_failed()) bad('a check inside a case');
  if (exports.bz_wasm_live() - live > 1) bad(`${exports.bz_wasm_live() - live} allocations are left`);
  if (gpu.bytes) bad(`${gpu.bytes} bytes of buffers are left`);
  log(`${gpu.info.name}${as ? ` as ${as}` : ''}, ${tier} tier${wide ? ', wide' : ''}: worst nmse that passed: ${[...worst].map(([op, e]) => `${op} ${e.toPrecision(2)}`).join(', ')}`);
  gpu.reset();
  return [passed, failed];
}

/** What a device of a profile would tell the core. */
function limitsAs(limits, { most }) {
  const told = Object.fromEntries(Object.entries(limits).map(([key, value]) => [key, Math.min(value, most[key] ?? value)]));
  return { ...told, subgroupMin: told.subgroupMax ? told.subgroupMin : 0 };
}

/** The tiers that a device has; what is left out is said. */
function tiersOf({ name, limits }, tiers, spell, log) {
  const lacks = (tier) => (tier === 'subgroup' && !limits.subgroupMax ? 'subgroups' : tier === 'matrix' && !limits.hasMatrix && !spell ? 'subgroup matrices' : undefined);
  for (const tier of tiers) if (lacks(tier)) log(`${name} has no ${lacks(tier)}: their tier is left out`);
  return tiers.filter((tier) => !lacks(tier));
}

/** tiers: 'plain', 'subgroup', 'matrix'. A tier that the device does not have is left out, aloud. as: then once more with
 *  the limits of these profiles told to the core. spell: rewrites the kernels for subgroup matrices, for devices that have
 *  none. wide: a software device also computes as wide ones do. All of it is one device, which compiles a kernel once. */
export async function runTable(wasm, { tiers = ['plain', 'subgroup', 'matrix'], profile, as = [], only, spell, wide: both = true, log = console.log } = {}) {
  let passed = 0, failed = 0;
  const info = await openDevice({ profile }), { limits } = info;
  const runs = tiersOf(info, tiers, spell, log).flatMap((tier) => {
    const narrow = both && !spell && limits.subgroupMin === 4 && limits.subgroupMax === 4;
    // Wide ones have subgroups of several sizes, which kernels then count.
    const several = { ...info, limits: { ...limits, subgroupMax: 8 } };
    return [false, ...(narrow ? [true] : [])].map((wide) => ({ info: wide ? several : info, tier, wide, as: profile }));
  });
  for (const name of as) runs.push({ info: { ...info, limits: limitsAs(limits, profiles[name]) }, tier: 'plain', wide: false, as: name });
  for (const { info: device, tier, ...run } of runs) {
    const [p, f] = await runTier(wasm, device, tier, { ...run, only, spell, log });
    passed += p;
    failed += f;
  }
  info.device.destroy();
  log(`${passed + failed} tests: ${passed} passed, ${failed} failed, 0 skipped`);
  return failed;
}
