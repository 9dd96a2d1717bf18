// archive - the file that export writes, as import reads it: bytes in, checked conversations or one
// sentence out. Nothing of a file reaches the history or the screen unchecked. Knows no page, no
// worker and no database.

import { toFrames } from './canvas';
import { jsonKinds } from './json';
import { newestLeaf, parentsWithoutCircles } from './tree';
import {
  defaultSettings, type Archive, type ChatSettings, type Conversation, type Message, type Stats,
  type Thread, type ToolCall,
} from './types';

const LARGEST = 256e6; // bytes; a year of daily use is a few megabytes
const NOT_ONE = 'That file is not an export of Bezel conversations.';

type Fields = Record<string, unknown>;
const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/** Lone surrogates and NUL do not survive a database. */
const text = (value: unknown): string =>
  (typeof value === 'string' ? value.replaceAll('\0', '\ufffd').toWellFormed() : '');
const isNumber = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value);
const count = (value: unknown): number => (isNumber(value) && value >= 0 ? value : 0);
const between = (value: unknown, low: number, high: number): number | null =>
  (isNumber(value) && value >= low && value <= high ? value : null);
const whole = (value: unknown, low: number, high: number): number | null =>
  (Number.isInteger(value) ? between(value, low, high) : null);
/** A time that has been; anything else is now, so that no file stays on top of the list for
 *  ever. */
const time = (value: unknown, now: number): number =>
  (isNumber(value) && value >= 0 && value <= now ? Math.trunc(value) : now);

/** Ids are parts of addresses and of file names. One that cannot be gets another, the same at
 *  each import. */
export function safeId(id: string): string {
  if (/^[A-Za-z0-9_-]{1,64}$/.test(id)) return id;
  let [a, b] = [0xdeadbeef, 0x41c6ce57];
  for (let i = 0; i < id.length; i++) {
    const c = id.charCodeAt(i);
    a = Math.imul(a ^ c, 2654435761);
    b = Math.imul(b ^ c, 1597334677);
  }
  const hex = (n: number) => (n >>> 0).toString(16).padStart(8, '0');
  return `i-${hex(a)}${hex(b)}-${id.length}`;
}

/** Where an import had to change ids the messages are not found, which is told when they are
 *  wanted. */
function toSource(value: unknown): ChatSettings['summaryOf'] {
  const source = isObject(value)
    ? {
      conversation: text(value['conversation']), from: text(value['from']), to: text(value['to']),
    }
    : null;
  return source?.conversation && source.from && source.to ? source : null;
}

function toSettings(value: unknown): ChatSettings {
  if (!isObject(value)) return defaultSettings;
  const uses = list(value['adapters']).filter(isObject).map((a) =>
    ({ name: text(a['name']), scale: between(a['scale'], -16, 16) ?? 1 }));
  return {
    system: text(value['system']),
    thinking: value['thinking'] === true,
    tools: value['tools'] === true,
    temperature: between(value['temperature'], 0, 5),
    topP: between(value['topP'], 0, 1),
    topK: whole(value['topK'], 0, 1e6),
    minP: between(value['minP'], 0, 1),
    maxTokens: whole(value['maxTokens'], 1, 1e6),
    seed: whole(value['seed'], 0, Number.MAX_SAFE_INTEGER),
    steps: whole(value['steps'], 1, 1024),
    json: jsonKinds.find((kind) => kind === value['json']) ?? 'off',
    schema: text(value['schema']),
    from: typeof value['from'] === 'string' ? value['from'] : null,
    summaryOf: toSource(value['summaryOf']),
    adapters: uses.filter((a) => a.name !== ''),
  };
}

/** Calls without a name cannot be shown or answered. */
function toCalls(value: unknown): ToolCall[] {
  const calls = list(value).filter(isObject).map((c) =>
    ({ id: text(c['id']), name: text(c['name']), arguments: text(c['arguments']) }));
  return calls.filter((c) => c.name !== '');
}

/** Statistics are shown together or not at all. */
function toStats(value: unknown): Stats | null {
  if (!isObject(value)) return null;
  const { promptTokens, cachedTokens, tokens, firstToken, tokensPerSecond, steps, model, backend } =
    value;
  if (!isNumber(tokens) || !isNumber(firstToken) || !isNumber(tokensPerSecond)) return null;
  return {
    promptTokens: count(promptTokens), cachedTokens: count(cachedTokens), tokens: count(tokens),
    firstToken: count(firstToken),
    tokensPerSecond: count(tokensPerSecond), steps: count(steps), model: text(model),
    backend: backend === 'gpu' ? 'gpu' : 'cpu',
  };
}

