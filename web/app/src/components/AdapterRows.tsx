// AdapterRows - the library of adapters: rename, export, delete. Conversations switch them on in their settings.

import { useSignal } from '@preact/signals';
import { bytes } from '../lib/format';
import { deleteAdapter, exportAdapter, library, renameAdapter } from '../state/adapters';
import { notifyError } from '../state/notices';
import { Icon } from './Icon';

function Name({ name }: { name: string }) {
  const editing = useSignal(false);
  const rename = (e: Event) => {
    e.preventDefault();
    const as = new FormData(e.currentTarget as HTMLFormElement).get('name');
    editing.value = false;
    renameAdapter(name, String(as)).catch(notifyError);
  };
  if (!editing.value) return <div class="title">{name}<button class="icon-button small" type="button" aria-label={`Rename ${name}`} onClick={() => (editing.value = true)}><Icon name="pencil" size={16} /></button></div>;
  return (
    <form class="row" onSubmit={rename} onKeyDown={(e) => e.key === 'Escape' && (editing.value = false)}>
      <input class="input select" name="name" aria-label={`New name of ${name}`} defaultValue={name} required pattern="[A-Za-z0-9][A-Za-z0-9._\-]*" autoFocus />
      <button class="button small" type="submit">Rename</button>
    </form>
  );
}

export function AdapterRows() {
  if (!library.value.length) return null;
  return (
    <section class="section">
      <h2>Adapters</h2>
      <ul class="card rows">
        {library.value.map(({ name, size }) => (
          <li key={name}>
            <div class="grow"><Name name={name} /><div class="detail">{bytes(size)}</div></div>
            <div class="tools">
              <button class="button small" type="button" aria-label={`Export ${name}`} onClick={() => exportAdapter(name).catch(notifyError)}><Icon name="download" size={16} /> Export</button>
              <button class="icon-button small" type="button" aria-label={`Delete ${name}`} onClick={() => deleteAdapter(name).catch(notifyError)}><Icon name="trash" size={18} /></button>
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}
