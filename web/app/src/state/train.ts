// train - the training under way: its beginning, its steps, its end, and how it goes on after a
// reload.
//
// One at a time, in one tab. What is needed to go on (train/record.ts) is written while it runs; it
// goes when the adapter is in the library, or when the person throws it away.

import { signal } from '@preact/signals';
import {
  DeviceError, MemoryError, UnsupportedError, type Engine, type TrainResult, type TrainRun,
  type TrainStep,
} from 'bezel';
import { isHeld, locked } from '../lib/locks';
import { within } from '../lib/within';
import { pack, unpack, type Point, type TrainRecord } from '../train/record';
import { savedTraining } from '../storage/client';
import { hasAdapter, library, saveTrained } from './adapters';
import { currentEngine, isOnCpu, loadOnCpu, unloadedNote } from './engine';
import { adapterName, data, options } from './lesson';
import { messageOf, notify, notifyError, say } from './notices';
import { lookInStore } from './shelf';

export type Training =
  | { kind: 'none' }
  /** Half done; `note` says why it stands still. `device`: the GPU is the reason, and the CPU
   *  would be a way on. */
  | { kind: 'kept'; record: TrainRecord; note: string; device: boolean }
  /** `from`: the step that this visit began with; `saved`: the one it would go on from, were the
   *  page closed now. */
  | {
    kind: 'running';
    phase: 'before' | 'learning' | 'after';
    paused: boolean;
    record: TrainRecord;
    last: TrainStep | null;
    from: number;
    saved: number;
  }
  /** `unsaved`: why it is not in the library; it is here until the page is closed. */
  | { kind: 'done'; record: TrainRecord; result: TrainResult; after: string[]; unsaved: string };

export const training = signal<Training>({ kind: 'none' });

const ID = 'current'; // there is one
const LOCK = 'bezel-training';
const SAVE_FIRST = 2000; // milliseconds of learning before the first checkpoint is written
const SAVE_SHARE = 20; // then at most this part of the time is spent on them
const PATIENCE = 5000; // milliseconds that the end waits for files
const ANSWER = 96; // tokens of a sample answer

let run: TrainRun | null = null;
let stop = new AbortController();
let finishing = false; // the end was asked for: nothing more is written on the way

// ---- what is kept ----

/** What an earlier visit left half done. */
export async function findKept(): Promise<void> {
  if (training.peek().kind !== 'none') return;
  if (await isHeld(LOCK)) return; // another tab is at it
  const all = await savedTraining.load(ID), found = all && unpack(all);
  if (!all || training.peek().kind !== 'none') return;
  if (found)
    training.value = {
      kind: 'kept',
      record: found.record,
      note: 'The page was closed before it was done.',
      device: false,
    };
  else await savedTraining.remove(ID);
}

const stepOf = (record: TrainRecord): number => record.points.at(-1)?.step ?? 0;

let writing: Promise<void> = Promise.resolve();
// the newest, where it could not be written: for as long as the page is open
let held: Uint8Array | null = null;

/** One after the other: a file has one writer. */
async function keep(record: TrainRecord, checkpoint: Uint8Array): Promise<void> {
  const all = (held = pack(record, checkpoint));
  const mine = writing.then(() => savedTraining.save(ID, all));
  writing = mine.then(() => {}, () => {});
  if (!(await mine)) throw new Error('this window gives the page no lasting storage.');
  if (held === all) held = null;
  show({ saved: stepOf(record) });
}

/** After what is being written, which would come back else. */
function forget(): Promise<void> {
  held = null;
  const mine = writing.then(() => savedTraining.remove(ID));
  writing = mine.catch(() => {}); // whoever asked for it is told
  return mine;
}

export async function discard(): Promise<void> {
  training.value = { kind: 'none' };
  await forget();
}

/** The card of a finished training is put away. */
export const dismissResult = (): void => void (training.value = { kind: 'none' });

// ---- questions before and after ----

async function answer(engine: Engine, question: string, adapter: string | null): Promise<string> {
  const { choices } = await engine.chat.completions.create({
    messages: [{ role: 'user', content: question }], temperature: 0, max_tokens: ANSWER,
    session: LOCK, adapters: adapter ? [{ name: adapter, scale: 1 }] : [], signal: stop.signal,
  });
  return choices[0]?.message.content ?? '';
}

async function answers(
  engine: Engine, questions: readonly string[], adapter: string | null,
): Promise<string[]> {
  const all: string[] = [];
  for (const question of questions) all.push(await answer(engine, question, adapter));
  await engine.session(LOCK).close();
  return all;
}

// ---- learning ----

function show(part: Partial<Extract<Training, { kind: 'running' }>>): void {
  const now = training.peek();
  if (now.kind === 'running') training.value = { ...now, ...part };
}

const pointOf = ({ step, loss, evalLoss }: TrainStep): Point => ({
  step, loss, ...(evalLoss !== undefined && { evalLoss }),
});

const TRY_AGAIN = 60_000; // milliseconds after a checkpoint that could not be written

/** A full disk is no reason to stop learning. */
function notKept(e: unknown): false {
  notify(
    'The training goes on. What is learned is in memory only, as it could not be written '
      + `down: ${messageOf(e)}`,
    { tone: 'error' },
  );
  return false;
}

/** Reads the steps, and writes a checkpoint now and then. No step waits until it is written: a
 *  disk takes its time. */
