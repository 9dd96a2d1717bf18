// adapters - LoRA adapters: the library in this browser's store, and those of them that the loaded
// model has at hand.
//
// An adapter is brought to the model when a conversation first uses it, and used only by requests
// that name it.

import { computed } from '@preact/signals';
import type { AdapterForm, AdapterUse, Engine } from 'bezel';
import { download } from '../lib/files';
import { currentEngine, engineState } from './engine';
import { messageOf, notify } from './notices';
import { inStore, lookInStore, store } from './shelf';
import { question } from './ui';

/** As people write it. */
const plainName = (name: string): string => name.replace(/:latest$/, '');

export const library = computed(() => inStore.value
  .filter((m) => m.kind === 'adapter')
  .map((m) => ({ ...m, name: plainName(m.name) })));

/** What each engine has, or is about to have. */
const brought = new WeakMap<Engine, Map<string, Promise<void>>>();

function broughtTo(engine: Engine): Map<string, Promise<void>> {
  const known = brought.get(engine) ?? new Map<string, Promise<void>>();
  brought.set(engine, known);
  return known;
}

async function bring(engine: Engine, name: string): Promise<void> {
  const { adapters: [source], kind, store: { config } } = await store().resolve(name);
  if (!source || kind !== 'adapter') throw new Error(`${name} is not an adapter.`);
  // With a strength of 0, so that only who names it gets it.
  const base = library.peek().find((a) => a.name === name)?.base;
  await engine.adapters.add(source, {
    name, scale: 0, ...(config !== undefined && { config }),
  }).catch((e: unknown) => {
    const { model } = currentEngine();
    throw base && base !== model.name
      ? new Error(`${messageOf(e)}. ${name} was made for ${base}, and ${model.name} is loaded.`)
      : e;
  });
}

/** Make sure that the loaded model has these. */
export async function needAdapters(uses: readonly AdapterUse[]): Promise<void> {
  const { engine } = currentEngine(), known = broughtTo(engine);
  for (const { name } of uses) {
    const coming = known.get(name) ?? bring(engine, name);
    known.set(name, coming);
    await coming.catch((e: unknown) => {
      known.delete(name);
      throw e;
    });
  }
}

/** The engine has this one already: it made it. */
export const hasAdapter = (engine: Engine, name: string): void =>
  void broughtTo(engine).set(name, Promise.resolve());

/** The loaded model forgets it; another may take its name. */
async function letGo(name: string): Promise<void> {
  const state = engineState.peek();
  if (state.kind !== 'ready') return;
  const known = broughtTo(state.engine), coming = known.get(name);
  if (!coming) return;
  known.delete(name);
  await coming;
  await state.engine.adapters.remove(name);
}

/** GGUF, or PEFT's weights with their adapter_config.json: a copy into the library. Says its
 *  name there. */
export async function keepAdapter(weights: File, config?: string): Promise<string> {
  const name = plainName((await store().importFile(weights, {
    copy: true, ...(config !== undefined && { config }),
  })).name);
  await lookInStore();
  notify(`The adapter ${name} is in the library. A conversation’s settings switch it on.`);
  return name;
}

/** One that was made here. */
export async function saveTrained(name: string, gguf: Uint8Array, base: string): Promise<void> {
  await store().importFile(
    new File([gguf as Uint8Array<ArrayBuffer>], `${name}.gguf`), { name, base, copy: true },
  );
  await lookInStore();
}

export const deleteAdapter = (name: string): void => void (question.value = {
  title: `Delete ${name}?`, verb: 'Delete', run: () => deleteNow(name),
  text: 'What it has learned is gone with it. Export it first if you may want it again.',
});

async function deleteNow(name: string): Promise<void> {
  await letGo(name);
  await store().delete(name);
  await lookInStore();
  notify(`Deleted ${name}.`);
}

export async function renameAdapter(name: string, as: string): Promise<void> {
  const wanted = as.trim().replace(/[^A-Za-z0-9._-]+/g, '-');
  if (!wanted || wanted === name) return;
  await letGo(name);
  await store().rename(name, wanted);
  await lookInStore();
}

/** Files that llama.cpp, Ollama and PEFT read. */
export async function exportAdapter(name: string, form: AdapterForm): Promise<void> {
  for (const file of await store().adapterFiles(name, form))
    download(file.name, file.bytes as Uint8Array<ArrayBuffer>, 'application/octet-stream');
}

/** Adapters in GGUF, or PEFT's two files, into the library. */
export async function importAdapters(files: readonly File[]): Promise<void> {
  const config = files.find((f) => f.name.toLowerCase().endsWith('.json'));
  const weights = files.filter((f) => f !== config);
  if (!weights.length)
    throw new Error(
      'An adapter is a GGUF file, or a safetensors file with its adapter_config.json.',
    );
  for (const file of weights) {
    const text =
      file.name.toLowerCase().endsWith('.safetensors') ? await config?.text() : undefined;
    if ((await store().inspect(file, text)).kind !== 'adapter')
      throw new Error(`${file.name} is a model, not an adapter.`);
    await keepAdapter(file, text);
  }
}

/** Names to show: the library's, and those that a conversation uses though they are gone. */
export const adaptersOf = (
  known: readonly { name: string }[], uses: readonly AdapterUse[],
): string[] => [...new Set([...known, ...uses].map((a) => a.name))];
