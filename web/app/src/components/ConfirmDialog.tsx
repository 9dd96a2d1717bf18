// ConfirmDialog - asks before something is deleted for good.

import { notifyError } from '../state/notices';
import { question, type Question } from '../state/ui';
import { Dialog } from './Dialog';

export function ConfirmDialog({ asked: { title, text, verb, run } }: { asked: Question }) {
  const close = () => (question.value = null);
  const act = () => {
    close();
    run().catch(notifyError);
  };
  return (
    <Dialog title={title} onClose={close}>
      <p>{text}</p>
      <div class="dialog-foot">
        <button class="button" type="button" onClick={close}>Keep it</button>
        <button class="button danger" type="button" onClick={act}>{verb}</button>
      </div>
    </Dialog>
  );
}
