// Verify - a button: all of what is stored is read and compared with what was put there.

import { notifyError } from '../state/notices';
import { verify, verifying } from '../state/shelf';

export function Verify({ name }: { name: string }) {
  const now = verifying.value;
  return (
    <button class="button small" type="button" aria-label={`Verify ${name}`} disabled={now !== null}
      onClick={() => verify(name).catch(notifyError)}>
      {now?.name === name ? `${Math.round(100 * now.share)}%` : 'Verify'}
    </button>
  );
}

/** What a row says of one that was read and is not what was put there. */
export const Damaged = () =>
  <div class="detail">
    Its bytes are not those that were stored. Download or copy it again: that replaces it.
  </div>;
