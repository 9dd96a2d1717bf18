// openai - the protocol of /v1: chat completions, completions, models. The engine speaks it already; here it meets HTTP.

import type { StoredModel } from '../store/source_ref.js';
import { BezelError } from '../wasm.js';
import type { Host, Kind } from './host.js';
import { Gone, HttpError, readJson, sendJson, Stream, type Exchange } from './http.js';

/** What a failure of the engine is in HTTP. */
export function httpStatus(e: unknown): number {
  if (e instanceof HttpError) return e.status;
  if (!(e instanceof BezelError)) return 500;
  switch (e.kind) {
    case 'argument': case 'limit': case 'format': case 'unsupported': return 400;
    case 'not-found': return 404;
    case 'device': case 'memory': return 503;
    default: return 500;
  }
}

export function openaiError(e: unknown): { error: { message: string; type: string; param: null; code: string | null } } {
  const status = httpStatus(e);
  const type = status < 500 ? (status === 404 ? 'not_found_error' : 'invalid_request_error') : 'server_error';
  const code = e instanceof HttpError ? e.code : e instanceof BezelError ? (e.kind === 'limit' ? 'context_length_exceeded' : e.kind) : null;
  return { error: { message: e instanceof Error ? e.message : String(e), type, param: null, code } };
}

const modelObject = (m: StoredModel): object => ({ id: m.name, object: 'model', created: Math.floor((m.modified ?? 0) / 1000), owned_by: 'library' });

export async function listModels(ex: Exchange, host: Host): Promise<void> {
  sendJson(ex, 200, { object: 'list', data: (await host.catalog.list()).map(modelObject) });
}

export async function showModel(ex: Exchange, host: Host, name: string): Promise<void> {
  sendJson(ex, 200, modelObject(await host.find(name)));
}

/** Requests of one program, or of one user of it, share a turn. */
const clientOf = (ex: Exchange, user: unknown): string => (typeof user === 'string' ? `${ex.client} ${user}` : ex.client);

export async function complete(ex: Exchange, host: Host, kind: Kind): Promise<void> {
  const { model, stream, ...request } = await readJson(ex);
  if (model !== undefined && typeof model !== 'string') throw new HttpError(400, '"model" is not a text', 'invalid_model');
  const turn = { client: clientOf(ex, request.user), signal: ex.signal, model };
  if (stream === true) return streamed(ex, host, kind, request, turn);
  await host.use(turn, async ({ engine, entry, signal }) => sendJson(ex, 200, { ...(await engine.answer(kind, request, signal)), model: entry.name }));
}

async function streamed(ex: Exchange, host: Host, kind: Kind, request: Record<string, unknown>, turn: { client: string; signal: AbortSignal; model: string | undefined }): Promise<void> {
  const out = new Stream(ex, 'text/event-stream');
  try {
    await host.use(turn, async ({ engine, entry, signal }) => {
      // The first piece comes before the prompt has been read. It is held back, so that what fails then has a status.
      let held = '';
      for await (const chunk of engine.stream(kind, request, signal)) {
        const event = `data: ${JSON.stringify({ ...chunk, model: entry.name })}\n\n`;
        if (held || out.begun) await out.write(held + event);
        held = out.begun ? '' : event;
      }
      if (held) await out.write(held);
    });
    out.end('data: [DONE]\n\n');
  } catch (e) {
    if (!out.begun || e instanceof Gone || ex.signal.aborted) throw e;
    out.end(`data: ${JSON.stringify(openaiError(e))}\n\n`); // too late for a status
  }
}
