// Notices - short messages, and the region that screen readers listen to.

import { dismiss, notices, spoken } from '../state/notices';
import { Icon } from './Icon';

/** They have a place of their own in the page: nothing that can be clicked lies below them. */
export function Notices() {
  return (
    <div class="notices" role="status">
      {notices.value.map((notice) => (
        <div key={notice.id} class={`notice ${notice.tone}`}>
          <p>{notice.text}</p>
          {notice.action && (
            <button class="button small" type="button"
              onClick={() => { dismiss(notice.id); notice.action?.run(); }}>
              {notice.action.label}
            </button>
          )}
          <button class="icon-button small" type="button" aria-label="Dismiss"
            onClick={() => dismiss(notice.id)}><Icon name="close" size={16} /></button>
        </div>
      ))}
    </div>
  );
}

export function Spoken() {
  return (
    <div class="visually-hidden" role="log" aria-live="polite" aria-label="Answer">
      {spoken.value.map((line) => <p key={line.id}>{line.text}</p>)}
    </div>
  );
}
