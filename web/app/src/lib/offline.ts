// offline - the service worker: the whole page, the small model included, without a network; and word of updates.

import { registerSW } from 'virtual:pwa-register';
import { notify, notifyError } from '../state/notices';
import { isRefused } from './local';

const HOUR = 3_600_000;

export function keepOffline(): void {
  if (isRefused()) return; // no copy can be kept, and asking is an error
  const update = registerSW({
    onNeedRefresh: () => notify('A new version of Bezel is ready.', { stay: true, action: { label: 'Reload', run: () => void update(true) } }),
    onRegisteredSW: (_url, registration) => {
      if (registration) setInterval(() => navigator.onLine && registration.update().catch(notifyError), HOUR);
    },
    onRegisterError: notifyError,
  });
}
