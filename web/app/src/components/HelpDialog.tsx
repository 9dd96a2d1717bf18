// HelpDialog - the keys.

import { composerKeys, shortcuts } from '../lib/shortcuts';
import { dialog } from '../state/ui';
import { Dialog } from './Dialog';

const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent);
const macNames: Record<string, string> = { Ctrl: '⌘', Alt: '⌥', Shift: '⇧' };
const name = (key: string) => (isMac && macNames[key]) || key;

export function HelpDialog() {
  return (
    <Dialog title="Keyboard" onClose={() => (dialog.value = 'none')}>
      <dl class="keys">
        {[...composerKeys, ...shortcuts].map(({ keys, does }) => (
          <>
            <dt>{keys.map((key) => <kbd key={key}>{name(key)}</kbd>)}</dt>
            <dd>{does}</dd>
          </>
        ))}
      </dl>
      <p class="hint">What is typed while no field has the cursor goes to the message.</p>
    </Dialog>
  );
}
