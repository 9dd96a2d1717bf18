// Composer - where one writes. What is typed is kept with every key.

import { useSignalEffect } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { count } from '../lib/format';
import { fitToText } from '../lib/grow';
import { isComposing } from '../lib/keys';
import { busy, busyHere, changeSettings, conversation, send, stop } from '../state/chat';
import { draft, readDraft, setDraft } from '../state/drafts';
import { ready } from '../state/engine';
import { notifyError } from '../state/notices';
import { room } from '../state/room';
import { route } from '../state/route';
import { dialog, focusComposer, isTouch } from '../state/ui';
import { Icon } from './Icon';

function ContextMeter() {
  const now = room.value;
  if (!now) return null;
  const { total, kind } = now, used = Math.min(now.used, total), share = used / total;
  return (
    <span class={`context ${kind === 'plenty' ? '' : 'full'}`} role="meter"
      aria-label="Context used" aria-valuemin={0} aria-valuemax={total} aria-valuenow={used}
      aria-valuetext={`${count(used)} of ${count(total)} tokens`}
      title={`${count(used)} of ${count(total)} tokens of context`}>
      <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
        <circle class="track" cx="8" cy="8" r="6" fill="none" stroke-width="2.5" />
        <circle class="fill" cx="8" cy="8" r="6" fill="none" stroke-width="2.5"
          stroke-dasharray={`${share * 37.7} 37.7`} />
      </svg>
      <span class="label">{count(used)} / {count(total)}</span>
    </span>
  );
}

function Toggles() {
  const settings = conversation.value?.settings;
  const toggle = (key: 'thinking' | 'tools') =>
    changeSettings({ [key]: !settings?.[key] }).catch(notifyError);
  return (
    <>
      <button class="toggle" type="button" aria-pressed={settings?.thinking ?? false}
        aria-label="Think" title="Let the model think first"
        onClick={() => toggle('thinking')}>
        <Icon name="spark" size={18} />
        <span class="label">Think</span>
      </button>
      <button class="toggle" type="button" aria-pressed={settings?.tools ?? false}
        aria-label="Tools" title="Calculator and clock"
        onClick={() => toggle('tools')}>
        <Icon name="wrench" size={18} />
        <span class="label">Tools</span>
      </button>
      <button class="toggle" type="button" aria-label="Conversation settings"
        title="System prompt and sampling"
        onClick={() => (dialog.value = 'conversation')}><Icon name="sliders" size={18} /></button>
    </>
  );
}

/** A conversation that is still being read takes nothing yet; a context without room is a matter
 *  for the notice above. */
const canSend = () =>
  conversation.value !== null && ready.value && !busy.value && room.value?.kind !== 'none';

export function Composer() {
  const area = useRef<HTMLTextAreaElement>(null);
  const id = route.value.conversation;
  useSignalEffect(() => {
    draft.value = readDraft(route.value.conversation);
  });
  const type = (value: string) => setDraft(id, value);
  const submit = () => {
    if (!draft.value.trim() || !canSend()) return;
    const words = draft.value;
    type('');
    void send(words);
    focusComposer();
  };
  useLayoutEffect(() => fitToText(area.current), [draft.value]);
  // Whoever comes to a conversation comes to write; somebody who is elsewhere on the page is left
  // there.
  useLayoutEffect(() => {
    if (!isTouch() && document.activeElement === document.body) area.current?.focus();
  }, []);
  return (
    <form class="composer" onSubmit={(e) => { e.preventDefault(); submit(); }}>
      <textarea id="composer" ref={area} rows={1} dir="auto" aria-label="Message"
        placeholder={ready.value ? 'Ask something' : 'Write while the model loads'}
        value={draft.value}
        onInput={(e) => type(e.currentTarget.value)}
        onKeyDown={(e) => {
          // On a phone, Enter is the only way to a new line.
          if (e.key !== 'Enter' || e.shiftKey || isComposing(e) || isTouch()) return;
          e.preventDefault();
          submit();
        }} />
      <div class="composer-foot">
        <Toggles />
        <span class="space" />
        <ContextMeter />
        {busyHere.value
          ? <button class="button send" type="button" aria-label="Stop" title="Stop (Esc)"
            onClick={stop}><Icon name="stop" /></button>
          : <button class="button primary send" type="submit" aria-label="Send" title="Send (Enter)"
            disabled={!draft.value.trim() || !canSend()}><Icon name="send" /></button>}
      </div>
    </form>
  );
}
