// Question - a person's turn: its text, and the place to put it differently.

import { useSignal } from '@preact/signals';
import { placeOf } from '../chat/tree';
import type { Message } from '../chat/types';
import { copyText } from '../lib/files';
import { focused } from '../lib/focus';
import { isComposing } from '../lib/keys';
import { busy, edit, thread } from '../state/chat';
import { ready } from '../state/engine';
import { notify, notifyError } from '../state/notices';
import { Branch } from './Branch';
import { Icon } from './Icon';
import { Markdown } from './Markdown';

function Editor({ message, onDone }: { message: Message; onDone(): void }) {
  const text = useSignal(message.content);
  const canSave = () => text.value.trim() !== '' && ready.value && !busy.value;
  const save = () => {
    if (!canSave()) return;
    onDone();
    void edit(message, text.value);
  };
  return (
    <form class="editor" onSubmit={(e) => { e.preventDefault(); save(); }}>
      <textarea class="input" dir="auto" aria-label="Edit the message" value={text.value}
        ref={focused}
        onInput={(e) => (text.value = e.currentTarget.value)}
        onKeyDown={(e) => {
          if (isComposing(e) || (e.key !== 'Escape' && (e.key !== 'Enter' || e.shiftKey))) return;
          e.preventDefault();
          if (e.key === 'Escape') onDone();
          else save();
        }} />
      <div>
        <button class="button small" type="button" onClick={onDone}>Cancel</button>
        <button class="button small primary" type="submit" disabled={!canSave()}>
          Send as a new version
        </button>
      </div>
    </form>
  );
}

export function Question({ message }: { message: Message }) {
  const editing = useSignal(false);
  const branched = placeOf(thread.value?.value.messages ?? [], message).siblings.length > 1;
  const copy = () => copyText(message.content).then(() => notify('Copied.'), notifyError);
  return (
    <article data-messages={message.id} class={`turn user ${branched ? 'branched' : ''}`}
      aria-label="Question">
      {editing.value ? <Editor message={message} onDone={() => (editing.value = false)} /> : (
        <>
          <div class="bubble"><Markdown text={message.content} done breaks /></div>
          <div class="actions">
            <Branch message={message} />
            <button class="icon-button small" type="button" aria-label="Copy the message"
              title="Copy" onClick={copy}><Icon name="copy" size={18} /></button>
            <button class="icon-button small" type="button" aria-label="Edit the message"
              title="Edit" disabled={busy.value}
              onClick={() => (editing.value = true)}><Icon name="pencil" size={18} /></button>
          </div>
        </>
      )}
    </article>
  );
}
