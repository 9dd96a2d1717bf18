// ResetDialog - asks before everything is deleted.

import { notifyError } from '../state/notices';
import { resetEverything } from '../state/space';
import { dialog } from '../state/ui';
import { Dialog } from './Dialog';

export function ResetDialog() {
  const close = () => (dialog.value = 'none');
  return (
    <Dialog title="Reset everything?" onClose={close}>
      <p>
        Conversations, downloaded models and settings in this browser will be deleted. This cannot
        be undone; export your conversations first if you want to keep them.
      </p>
      <div class="dialog-foot">
        <button class="button" type="button" onClick={close}>Keep them</button>
        <button class="button danger" type="button"
          onClick={() => resetEverything().catch(notifyError)}>Delete everything</button>
      </div>
    </Dialog>
  );
}
