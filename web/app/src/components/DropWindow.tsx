// DropWindow - files may be dropped anywhere: models and adapters are read, exported conversations
// imported.

import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { dropped } from '../lib/files';
import { takeDropped } from '../state/arrivals';
import { notifyError } from '../state/notices';
import { Icon } from './Icon';

const hasFiles = (e: DragEvent) => e.dataTransfer?.types.includes('Files') ?? false;

export function DropWindow() {
  const over = useSignal(false);
  useEffect(() => {
    const ending = new AbortController(), { signal } = ending;
    const on = (
      name: 'dragenter' | 'dragover' | 'dragleave' | 'drop', act: (e: DragEvent) => void,
    ) =>
      addEventListener(name, (e) => hasFiles(e) && act(e), { signal });
    const show = (e: DragEvent) => {
      over.value = !e.defaultPrevented; // a field takes some files itself
      e.preventDefault(); // else the browser leaves the page for the file
    };
    on('dragenter', show);
    on('dragover', show);
    on('dragleave', (e) => (over.value = e.relatedTarget !== null)); // null: out of the window
    on('drop', (e) => {
      over.value = false;
      if (e.defaultPrevented) return;
      e.preventDefault();
      if (e.dataTransfer) dropped(e.dataTransfer).then(takeDropped).catch(notifyError);
    });
    return () => ending.abort();
  }, []);
  if (!over.value) return null;
  return (
    <div class="drop-window">
      <p><Icon name="file" /> Drop a model, an adapter or exported conversations</p>
    </div>
  );
}
