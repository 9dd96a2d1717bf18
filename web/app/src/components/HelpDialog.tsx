// HelpDialog - the keys.

import { composerKeys, shortcuts } from '../lib/shortcuts';
import { prefs } from '../state/prefs';
import { dialog } from '../state/ui';
import { Dialog } from './Dialog';

const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent);
const name = (key: string) => (isMac && key === 'Ctrl' ? '⌘' : key);

export function HelpDialog() {
  const shown = shortcuts.filter((s) => !s.single || prefs.value.singleKeys);
  return (
    <Dialog title="Keyboard" onClose={() => (dialog.value = 'none')}>
      <dl class="keys">
        {[...composerKeys, ...shown].map(({ keys, does }) => (
          <>
            <dt>{keys.map((key) => <kbd key={key}>{name(key)}</kbd>)}</dt>
            <dd>{does}</dd>
          </>
        ))}
      </dl>
      <p class="hint">Keys without Ctrl work while no field has the cursor; they can be turned off in the settings.</p>
    </Dialog>
  );
}
