// changes - what tabs tell each other about what is kept.

export type Change =
  /** Conversations are others than they were. */
  | { kind: 'changed' }
  | { kind: 'removed'; id: string }
  /** Something happened to the history that a person should know. */
  | { kind: 'note'; note: string }
  /** Everything is about to be deleted: let go of all files. Then: it was. */
  | { kind: 'reset' | 'wasReset' };

/** The note of a browser that keeps nothing. */
export const IN_MEMORY =
  'This window gives the page no lasting storage: conversations end with the tab.';

const NAME = 'bezel-changes';

/** Undefined where the browser has or allows none: then each tab is on its own. */
export function openChannel(name: string): BroadcastChannel | undefined {
  try {
    return new BroadcastChannel(name);
  } catch {
    return undefined;
  }
}

const channel = openChannel(NAME);

export const tellTabs = (change: Change): void => channel?.postMessage(change);

/** Of other tabs, and of this tab's worker. */
export function onTold(hear: (change: Change) => void): void {
  channel?.addEventListener('message', ({ data }: MessageEvent<Change>) => hear(data));
}
