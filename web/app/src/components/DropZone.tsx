// DropZone - a file from the disk, read in place: dropped anywhere in the window, or chosen here.

import { pickKept } from '../lib/files';
import { addFiles } from '../state/models';
import { notifyError } from '../state/notices';
import { Icon } from './Icon';

export function DropZone() {
  const choose = () => pickKept('.gguf,.safetensors,.json')
    .then((files) => (files.length ? addFiles(files) : undefined))
    .catch(notifyError);
  return (
    <div class="drop">
      <Icon name="file" />
      <p>
        Drop a model or an adapter anywhere in this window: GGUF, or safetensors with its
        adapter_config.json.
      </p>
      <button class="button" type="button" onClick={choose}>Choose files</button>
    </div>
  );
}
