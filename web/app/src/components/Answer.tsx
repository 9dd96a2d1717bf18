// Answer - a model's turn: its thoughts, the tools it called, what it says, and how that went.

import { useSignal } from '@preact/signals';
import { asCode, isJson } from '../chat/json';
import { live } from '../chat/live';
import { placeOf, type Turn } from '../chat/tree';
import type { Message, Stats, ToolCall } from '../chat/types';
import { copyText } from '../lib/files';
import { count, duration, speed } from '../lib/format';
import { busy, conversation, regenerate, resume, thread } from '../state/chat';
import { canEdit, editing } from '../state/editing';
import { ready } from '../state/engine';
import { notify, notifyError } from '../state/notices';
import { room } from '../state/room';
import { Branch } from './Branch';
import { Denoising, Steps } from './Canvas';
import { EditPanel } from './EditPanel';
import { Gem, Icon } from './Icon';
import { Markdown } from './Markdown';

function Thinking({ text, now }: { text: string; now: boolean }) {
  return (
    <details class="thinking">
      <summary>
        <Icon name="spark" size={18} /> {now ? 'Thinking…' : 'Thoughts'}
        <span class="chevron"><Icon name="down" size={16} /></span>
      </summary>
      <div tabIndex={0} role="region" aria-label="Thoughts">
        <Markdown text={text} done={!now} />
      </div>
    </details>
  );
}

function ToolView({ call, result }: { call: ToolCall; result: string | undefined }) {
  return (
    <details class="tool">
      <summary>
        <Icon name="wrench" size={18} /> {call.name} <code>{call.arguments}</code>
        <span class="chevron"><Icon name="down" size={16} /></span>
      </summary>
      <dl>
        <div><dt>Asked</dt><dd><pre>{call.arguments}</pre></dd></div>
        <div><dt>Result</dt><dd><pre>{result ?? 'Not run.'}</pre></dd></div>
      </dl>
    </details>
  );
}

const wantsJson = () => (conversation.value?.settings.json ?? 'off') !== 'off';

/** Markdown, or JSON. */
function Content({ text, writing }: { text: string; writing: boolean }) {
  const json = isJson(text, writing, wantsJson());
  return <Markdown text={json ? asCode(text) : text} done={!writing} />;
}

function waitingText(): string {
  const read = live.value?.read;
  return read && read.total > read.done
    ? `Reading ${count(read.done)} of ${count(read.total)} tokens…`
    : 'Reading…';
}

function Part({ message, results }: { message: Message; results: Map<string, string> }) {
  const writing = live.value?.message.id === message.id ? live.value : null;
  const shown = writing?.message ?? message, wish = editing.value;
  if (!writing && wish?.message === message.id)
    return <EditPanel key={message.id} message={message} wish={wish} />;
  return (
    <>
      {shown.reasoning && <Thinking text={shown.reasoning}
        now={writing !== null && !shown.content && !shown.toolCalls.length} />}
      {shown.content && <div data-content={writing ? undefined : message.id}>
        <Content key={message.id} text={shown.content} writing={writing !== null} />
      </div>}
      {writing?.canvas && <Denoising frame={writing.canvas} />}
      {shown.toolCalls.map((call) =>
        <ToolView key={call.id} call={call} result={results.get(call.id)} />)}
      {writing && !writing.canvas && !shown.content && !shown.reasoning && !shown.toolCalls.length
        && <p class="waiting">{waitingText()}</p>}
      {!writing && message.state !== 'done' && <Interrupted message={message} />}
    </>
  );
}

const reasons = {
  streaming: 'The page closed before the answer was finished.',
  stopped: 'Stopped.',
  error: 'The answer failed.',
  done: '',
};

function Interrupted({ message }: { message: Message }) {
  // without room nothing comes of it, and JSON is written from its beginning
  const canGoOn =
    !busy.value && ready.value && !message.toolCalls.length && room.value?.kind !== 'none'
      && !(message.content && wantsJson());
  return (
    <p class={`interrupted ${message.state === 'error' ? 'bad' : ''}`}>
      {message.note || reasons[message.state]}
      {canGoOn && <button class="button small" type="button" onClick={() => resume(message)}>
        <Icon name="play" size={16} /> Continue
      </button>}
    </p>
  );
}

const StatsLine = ({ stats }: { stats: Stats }) => (
  <span class="stats"
    title={`${stats.model} on the ${stats.backend.toUpperCase()}; prompt of `
      + `${count(stats.promptTokens)} tokens, ${count(stats.cachedTokens)} of them known already`}>
    {speed(stats.tokensPerSecond)} tok/s · first
    token {duration(stats.firstToken)} · {count(stats.tokens)} tokens
    {stats.steps > 0 && ` in ${count(stats.steps)} steps`}
  </span>
);

export function Answer({ turn, last }: { turn: Turn; last: boolean }) {
  const results =
    new Map(turn.messages.filter((m) => m.role === 'tool').map((m) => [m.toolCallId, m.content]));
  const parts = turn.messages.filter((m) => m.role === 'assistant');
  const open = useSignal(false);
  const first = turn.messages[0], end = parts.at(-1);
  if (!first || !end) return null;
  const writing = parts.some((m) => m.id === live.value?.message.id);
  const frames = parts.find((m) => m.frames)?.frames ?? null;
  // of an answer after calls the last part alone may have versions
  const all = thread.value?.value.messages ?? [];
  const branched = parts.find((m) => placeOf(all, m).siblings.length > 1) ?? first;
  const copy = () => copyText(parts.map((m) => m.content).join('\n\n').trim()).then(
    () => notify('Copied.'), notifyError,
  );
  return (
    <article data-messages={turn.messages.map((m) => m.id).join(' ')} class="turn assistant"
      aria-label="Answer" aria-busy={writing}>
      <Gem size={24} class={writing ? 'busy' : ''} />
      <div class="answer">
        {parts.map((message) => <Part key={message.id} message={message} results={results} />)}
        {!writing && open.value && frames && editing.value?.message !== end.id
          && <Steps frames={frames} />}
        <div class="actions">
          {writing && live.value && live.value.tokens > 0 && <span class="stats">
            {count(live.value.tokens)} tokens
            {live.value.tokensPerSecond > 0 && ` · ${speed(live.value.tokensPerSecond)} tok/s`}
          </span>}
          {!writing && (
            <>
              <button class="icon-button small" type="button" aria-label="Copy the answer"
                title="Copy" onClick={copy}><Icon name="copy" size={18} /></button>
              <button class="icon-button small" type="button" aria-label="Answer again"
                title="Answer again" disabled={busy.value || !ready.value}
                onClick={() => regenerate(first)}><Icon name="redo" size={18} /></button>
              {frames && <button class="icon-button small" type="button"
                aria-label="How it took shape" title="How it took shape" aria-expanded={open.value}
                onClick={() => (open.value = !open.value)}><Icon name="steps" size={18} /></button>}
              {canEdit.value && end.content && <button class="icon-button small" type="button"
                aria-label="Edit in place" title="Edit in place" disabled={busy.value}
                onClick={() => (editing.value = { message: end.id, from: 0, to: 0 })}>
                <Icon name="swap" size={18} />
              </button>}
              <Branch message={branched} />
              {end.stats && (last || parts.length > 0) && <StatsLine stats={end.stats} />}
            </>
          )}
        </div>
      </div>
    </article>
  );
}
