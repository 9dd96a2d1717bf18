// engine - the model that answers: loading it, losing it, and its one session, which follows the
// open conversation.

import { computed, signal } from '@preact/signals';
import {
  BezelError, DeviceError, Engine, LimitError, MemoryError, type LoadOptions, type Memory,
  type ModelSource, type Progress,
} from 'bezel';
import type { Conversation } from '../chat/types';
import { local } from '../lib/local';
import { isHeld, locked } from '../lib/locks';
import { contextBytes } from '../lib/memory';
import { SpeedMeter } from '../lib/speed';
import { within } from '../lib/within';
import { savedStates } from '../storage/client';
import type { ModelEntry } from './models';
import { messageOf, notify, notifyError, say } from './notices';
import { prefs, setPrefs, type Backend } from './prefs';

export const phases = ['fetch', 'open', 'weights', 'kernels', 'selftest', 'ready'] as const;

export interface Loading {
  kind: 'loading';
  model: ModelEntry;
  progress: { phase: (typeof phases)[number]; loaded: number; total: number };
  /** Bytes a second, lately; 0 where bytes are not what is counted. */
  speed: number;
}

export interface Ready {
  kind: 'ready';
  model: ModelEntry;
  engine: Engine;
  memory: Memory;
}

export type EngineState =
  | { kind: 'none'; note: string }
  | Loading
  | Ready
  /** `device`: the GPU is the reason, and the CPU would be a way out. */
  | { kind: 'failed'; model: ModelEntry; message: string; device: boolean };

export const engineState = signal<EngineState>({ kind: 'none', note: 'Looking for a model.' });
export const ready = computed(() => engineState.value.kind === 'ready');

// ---- remembered for the next visit ----

const lastKey = 'bezel.model';
const guardKey = 'bezel.loading'; // there while a load runs: found at start, the page died in it

export const lastModel = (): string | null => local.get(lastKey);

/** Whether the page of last time died while it loaded a model. Asked once. */
export async function diedLoading(): Promise<boolean> {
  if (!local.get(guardKey)) return false;
  if (await isHeld(guardKey)) return false; // another tab is at it right now
  local.remove(guardKey);
  return true;
}

const endGuard = (): void => local.remove(guardKey);
addEventListener('pagehide', endGuard); // left on purpose, not died

/** Mark that a load runs, until `work` has ended. */
function guarded(work: Promise<void>): Promise<void> {
  local.set(guardKey, '1');
  return locked(guardKey, { mode: 'shared' }, () => work).finally(endGuard);
}

// ---- loading ----

let stopLoad: AbortController | null = null;
/** The engine that is there, also while the page still looks at a model that is to replace it. */
let alive: Ready | null = null;

/** How a model was loaded that answered, for when its successor fails. */
interface Recipe {
  model: ModelEntry;
  backend: Backend;
  context: number;
}
let fallback: Recipe | null = null;

function reporter(
  model: ModelEntry, cancelled: AbortSignal,
): (progress: Loading['progress']) => void {
  const meters = { fetch: new SpeedMeter(), weights: new SpeedMeter() };
  let phase = '';
  return (progress) => {
    if (cancelled.aborted) return; // another load may be under way
    const meter =
      progress.phase === 'fetch' || progress.phase === 'weights' ? meters[progress.phase] : null;
    engineState.value = {
      kind: 'loading', model, progress, speed: meter?.add(progress.loaded) ?? 0,
    };
    if (phase !== progress.phase && progress.phase === 'open') say(`Loading ${model.name}`);
    phase = progress.phase;
  };
}

/** Give the model's memory back; a load that is under way is cancelled. */
export async function unload(): Promise<void> {
  stopLoad?.abort();
  fallback = null;
  await giveBack();
}

async function giveBack(): Promise<void> {
  const before = alive;
  if (!before) return;
  alive = null;
  sessionFor = null;
  if (engineState.peek() === before)
    engineState.value = { kind: 'none', note: 'No model is loaded.' };
  await before.engine.dispose();
}

/** Whoever used a model that made room for another is told this. */
export const unloadedNote = (e: unknown, model: string): string | null =>
  e instanceof BezelError && e.kind === 'cancelled' ? `${model} was unloaded meanwhile.` : null;