const roles = ['user', 'assistant', 'tool'] as const;
const states = ['streaming', 'stopped', 'error'] as const;

/** null: it cannot be a message. The history's rows are checked by the same rules: a disk may
 *  lie as a file does. */
export function toMessage(m: unknown, conversation: string, now: number): Message | null {
  if (!isObject(m) || typeof m['id'] !== 'string' || m['id'] === '') return null;
  const role = roles.find((r) => r === m['role']);
  if (!role) return null;
  return {
    id: m['id'], conversation, parent: typeof m['parent'] === 'string' ? m['parent'] : null, role,
    content: text(m['content']), reasoning: text(m['reasoning']),
    toolCalls: toCalls(m['toolCalls']),
    toolCallId: text(m['toolCallId']), toolName: text(m['toolName']),
    state: states.find((s) => s === m['state']) ?? 'done',
    note: text(m['note']), stats: toStats(m['stats']),
    frames: toFrames(m['frames']), created: time(m['created'], now),
  };
}

/** null: it cannot be a conversation. */
export function toConversation(c: unknown, now: number): Conversation | null {
  if (!isObject(c) || typeof c['id'] !== 'string' || c['id'] === '') return null;
  const title = text(c['title']).trim().replace(/\s+/g, ' ').slice(0, 200);
  return {
    id: c['id'], title: title || 'Imported', created: time(c['created'], now),
    updated: time(c['updated'], now),
    leaf: typeof c['leaf'] === 'string' ? c['leaf'] : null, settings: toSettings(c['settings']),
    savedFor: '',
  };
}

/** Parents that are there and lead to a beginning, an end that is there. */
export function wellFormed({ conversation, messages }: Thread): Thread {
  const parents = parentsWithoutCircles(messages);
  const rooted = messages.map((m) => ({ ...m, parent: parents.get(m.id) ?? null }));
  const leaf = parents.has(conversation.leaf ?? '') ? conversation.leaf : newestLeaf(rooted, null);
  return { conversation: { ...conversation, leaf }, messages: rooted };
}

function toThread(value: unknown, now: number, taken: Set<string>): Thread {
  const conversation = isObject(value) ? toConversation(value['conversation'], now) : null;
  if (!isObject(value) || !conversation || !Array.isArray(value['messages']))
    throw new Error(NOT_ONE);
  const id = safeId(conversation.id);
  // of messages, as the file has them and as they are called here
  const names = new Map<string, string>();
  const found: Message[] = [];
  for (const one of value['messages']) {
    const message = toMessage(one, id, now);
    if (!message) throw new Error(NOT_ONE);
    if (names.has(message.id)) continue; // twice the same: the first one counts
    let name = safeId(message.id);
    // another conversation of the file has it
    if (taken.has(name)) name = safeId(`${id}/${message.id}`);
    if (taken.has(name)) continue;
    taken.add(name);
    names.set(message.id, name);
    found.push(message);
  }
  const renamed = (of: string | null) => (of === null ? null : (names.get(of) ?? null));
  return wellFormed({
    conversation: {
      ...conversation,
      id,
      leaf: renamed(conversation.leaf),
      settings: { ...conversation.settings, from: renamed(conversation.settings.from) },
    },
    messages: found.map((m) => ({ ...m, id: names.get(m.id) ?? m.id, parent: renamed(m.parent) })),
  });
}

/** The conversations of an exported file; throws an Error of one sentence where it is something
 *  else. */
export function readArchive(file: Uint8Array, now = Date.now()): Archive {
  if (file.byteLength > LARGEST)
    throw new Error(
      `That file has ${Math.round(file.byteLength / 1e6)} MB; an export of Bezel conversations has `
        + `at most ${LARGEST / 1e6}.`,
    );
  let data: unknown;
  try {
    data = JSON.parse(new TextDecoder().decode(file));
  } catch {
    throw new Error(NOT_ONE); // no JSON, or nested beyond reason
  }
  if (!isObject(data) || data['format'] !== 'bezel-conversations'
    || !Array.isArray(data['threads']))
    throw new Error(NOT_ONE);
  if (data['version'] !== 1)
    throw new Error('That export was written by a newer version of Bezel.');
  const taken = new Set<string>(), threads = new Map<string, Thread>();
  for (const one of data['threads']) {
    const thread = toThread(one, now, taken), { id } = thread.conversation;
    if (!threads.has(id)) threads.set(id, thread); // twice the same: the first one counts
  }
  return { format: 'bezel-conversations', version: 1, threads: [...threads.values()] };
}
