// Branch - "2/3": which of several versions is shown, and the way to the others.

import { placeOf } from '../chat/tree';
import type { Message } from '../chat/types';
import { busyHere, select, thread } from '../state/chat';
import { notifyError } from '../state/notices';
import { Icon } from './Icon';

export function Branch({ message }: { message: Message }) {
  const { index, siblings } = placeOf(thread.value?.value.messages ?? [], message);
  if (siblings.length < 2) return null;
  const show = (to: number) => {
    const sibling = siblings[to];
    if (sibling) select(sibling).catch(notifyError);
  };
  return (
    <span class="branch" role="group" aria-label="Versions">
      <button class="icon-button small" type="button" aria-label="Previous version"
        disabled={index === 0 || busyHere.value}
        onClick={() => show(index - 1)}><Icon name="left" size={16} /></button>
      <span aria-label={`Version ${index + 1} of ${siblings.length}`} role="img">
        {index + 1}/{siblings.length}
      </span>
      <button class="icon-button small" type="button" aria-label="Next version"
        disabled={index === siblings.length - 1 || busyHere.value}
        onClick={() => show(index + 1)}><Icon name="right" size={16} /></button>
    </span>
  );
}
