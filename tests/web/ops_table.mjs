// ops_table - the op table of tests/ops_cases.h on this host's GPU. No host's own API is used here,
// so that Node, Deno and a browser run the same lines.
import { Core, Gpu, openDevice, profiles } from '../../web/engine/dist/core.js';

/** The case that has begun, on one backend. */
async function runCase(core, gpu, i, number) {
  const { exports } = core;
  const state = exports.ops_test_record(i, number);
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
    exports.ops_test_recorded();
  }
}

/** Gradients have one tier. */
const isBackward = (op) => /_bwd$|^(linears_z|head_loss|adamw|publish|zero)$/.test(op);

const WIDE = new RegExp('^residual_|^norm_(linears|gate_up|sum)$|^layer_|^attend_linear$|then_'
  + '|^(linear_router|router_experts|attend_masked|canvas_head)$');

const NUMBERS = [
  'no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten', 'eleven',
  'twelve', 'thirteen', 'fourteen', 'fifteen', 'sixteen', 'seventeen', 'eighteen',
];

/** Several devices behind one module, which calls the one that was chosen last. */
class Switch {
  constructor(gpus) {
    this.gpus = gpus;
    this.chosen = gpus[0];
    this.imports = Object.fromEntries(Object.keys(this.chosen.imports).map((name) =>
      [name, (...args) => this.chosen.imports[name](...args)]));
  }

  attach(core) {
    for (const gpu of this.gpus) gpu.attach(core);
  }
}

/** One tier of a device: what passed and failed there. wide: the stream's rules, attention with a
 *  product, routers and gradients as devices with wide workgroups run them, in few formats, since a
 *  software device takes long to compile each. */
class Run {
  passed = 0;
  failed = 0;
  worst = new Map();

  constructor({ info, tier, wide, as }, spell, log) {
    this.gpu = new Gpu(spell ? { ...info, limits: { ...info.limits, hasMatrix: 1 } } : info);
    this.tier = tier;
    this.wide = wide;
    this.name = `${info.name}${as ? ` as ${as}` : ''}, ${tier} tier${wide ? ', wide' : ''}`;
    this.log = log;
  }

  bad(why) {
    this.failed++;
    this.log(`FAILED ${this.name}: ${why}`);
  }

  /** kind: of ops_test_op. */
  takes(op, kind) {
    const isWide = kind !== 2 && (WIDE.test(op) || isBackward(op));
    return (!this.wide || isWide) && (!isBackward(op) || this.tier === 'plain');
  }

  judge(c) {
    if (c.nmse <= c.limit) {
      this.passed++;
      this.worst.set(c.op, Math.max(this.worst.get(c.op) ?? 0, c.nmse));
    } else
      this.bad(
        `${c.op} ${c.format} ${c.rows} x ${c.cols} (${c.why}): `
          + `${c.error ?? `nmse ${c.nmse} > ${c.limit}`}`,
      );
    // However many adapters a linear has, they cost one dispatch at most. (Subgroup matrices may
    // want x as halves before.)
    if (c.op === 'linear' && this.tier !== 'matrix' && c.dispatches > (c.adapters ? 2 : 1))
      this.bad(`${c.op} ${c.format} (${c.why}): ${c.dispatches} dispatches`);
    // All rows of a canvas are routed at once.
    if (c.op === 'route' && c.dispatches !== 1)
      this.bad(`${c.op} (${c.why}): ${c.dispatches} dispatches`);
    const said = /in (\w+) dispatch(es)?$/.exec(c.why)?.[1];
    const wanted = /^\d+$/.test(said) ? +said : NUMBERS.indexOf(said);
    if (said && wanted < 0) this.bad(`${c.op} (${c.why}): no number is called that here`);
    if (this.wide && wanted >= 0 && c.dispatches !== wanted)
      this.bad(`${c.op} ${c.format} (${c.why}): ${c.dispatches} dispatches`);
  }

  finish() {
    if (this.gpu.bytes) this.bad(`${this.gpu.bytes} bytes of buffers are left`);
    this.log(
      `${this.name}: worst nmse that passed: `
        + `${[...this.worst].map(([op, e]) => `${op} ${e.toPrecision(2)}`).join(', ')}`,
    );
    this.gpu.reset();
  }
}

