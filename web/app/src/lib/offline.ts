// offline - the service worker: the whole page, the small model included, without a network; and
// word of updates.

import { registerSW } from 'virtual:pwa-register';
import { notify, notifyError } from '../state/notices';
import { isRefused } from './local';

const HOUR = 3_600_000;

/** A new version waits for the one that is there. The first of all is called waiting too, for a
 *  moment. */
async function isUpdate(): Promise<boolean> {
  const registration = await navigator.serviceWorker.getRegistration();
  return Boolean(registration?.active && registration.waiting);
}

export function keepOffline(): void {
  if (isRefused()) return; // no copy can be kept, and asking is an error
  const offer = () => notify('A new version of Bezel is ready.', {
    stay: true, action: { label: 'Reload', run: () => void update(true) },
  });
  const update = registerSW({
    onNeedRefresh: () => void isUpdate().then((is) => is && offer(), notifyError),
    onRegisteredSW: (_url, registration) => {
      if (registration)
        setInterval(() => navigator.onLine && registration.update().catch(notifyError), HOUR);
    },
    onRegisterError: notifyError,
  });
}