const noDevice = (backend: Backend, e: unknown): boolean =>
  backend !== 'cpu' && e instanceof DeviceError;

function onFailure(model: ModelEntry, backend: Backend, e: unknown): void {
  engineState.value = {
    kind: 'failed', model, message: messageOf(e), device: noDevice(backend, e),
  };
}

/** With the context that was asked for, or, where the model was not made for so much, with its
 *  own. */
async function withContext<T>(
  context: number, act: (wish: { context?: number }) => Promise<T>,
): Promise<T> {
  try {
    return await act(context ? { context } : {});
  } catch (e) {
    if (!context || !(e instanceof LimitError)) throw e;
    notify(`${messageOf(e)}; it is loaded with its own.`);
    return act({});
  }
}

type Wish = Pick<LoadOptions, 'selfTest' | 'store'
  | 'onProgress'> & { backend: Backend; signal: AbortSignal };

/** Without a wish the context is as long as the device's memory suggests; where that was too
 *  much, as short as the engine likes. */
async function start(source: ModelSource, context: number, wish: Wish): Promise<Engine> {
  if (context) return withContext(context, (more) => Engine.load(source, { ...wish, ...more }));
  try {
    return await Engine.load(source, { ...wish, contextBytes: await contextBytes(wish.backend) });
  } catch (e) {
    if (!(e instanceof MemoryError)) throw e;
    return Engine.load(source, wish);
  }
}

/** Whether a model could be loaded: its header, its architecture, its memory. Nothing is loaded
 *  for it. */
async function check(
  source: ModelSource, context: number, { backend, signal, store }: Wish,
): Promise<void> {
  const { fits, reason } = await withContext(context, (wish) =>
    Engine.estimate(source, { backend, signal, ...(store && { store }), ...wish }));
  if (!fits) throw new MemoryError(reason ?? 'this model does not fit');
}

/** The toy answers on any device, so without a GPU it goes to the CPU by itself; for any other
 *  model the CPU is a choice. */
export const backendFor = (model: ModelEntry): Backend => {
  const { backend } = prefs.value;
  return backend === 'auto' && model.origin !== 'embedded' ? 'gpu' : backend;
};

/** Load a model in place of what is there. Failures are a state of the page, not exceptions: the
 *  model that answered so far is kept until the new one has been looked at, and is loaded again
 *  where the new one fails all the same. */
export const load = (
  model: ModelEntry, options: Pick<LoadOptions, 'selfTest'> = {},
): Promise<void> =>
  guarded(loadNow({ model, backend: backendFor(model), context: prefs.value.context }, options));

/** From now on models are loaded on the CPU, this one first. */
export function loadOnCpu(model: ModelEntry): Promise<void> {
  setPrefs({ backend: 'cpu' });
  return load(model);
}

async function loadNow(
  { model, backend, context }: Recipe, options: Pick<LoadOptions, 'selfTest'>,
): Promise<void> {
  const stop = new AbortController();
  const { signal } = stop;
  const report = reporter(model, signal);
  stopLoad?.abort();
  stopLoad = stop; // before anything is waited for: whoever loads next must find it
  try {
    report({ phase: 'fetch', loaded: 0, total: model.size });
    const { source, store } =
      await model.open((loaded, total) => report({ phase: 'fetch', loaded, total }), signal);
    const wish: Wish = {
      ...options, backend, signal, onProgress: (p: Progress) => report(p), ...(store && { store }),
    };
    if (alive) await check(source, context, wish);
    signal.throwIfAborted();
    await giveBack();
    await show(await start(source, context, wish), model, signal);
  } catch (e) {
    // else another load took its place
    if (stopLoad === stop) await recover(model, backend, e, signal.aborted);
  } finally {
    if (stopLoad === stop) stopLoad = null;
  }
}

async function show(engine: Engine, model: ModelEntry, signal: AbortSignal): Promise<void> {
  try {
    const memory = await engine.memory();
    signal.throwIfAborted();
    alive = { kind: 'ready', model, engine, memory };
  } catch (e) {
    await engine.dispose().catch(() => {}); // what went wrong first is what is told
    throw e;
  }
  engineState.value = alive;
  fallback = { model, backend: engine.device.backend, context: engine.context };
  local.set(lastKey, model.key);
  say(`${model.name} is ready`);
}

