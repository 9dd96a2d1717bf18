// AdapterRows - the library of adapters: rename, export, merge, delete. Conversations switch them
// on in their settings.

import { useSignal } from '@preact/signals';
import type { AdapterForm } from 'bezel';
import { pickFiles } from '../lib/files';
import { bytes } from '../lib/format';
import {
  deleteAdapter, exportAdapter, importAdapters, library, renameAdapter,
} from '../state/adapters';
import { startWith } from '../state/chat';
import { mergeDialog } from '../state/merge';
import { notifyError } from '../state/notices';
import { Icon } from './Icon';
import { Damaged, Verify } from './Verify';

function Name({ name, damaged }: { name: string; damaged: boolean | undefined }) {
  const editing = useSignal(false);
  const rename = (e: Event) => {
    e.preventDefault();
    const as = new FormData(e.currentTarget as HTMLFormElement).get('name');
    editing.value = false;
    renameAdapter(name, String(as)).catch(notifyError);
  };
  if (!editing.value)
    return (
      <div class="title">
        {name}
        <button class="icon-button small" type="button" aria-label={`Rename ${name}`}
          onClick={() => (editing.value = true)}><Icon name="pencil" size={16} /></button>
        {damaged && <span class="badge bad">damaged</span>}
      </div>
    );
  return (
    <form class="row" onSubmit={rename}
      onKeyDown={(e) => e.key === 'Escape' && (editing.value = false)}>
      <input class="input select" name="name" aria-label={`New name of ${name}`} defaultValue={name}
        required pattern="[A-Za-z0-9][A-Za-z0-9._\-]*" autoFocus />
      <button class="button small" type="submit">Rename</button>
    </form>
  );
}

function Uses({ name }: { name: string }) {
  const save = (form: AdapterForm) => exportAdapter(name, form).catch(notifyError);
  return (
    <>
      <button class="button small" type="button"
        onClick={() => startWith({ adapters: [{ name, scale: 1 }] })}>
        Talk<span class="visually-hidden"> with {name}</span>
      </button>
      <button class="button small" type="button" aria-label={`Export ${name} as GGUF`}
        onClick={() => save('gguf')}><Icon name="download" size={16} /> GGUF</button>
      <button class="button small" type="button" aria-label={`Export ${name} as PEFT`}
        onClick={() => save('peft')}><Icon name="download" size={16} /> PEFT</button>
      <button class="button small" type="button" aria-label={`Merge ${name} into a model`}
        onClick={() => (mergeDialog.value = name)}>
        <Icon name="download" size={16} /> Merged model
      </button>
    </>
  );
}

const importPicked = () => pickFiles('.gguf,.safetensors,.json', true)
  .then((files) => (files.length ? importAdapters(files) : undefined))
  .catch(notifyError);

/** `always`: also where there is none yet. */
export function AdapterRows({ always = false }: { always?: boolean }) {
  if (!library.value.length && !always) return null;
  return (
    <section class="section">
      <h2>Adapters</h2>
      {library.value.length > 0 && (
        <ul class="card rows">
          {library.value.map(({ name, size, base, damaged }) => (
            <li key={name}>
              <div class="grow">
                <Name name={name} damaged={damaged} />
                <div class="detail">
                  {[bytes(size), base && `made for ${base}`].filter(Boolean).join(' · ')}
                </div>
                {damaged && <Damaged />}
              </div>
              <div class="tools">
                {!damaged && <Uses name={name} />}
                <Verify name={name} />
                <button class="icon-button small" type="button" aria-label={`Delete ${name}`}
                  onClick={() => deleteAdapter(name)}><Icon name="trash" size={18} /></button>
              </div>
            </li>
          ))}
        </ul>
      )}
      {always && <div class="row">
        <button class="button small" type="button" onClick={importPicked}>
          <Icon name="file" size={16} /> Import an adapter
        </button>
      </div>}
    </section>
  );
}
