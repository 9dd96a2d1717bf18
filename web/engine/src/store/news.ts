// news - what tabs tell each other: how far a download is, and that the store has changed.

export interface StoreProgress {
  /** 'waiting': nobody has said how far it is; 'verify': bytes of an earlier attempt are hashed
   *  again. */
  phase: 'waiting' | 'verify' | 'download' | 'copy' | 'merge' | 'done';
  loaded: number;
  total: number;
  /** Another tab does the work. */
  elsewhere?: boolean;
}

type News = { key: string; progress: StoreProgress } | { changed: true };

const NAME = 'bezel:store';
const EVERY = 100; // milliseconds

/** Undefined where there are none, and where the browser refuses storage. */
function open(): BroadcastChannel | undefined {
  try {
    return new BroadcastChannel(NAME);
  } catch {
    return undefined;
  }
}

/** Tell other tabs, and `tell`, how far the work on `key` is; not too often. */
export class Reporter {
  private readonly channel = open();
  private last = -Infinity;

  constructor(
    private readonly key: string, private readonly tell: ((p: StoreProgress) => void) | undefined,
  ) {}

  report(progress: StoreProgress): void {
    const now = performance.now();
    if (now - this.last < EVERY && progress.loaded < progress.total) return;
    this.last = now;
    this.tell?.(progress);
    this.channel?.postMessage({ key: this.key, progress } satisfies News);
  }

  close(): void {
    this.channel?.close();
  }
}

/** Pass on what another tab says of `key`, until the returned function is called. */
export function follow(key: string, tell: ((p: StoreProgress) => void) | undefined): () => void {
  const channel = tell && open();
  if (!channel) return () => {};
  channel.onmessage = ({ data }: MessageEvent<News>) => {
    if ('key' in data && data.key === key) tell({ ...data.progress, elsewhere: true });
  };
  return () => channel.close();
}

export function tellChanged(): void {
  const channel = open();
  channel?.postMessage({ changed: true } satisfies News);
  channel?.close();
}

/** Call back when this or another tab has changed what is in the store; stop with the returned
 *  function. */
export function onStoreChange(changed: () => void): () => void {
  const channel = open();
  if (channel) channel.onmessage = ({ data }: MessageEvent<News>) => 'changed' in data && changed();
  return () => channel?.close();
}
