// lines - a change that is told in JSON lines while it goes on, as Ollama tells it; or in one
// object at its end.

import type { PullStatus } from '../pull/pull.js';
import { Gone, sendJson, Stream, type Exchange } from './http.js';
import { ollamaError } from './ollama.js';

const TICK = 60; // milliseconds between two lines of the same thing

/** The newest line of each thing, as fast as they are read. */
class Lines {
  private readonly queue: PullStatus[] = [];
  private pumping: Promise<void> | undefined;

  constructor(private readonly out: Stream) {}

  tell(line: PullStatus): void {
    const last = this.queue.at(-1);
    if (last?.status === line.status && last.digest === line.digest) this.queue.pop();
    this.queue.push(line);
    this.pumping ??= this.pump();
  }

  private async pump(): Promise<void> {
    try {
      for (let line = this.queue.shift(); line; line = this.queue.shift()) {
        await this.out.write(`${JSON.stringify(line)}\n`);
        if (line.completed !== undefined && line.completed !== line.total)
          await new Promise((done) => setTimeout(done, TICK));
      }
    } catch (e) {
      if (!(e instanceof Gone)) throw e; // the signal of the request ends the work
    } finally {
      this.pumping = undefined;
    }
  }

  async end(): Promise<void> {
    while (this.pumping) await this.pumping;
  }
}

/** Does the work; its last status is `success`. */
export async function tellWork(
  ex: Exchange, stream: boolean, work: (tell: (line: PullStatus) => void) => Promise<void>,
): Promise<void> {
  if (!stream) {
    await work(() => {});
    sendJson(ex, 200, { status: 'success' });
    return;
  }
  const out = new Stream(ex, 'application/x-ndjson'), lines = new Lines(out);
  try {
    await work((line) => lines.tell(line));
    await lines.end();
    out.end();
  } catch (e) {
    await lines.end();
    out.giveUp();
    if (!out.begun || e instanceof Gone || ex.signal.aborted) throw e;
    out.end(`${JSON.stringify(ollamaError(ex.tell(e)))}\n`);
  }
}