async function follow(running: TrainRun, record: TrainRecord): Promise<TrainRecord> {
  let now = record, due = performance.now() + SAVE_FIRST;
  const save = async (begin: number, checkpoint: Uint8Array): Promise<void> => {
    const kept = await keep(now, checkpoint).then(() => true, notKept);
    due = performance.now() + (kept ? SAVE_SHARE * (performance.now() - begin) : TRY_AGAIN);
  };
  for await (const last of running) {
    now = {
      ...now,
      steps: last.steps,
      points: [...now.points.filter((p) => p.step < last.step), pointOf(last)],
    };
    show({ record: now, last });
    if (performance.now() < due || last.step === last.steps || finishing) continue;
    due = Infinity; // one at a time
    void save(performance.now(), await running.checkpoint());
  }
  return now;
}

async function learn(engine: Engine, record: TrainRecord, checkpoint: Uint8Array): Promise<void> {
  show({ phase: 'learning' });
  const running = engine.train({
    ...record.options,
    data: record.data,
    name: record.name,
    signal: stop.signal,
    ...(checkpoint.length && { resume: checkpoint }),
  });
  run = running;
  const done = await follow(running, record), result = await running.result;
  show({ phase: 'after', paused: false });
  hasAdapter(engine, result.adapter);
  const unsaved = await toLibrary(record, result);
  training.value = {
    kind: 'done',
    record: done,
    result,
    after: await answers(engine, done.questions, result.adapter),
    unsaved,
  };
  say(unsaved ? `${record.name} is trained, but not in the library` : `${record.name} is trained`);
}

/** Says why it did not work; what is needed to go on stays then. */
async function toLibrary({ name, modelName }: TrainRecord, { gguf }: TrainResult): Promise<string> {
  try {
    await saveTrained(name, gguf, modelName);
  } catch (e) {
    return messageOf(e);
  }
  await within(forget().catch(notifyError), PATIENCE);
  return '';
}

/** Once there is room. */
export async function saveAgain(): Promise<void> {
  const now = training.peek();
  if (now.kind === 'done')
    training.value = { ...now, unsaved: await toLibrary(now.record, now.result) };
}

/** Holds the lock; a failure leaves what is needed to go on. */
async function alone(record: TrainRecord, work: () => Promise<void>): Promise<void> {
  await locked(LOCK, { ifAvailable: true }, async (isMine) => {
    if (!isMine) throw new Error('Another tab is training an adapter.');
    stop = new AbortController();
    finishing = false;
    training.value = {
      kind: 'running', phase: 'before', paused: false, record, last: null, from: stepOf(record),
      saved: stepOf(record),
    };
    try {
      await work();
    } catch (e) {
      const now = training.peek();
      const note = stop.signal.aborted
        ? 'It was cancelled.'
        : (unloadedNote(e, record.modelName) ?? messageOf(e));
      const device = (e instanceof UnsupportedError || e instanceof DeviceError
        || e instanceof MemoryError)
        && !isOnCpu();
      training.value = {
        kind: 'kept', record: now.kind === 'running' ? now.record : record, note, device,
      };
    } finally {
      run = null;
    }
  });
}

/** A name that neither the library nor the model has. */
async function freeName(engine: Engine): Promise<string> {
  await lookInStore();
  const taken =
    new Set([...library.value, ...(await engine.adapters.list())].map((a) => a.name.toLowerCase()));
  const wish = adapterName.peek();
  let name = wish;
  for (let n = 2; taken.has(name.toLowerCase()); n++) name = `${wish}-${n}`;
  return name;
}

export async function start(questions: string[]): Promise<void> {
  const chosen = options.peek(), { engine, model } = currentEngine();
  if (!chosen) return;
  const name = await freeName(engine);
  const asked: TrainRecord = {
    version: 1, name, model: model.key, modelName: model.name, data: data.peek(), options: chosen,
    questions, before: [], points: [], steps: 0,
  };
  say(`Training ${name}`);
  await alone(asked, async () => {
    const record = { ...asked, before: await answers(engine, questions, null) };
    show({ record });
    void keep(record, new Uint8Array(0)).catch(notKept);
    await learn(engine, record, new Uint8Array(0));
  });
}

export async function goOn(): Promise<void> {
  const now = training.peek(), { engine, model } = currentEngine();
  if (now.kind !== 'kept') return;
  if (model.key !== now.record.model)
    throw new Error(`This training belongs to ${now.record.modelName}; load that model first.`);
  const all = held ?? (await savedTraining.load(ID)), found = all && unpack(all);
  const { record, checkpoint } = found ?? { record: now.record, checkpoint: new Uint8Array(0) };
  await alone(record, () => learn(engine, record, checkpoint));
}

/** The same on the CPU, said and asked for. */
export async function goOnWithCpu(): Promise<void> {
  const { model } = currentEngine();
  await loadOnCpu(model);
  await goOn();
}

// ---- what the person may do meanwhile ----

/** Stands still, and can be gone on with even if the page is closed. */
export async function pause(): Promise<void> {
  const now = training.peek();
  if (!run || now.kind !== 'running') return;
  run.pause();
  show({ paused: true });
  const checkpoint = await run.checkpoint(), { record } = training.peek() as typeof now;
  await keep(record, checkpoint).catch(notKept);
}

export function resume(): void {
  run?.resume();
  show({ paused: false });
}

/** Ends with what was learned so far. */
export function finish(): void {
  finishing = true;
  run?.stop();
}

/** Ends now. What was written last is kept until it is thrown away. */
export const cancel = (): void => stop.abort();

export const act = (work: () => Promise<void>): void => void work().catch(notifyError);
