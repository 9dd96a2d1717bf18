// SelectionMenu - a button beside words that are selected in an answer.

import { busy } from '../state/chat';
import { editing, selected } from '../state/editing';
import { Icon } from './Icon';

const WIDTH = 150; // pixels, about

export function SelectionMenu() {
  const now = selected.value;
  if (!now || busy.value || editing.value) return null;
  const left = Math.max(8, Math.min(now.x - WIDTH / 2, innerWidth - WIDTH - 8));
  return (
    <button class="button small selection-menu" type="button"
      style={{ left: `${left}px`, top: `${Math.min(now.y + 8, innerHeight - 48)}px` }}
      // the words stay selected until it is clicked
      onPointerDown={(e) => e.preventDefault()}
      onClick={() => {
        editing.value = { message: now.message, from: now.from, to: now.to };
        selected.value = null;
      }}>
      <Icon name="swap" size={16} /> Edit in place
    </button>
  );
}
