// Composer - where one writes. What is typed is kept with every key.

import { useSignal, useSignalEffect } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { count } from '../lib/format';
import { busy, busyHere, changeSettings, conversation, path, send, stop } from '../state/chat';
import { readDraft, writeDraft } from '../state/drafts';
import { engineState, ready } from '../state/engine';
import { notifyError } from '../state/notices';
import { route } from '../state/route';
import { dialog } from '../state/ui';
import { live } from '../chat/live';
import { Icon } from './Icon';

function ContextMeter() {
  const state = engineState.value;
  if (state.kind !== 'ready') return null;
  const total = state.engine.context;
  const stats = path.value.findLast((m) => m.stats)?.stats;
  const used = Math.min(total, (stats ? stats.promptTokens + stats.tokens : 0) + (busyHere.value ? (live.value?.tokens ?? 0) : 0));
  const share = used / total;
  return (
    <span class={`context ${share > 0.85 ? 'full' : ''}`} role="meter" aria-label="Context used" aria-valuemin={0} aria-valuemax={total} aria-valuenow={used} aria-valuetext={`${count(used)} of ${count(total)} tokens`} title={`${count(used)} of ${count(total)} tokens of context`}>
      <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
        <circle class="track" cx="8" cy="8" r="6" fill="none" stroke-width="2.5" />
        <circle class="fill" cx="8" cy="8" r="6" fill="none" stroke-width="2.5" stroke-dasharray={`${share * 37.7} 37.7`} />
      </svg>
      <span class="label">{count(used)} / {count(total)}</span>
    </span>
  );
}

function Toggles() {
  const settings = conversation.value?.settings;
  const toggle = (key: 'thinking' | 'tools') => changeSettings({ [key]: !settings?.[key] }).catch(notifyError);
  return (
    <>
      <button class="toggle" type="button" aria-pressed={settings?.thinking ?? false} aria-label="Think" title="Let the model think first" onClick={() => toggle('thinking')}><Icon name="spark" size={18} /><span class="label">Think</span></button>
      <button class="toggle" type="button" aria-pressed={settings?.tools ?? false} aria-label="Tools" title="Calculator and clock" onClick={() => toggle('tools')}><Icon name="wrench" size={18} /><span class="label">Tools</span></button>
      <button class="toggle" type="button" aria-label="Conversation settings" title="System prompt and sampling" onClick={() => (dialog.value = 'conversation')}><Icon name="sliders" size={18} /></button>
    </>
  );
}

export function Composer() {
  const text = useSignal(readDraft(route.peek().conversation));
  const area = useRef<HTMLTextAreaElement>(null);
  const id = route.value.conversation;
  useSignalEffect(() => {
    text.value = readDraft(route.value.conversation);
  });
  const type = (value: string) => {
    text.value = value;
    writeDraft(id, value);
  };
  const submit = () => {
    if (!text.value.trim() || busy.value || !ready.value) return;
    const words = text.value;
    type('');
    void send(words);
  };
  const touch = () => matchMedia('(hover: none) and (pointer: coarse)').matches;
  return (
    <form class="composer" onSubmit={(e) => { e.preventDefault(); submit(); }}>
      <textarea id="composer" ref={area} rows={1} aria-label="Message" placeholder={ready.value ? 'Ask something' : 'Write while the model loads'} value={text.value}
        onInput={(e) => type(e.currentTarget.value)}
        onKeyDown={(e) => {
          // On a phone, Enter is the only way to a new line.
          if (e.key !== 'Enter' || e.shiftKey || e.isComposing || touch()) return;
          e.preventDefault();
          submit();
        }} />
      <div class="composer-foot">
        <Toggles />
        <span class="space" />
        <ContextMeter />
        {busy.value
          ? <button class="button send" type="button" aria-label="Stop" title="Stop (Esc)" onClick={stop}><Icon name="stop" /></button>
          : <button class="button primary send" type="submit" aria-label="Send" title="Send (Enter)" disabled={!text.value.trim() || !ready.value}><Icon name="send" /></button>}
      </div>
    </form>
  );
}