/** Every case on every run that takes it. The reference computes a case once for all of them. */
async function runAll(wasm, runs, { only, spell }) {
  const devices = new Switch(runs.map((run) => run.gpu)), core = await Core.load(wasm, devices);
  const { exports } = core;
  await core.bringTraining();
  await core.bringCanvas();
  if (spell) {
    const kernel = core.kernel.bind(core);
    core.kernel = (i) => {
      const k = kernel(i);
      return /\bmatrix]/.test(k.name) ? { ...k, source: spell(k.source) } : k;
    };
  }
  const choose = (run) => (devices.chosen = run.gpu);
  const live = exports.bz_wasm_live();
  core.checkNumber(exports.ops_test_open());
  for (const run of runs) {
    choose(run);
    run.number =
      core.checkNumber(exports.ops_test_add(['plain', 'subgroup', 'matrix'].indexOf(run.tier)));
  }
  for (let i = 0, kind; (kind = exports.ops_test_op(i)); i++) {
    const op = core.resultText(), those = runs.filter((run) => run.takes(op, kind));
    if (!op || (only && !only.split(',').includes(op)) || !those.length) continue;
    exports.ops_test_begin(i);
    for (const run of those) run.judge(await runCase(core, choose(run), i, run.number));
    exports.ops_test_end();
  }
  for (const run of runs) {
    choose(run);
    exports.ops_test_remove(run.number);
  }
  exports.ops_test_close();
  if (exports.ops_test_failed()) runs[0].bad('a check inside a case');
  if (exports.bz_wasm_live() - live > 1)
    runs[0].bad(`${exports.bz_wasm_live() - live} allocations are left`);
  for (const run of runs) run.finish();
}

/** What a device of a profile would tell the core. */
function deviceAs(info, { as, most }) {
  const told = Object.fromEntries(
    Object.entries(info.limits).map(([key, value]) => [key, Math.min(value, most[key] ?? value)]),
  );
  return {
    ...info,
    names: { ...info.names, profile: as },
    limits: { ...told, subgroupMin: told.subgroupMax ? told.subgroupMin : 0 },
  };
}

/** The tiers that a device has; what is left out is said. */
function tiersOf({ name, limits }, tiers, spell, log) {
  const lacks = (tier) =>
    (tier === 'subgroup' && !limits.subgroupMax
      ? 'subgroups'
      : tier === 'matrix' && !limits.hasMatrix && !spell ? 'subgroup matrices' : undefined);
  for (const tier of tiers)
    if (lacks(tier)) log(`${name} has no ${lacks(tier)}: their tier is left out`);
  return tiers.filter((tier) => !lacks(tier));
}

/** tiers: 'plain', 'subgroup', 'matrix'. A tier that the device does not have is left out, aloud.
 *  as: then once more as devices of these profiles, in the tiers that they have; as wide ones where
 *  that is more than one. spell: rewrites the kernels for subgroup matrices, for devices that have
 *  none. wide: a software device also computes as wide ones do. All of it is one device, which
 *  compiles a kernel once. */
export async function runTable(
  wasm,
  {
    tiers = ['plain', 'subgroup', 'matrix'], profile, as = [], only, spell, wide: both = true,
    log = console.log,
  } = {},
) {
  const opened = await openDevice({ profile }), { limits } = opened;
  // No device but a software one makes choices of its own here: they would be those of an unknown
  // one.
  const narrow = limits.subgroupMin === 4 && limits.subgroupMax === 4;
  const info = narrow || profile ? opened : deviceAs(opened, { as: 'nvidia', most: {} });
  const runs = tiersOf(info, tiers, spell, log).flatMap((tier) => {
    // Wide ones have subgroups of several sizes, which kernels then count.
    const several =
      deviceAs({ ...info, limits: { ...limits, subgroupMax: 8 } }, { as: 'nvidia', most: {} });
    return [false, ...(both && !spell && narrow ? [true] : [])].map((wide) =>
      ({ info: wide ? several : info, tier, wide, as: profile }));
  });
  for (const name of as) {
    const other = deviceAs(info, profiles[name]), { subgroupMax } = other.limits;
    for (const tier of subgroupMax ? ['plain', 'subgroup'] : ['plain'])
      runs.push({ info: other, tier, wide: subgroupMax > 0, as: name });
  }
  const all = runs.map((run) => new Run(run, spell, log));
  if (all.length) await runAll(wasm, all, { only, spell });
  const sum = (key) => all.reduce((n, run) => n + run[key], 0), passed = sum('passed');
  const failed = sum('failed');
  info.device.destroy();
  log(`${passed + failed} tests: ${passed} passed, ${failed} failed, 0 skipped`);
  return failed;
}