/** Back to the model that answered before, where there was one. */
async function recover(
  model: ModelEntry, backend: Backend, e: unknown, cancelled: boolean,
): Promise<void> {
  const last = fallback;
  if (!last) {
    if (cancelled) engineState.value = { kind: 'none', note: 'Loading was cancelled.' };
    else onFailure(model, backend, e);
    return;
  }
  const stays = alive ? `${last.model.name} stays loaded.` : `${last.model.name} is loaded again.`;
  if (cancelled) notify(`Loading ${model.name} was cancelled. ${stays}`);
  else {
    const onCpu = { label: 'Use the CPU', run: () => void loadOnCpu(model) };
    notify(`${model.name} was not loaded: ${messageOf(e).replace(/\.$/, '')}. ${stays}`, {
      tone: 'error', ...(noDevice(backend, e) && { action: onCpu }),
    });
  }
  if (alive) {
    engineState.value = alive;
    return;
  }
  fallback = null; // once: a model that fails now is a failure to show
  await loadNow(last, {});
}

export const isOnCpu = (): boolean =>
  (alive ? alive.engine.device.backend : prefs.peek().backend) === 'cpu';

export const cancelLoad = (): void => stopLoad?.abort();

export function currentEngine(): Ready {
  const state = engineState.peek();
  if (state.kind !== 'ready') throw new Error('No model is loaded.');
  return state;
}

/** An error of the device while it answered ends the engine; the page says so and offers to load
 *  again. */
export function deviceLost(e: unknown): void {
  const state = engineState.peek();
  if (state.kind !== 'ready' || !(e instanceof DeviceError)) return;
  onFailure(state.model, state.engine.device.backend, e);
  alive = null;
  fallback = null;
  sessionFor = null;
  state.engine.dispose().catch(() => {}); // what is lost may fail to say goodbye
}

// ---- the session ----

const SESSION = 'open conversation';
// milliseconds that a saved state has to come: reading again is slower, and always works
const PATIENCE = 5000;

/** A cache that cannot be read, or does not come, is none. */
const stateOf = async (id: string): Promise<Uint8Array | null> =>
  (await within(savedStates.load(id).catch(() => null), PATIENCE)) ?? null;

let sessionFor: string | null = null;
let pending: Promise<void> = Promise.resolve();

async function bring(c: Conversation, { engine, model }: Ready): Promise<void> {
  if (sessionFor === c.id) return;
  sessionFor = c.id;
  const state = c.savedFor === model.key && prefs.peek().keepStates ? await stateOf(c.id) : null;
  if (!state) return; // what two conversations have in common is kept, the rest is read again
  try {
    await engine.session(SESSION).restore(state);
  } catch (e) {
    // Another version of the model or of its cache: only speed is lost.
    if (!(e instanceof BezelError) || e instanceof DeviceError) throw e;
    await savedStates.remove(c.id);
  }
}

/** The name of the session, holding what is known of this conversation. */
export async function useConversation(c: Conversation): Promise<string> {
  const state = currentEngine();
  // a failure was the earlier caller's
  pending = pending.catch(() => {}).then(() => bring(c, state));
  await pending;
  return SESSION;
}

const LARGEST_STATE = 512e6; // bytes; beyond, writing takes longer than it saves

/** Keep what the model has read; says for which model, '' where it was not kept. */
export async function keepState(c: Conversation): Promise<string> {
  const state = engineState.peek();
  if (state.kind !== 'ready' || !prefs.peek().keepStates || sessionFor !== c.id) return c.savedFor;
  if (c.settings.adapters.length) return ''; // a state belongs to the model alone
  try {
    const snapshot = await state.engine.session(SESSION).save();
    if (snapshot.byteLength > LARGEST_STATE) return '';
    return (await savedStates.save(c.id, snapshot)) ? state.model.key : '';
  } catch (e) {
    if (e instanceof DOMException && e.name === 'QuotaExceededError') {
      notify(
        'There is no room to keep the state of this conversation; '
          + 'it will be read again after a reload.',
      );
      return '';
    }
    notifyError(e);
    return '';
  }
}
