// DropZone - a file from the disk: dropped or chosen, read in place.

import { useSignal } from '@preact/signals';
import { pickFiles } from '../lib/files';
import { addFiles } from '../state/models';
import { notifyError } from '../state/notices';
import { Icon } from './Icon';

export function DropZone() {
  const over = useSignal(false);
  const take = (files: File[]) => addFiles(files).catch(notifyError);
  return (
    <div class={`drop ${over.value ? 'over' : ''}`}
      onDragOver={(e) => { e.preventDefault(); over.value = true; }}
      onDragLeave={() => (over.value = false)}
      onDrop={(e) => {
        e.preventDefault();
        over.value = false;
        void take([...(e.dataTransfer?.files ?? [])]);
      }}>
      <Icon name="file" />
      <p>Drop a model or an adapter here: GGUF, or safetensors with its adapter_config.json.</p>
      <button class="button" type="button" onClick={() => pickFiles('.gguf,.safetensors,.json', true).then(take, notifyError)}>Choose files</button>
    </div>
  );
}
