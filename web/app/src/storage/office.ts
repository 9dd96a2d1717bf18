// office - one history for all tabs. SQLite on OPFS has one owner at a time: the tab that holds a
// lock opens the file, the others send it their questions over a channel. When it goes, the next
// one takes over and what was not answered is asked again; every change is an upsert or a delete,
// so asking twice does no harm.

import { newId } from '../lib/id';
import { openChannel } from './changes';

type Answer = (method: string, args: unknown[]) => Promise<unknown>;
type Mail =
  | { kind: 'who' }
  | { kind: 'owner' }
  | { kind: 'ask'; from: string; n: number; method: string; args: unknown[] }
  | { kind: 'answer'; to: string; n: number; value?: unknown; error?: string };

interface Pending {
  method: string;
  args: unknown[];
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** Held by the tab that has the history's file open. */
export const HISTORY_LOCK = 'bezel-history';

export class Office {
  private readonly me = newId();
  private readonly channel = openChannel('bezel-history');
  private readonly pending = new Map<number, Pending>();
  private answer: Answer | null = null;
  private next = 0;

  /** `open` runs when this tab becomes the owner. */
  constructor(open: () => Promise<Answer>) {
    this.channel?.addEventListener('message', (event: MessageEvent<Mail>) =>
      this.receive(event.data));
    const own = async (): Promise<void> => {
      try {
        this.answer = await open();
      } catch (e) {
        this.answer = () => Promise.reject(e as Error);
      }
      for (const n of [...this.pending.keys()]) this.dispatch(n);
      this.post({ kind: 'owner' });
    };
    const owning = async (): Promise<void> => {
      await own();
      await new Promise(() => {}); // until the tab goes
    };
    // A browser that refuses storage refuses locks as well: then each tab is on its own.
    const locked = async (): Promise<void> => navigator.locks.request(HISTORY_LOCK, owning);
    locked().catch(own);
    this.post({ kind: 'who' });
  }

  ask(method: string, args: unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const n = this.next++;
      this.pending.set(n, { method, args, resolve, reject });
      this.dispatch(n);
    });
  }

  private post(mail: Mail): void {
    this.channel?.postMessage(mail);
  }

  private dispatch(n: number): void {
    const p = this.pending.get(n);
    if (!p) return;
    if (!this.answer)
      return this.post({ kind: 'ask', from: this.me, n, method: p.method, args: p.args });
    this.pending.delete(n);
    this.answer(p.method, p.args).then(p.resolve, p.reject);
  }

  private receive(mail: Mail): void {
    if (mail.kind === 'who' && this.answer) this.post({ kind: 'owner' });
    else if (mail.kind === 'owner' && !this.answer)
      for (const n of this.pending.keys()) this.dispatch(n);
    else if (mail.kind === 'ask' && this.answer) {
      const { from: to, n } = mail;
      this.answer(mail.method, mail.args).then(
        (value) => this.post({ kind: 'answer', to, n, value }),
        (e: unknown) =>
          this.post({ kind: 'answer', to, n, error: e instanceof Error ? e.message : String(e) }),
      );
    } else if (mail.kind === 'answer' && mail.to === this.me) {
      const p = this.pending.get(mail.n);
      this.pending.delete(mail.n);
      if (mail.error !== undefined) p?.reject(new Error(mail.error));
      else p?.resolve(mail.value);
    }
  }
}
