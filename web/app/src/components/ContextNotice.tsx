// ContextNotice - a conversation that fills its context, and the ways on.

import { count, tooLong } from '../lib/format';
import { answering, busy, busyHere } from '../state/chat';
import { notifyError } from '../state/notices';
import { dropOldest, goOnElsewhere, loadWithMore, moreContext, room } from '../state/room';
import { Icon } from './Icon';

export function ContextNotice() {
  const now = room.value;
  if (!now || now.kind === 'plenty' || busyHere.value) return null;
  const act = (does: () => Promise<void>) => () => void does().catch(notifyError);
  const full = now.kind === 'none';
  return (
    <div class={`banner ${full ? '' : 'quiet'}`} role="status">
      <Icon name="warn" />
      <p>
        {full
          ? tooLong(now.used, now.total)
          : `This conversation fills ${Math.round((100 * now.used) / now.total)}% of the context: `
            + `${count(now.used)} of ${count(now.total)} tokens.`}
      </p>
      <span class="row">
        <button class="button small" type="button" disabled={busy.value}
          title="They stay in the conversation; the model does not read them any more."
          onClick={act(dropOldest)}>Drop the oldest turns</button>
        <button class="button small" type="button" disabled={busy.value}
          onClick={act(goOnElsewhere)}>New chat with a summary</button>
        {moreContext.value > 0 && <button class="button small" type="button" disabled={busy.value}
          title={`Room for ${count(moreContext.value)} tokens`}
          onClick={act(loadWithMore)}>Load with more context</button>}
      </span>
    </div>
  );
}

/** One answer is written at a time: whose, and the way there. */
export function BusyNotice() {
  const other = answering.value;
  if (!other || busyHere.value) return null;
  return (
    <div class="banner quiet" role="status">
      <span class="dot busy" />
      <p>“<span dir="auto">{other.title}</span>” is being answered.</p>
      <a class="button small" href={`#/c/${other.id}`}>Show it</a>
    </div>
  );
}
