// openai - the protocol of /v1: chat completions, completions, models. The engine speaks it
// already; here it meets HTTP.

import type { StoredModel } from '../store/source_ref.js';
import { withoutEffect } from '../api/completions_extras.js';
import { readChat, readCompletion } from '../api/completions_request.js';
import type { ChatRequest, CompletionRequest } from '../api/completions_types.js';
import { BezelError } from '../engine/wasm.js';
import { bounded } from './bounds.js';
import type { Host, Kind, Request, Turn } from './host.js';
import { Gone, HttpError, readJson, sendJson, Stream, type Exchange } from './http.js';

/** What a failure of the engine is in HTTP. */
export function httpStatus(e: unknown): number {
  if (e instanceof HttpError) return e.status;
  if (!(e instanceof BezelError)) return 500;
  switch (e.kind) {
    case 'argument': case 'limit': case 'format': case 'unsupported': return 400;
    case 'not-found': return 404;
    case 'device': case 'memory': case 'cancelled': return 503;
    default: return 500;
  }
}

/** Which of the request's values the core's sentence is about. */
const placeIn = (message: string): string | null =>
  /^(messages|tools)\[\d+\]/.exec(message)?.[0] ?? null;

export function openaiError(
  e: unknown,
): { error: { message: string; type: string; param: string | null; code: string | null } } {
  const status = httpStatus(e);
  const type =
    status < 500 ? (status === 404 ? 'not_found_error' : 'invalid_request_error') : 'server_error';
  const code = e instanceof HttpError
    ? e.code
    : e instanceof BezelError ? (e.kind === 'limit' ? 'context_length_exceeded' : e.kind) : null;
  const param = e instanceof HttpError
    ? e.param
    : e instanceof BezelError ? (e.param ?? placeIn(e.message)) : null;
  return { error: { message: e instanceof Error ? e.message : String(e), type, param, code } };
}

const modelObject = (m: StoredModel): object => ({
  id: m.name, object: 'model', created: Math.floor((m.modified ?? 0) / 1000), owned_by: 'library',
});

export async function listModels(ex: Exchange, host: Host): Promise<void> {
  sendJson(ex, 200, { object: 'list', data: (await host.catalog.list()).map(modelObject) });
}

export async function showModel(ex: Exchange, host: Host, name: string): Promise<void> {
  sendJson(ex, 200, modelObject(await host.find(name)));
}

/** Requests of one program, or of one user of it, share a turn. */
const clientOf = (ex: Exchange, user: unknown): string =>
  (typeof user === 'string' ? `${ex.client} ${user}` : ex.client);

const LONGEST_NAME = 1024; // of a session: it is kept for as long as what was computed in it

/** For the engine; what has no effect there is not kept while the request waits.
 *  What was computed for one client is of no use to another: not its tokens, and not the count of
 *  those that are the same. A session's name means something to the client that chose it. */
export function scoped(ex: Exchange, { session, ...request }: Request): Request {
  const isName = typeof session === 'string' && session.length <= LONGEST_NAME;
  if (session !== undefined && session !== null && !isName) {
    const what = `"session" must be the name of a session, of ${LONGEST_NAME} characters at most`;
    throw new HttpError(400, what, 'invalid_session', {}, 'session');
  }
  for (const name of withoutEffect) delete (request as Record<string, unknown>)[name];
  return { ...request, prompt_cache_key: session ? `${ex.scope} ${session}` : ex.scope };
}

/** Throws what is wrong with a request while there is a status to say so with. */
export function check(kind: Kind, request: Request): void {
  if (kind === 'chat')
    readChat(request as unknown as ChatRequest, { system: null, messages: [], stop: [] });
  else if (request.prompt === undefined || request.prompt === null)
    throw new HttpError(400, '"prompt" is missing', 'missing_prompt', {}, 'prompt');
  else readCompletion(request as unknown as CompletionRequest);
}

export async function complete(ex: Exchange, host: Host, kind: Kind): Promise<void> {
  const { model, stream, ...rest } = await readJson(ex);
  if (model !== undefined && model !== null && typeof model !== 'string')
    throw new HttpError(400, '"model" is not a text', 'invalid_model', {}, 'model');
  if (stream !== undefined && stream !== null && typeof stream !== 'boolean')
    throw new HttpError(400, '"stream" is true or false', 'invalid_stream', {}, 'stream');
  const turn = {
    client: clientOf(ex, rest.user), household: ex.household, signal: ex.signal,
    model: model ?? undefined,
  };
  const request = scoped(ex, rest);
  const entry = await host.find(turn.model);
  check(kind, bounded(request, host.contextOf(entry)));
  if (stream === true) return streamed(ex, host, kind, request, turn);
  await host.use(turn, async ({ engine, entry, signal }) =>
    sendJson(ex, 200, { ...(await engine.answer(kind, request, signal)), model: entry.name }));
}

async function streamed(
  ex: Exchange, host: Host, kind: Kind, request: Request, turn: Turn,
): Promise<void> {
  const out = new Stream(ex, 'text/event-stream');
  try {
    await host.use({ ...turn, onWait: out.begin }, async ({ engine, entry, signal }) => {
      for await (const chunk of engine.stream(kind, request, signal))
        await out.write(`data: ${JSON.stringify({ ...chunk, model: entry.name })}\n\n`);
    });
    out.end('data: [DONE]\n\n');
  } catch (e) {
    out.giveUp();
    if (!out.begun || e instanceof Gone || ex.signal.aborted) throw e;
    out.end(`data: ${JSON.stringify(openaiError(ex.tell(e)))}\n\n`); // too late for a status
  }
}
