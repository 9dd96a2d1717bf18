// HistoryItem - one conversation of the sidebar: open, rename, export, delete.

import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import type { Conversation } from '../chat/types';
import { focused, selected } from '../lib/focus';
import { isComposing } from '../lib/keys';
import { answering, deleteConversation, rename } from '../state/chat';
import { exportConversations } from '../state/library';
import { notifyError } from '../state/notices';
import { tabStop } from '../state/roving';
import { drawer } from '../state/ui';
import { Icon } from './Icon';

/** The list may be drawn again while somebody writes: the title is where the field begins, not
 *  what it holds. */
function RenameField({ conversation, onDone }: { conversation: Conversation; onDone(): void }) {
  const ended = useRef(false); // a field that goes away loses the focus as well
  const end = (value?: string) => {
    if (ended.current) return;
    ended.current = true;
    onDone();
    if (value !== undefined) rename(conversation, value).catch(notifyError);
  };
  return (
    <input class="input" dir="auto" aria-label="New name" defaultValue={conversation.title}
      ref={selected}
      onBlur={(e) => end(e.currentTarget.value)}
      onKeyDown={(e) => {
        if (isComposing(e) || (e.key !== 'Enter' && e.key !== 'Escape')) return;
        e.preventDefault(); // else Escape stops the answer as well
        end(e.key === 'Enter' ? e.currentTarget.value : undefined);
      }} />
  );
}

export function HistoryItem({
  conversation, current,
}: { conversation: Conversation; current: boolean }) {
  const open = useSignal(false);
  const renaming = useSignal(false);
  const button = useRef<HTMLButtonElement>(null);
  const tab = tabStop.value === conversation.id ? 0 : -1;
  const choose = (action: () => unknown) => {
    open.value = false;
    Promise.resolve(action()).catch(notifyError);
  };
  const leave = (e: FocusEvent & { currentTarget: HTMLElement }) => {
    if (!e.currentTarget.contains(e.relatedTarget as Node | null)) open.value = false;
  };
  if (renaming.value)
    return (
      <li><RenameField conversation={conversation} onDone={() => (renaming.value = false)} /></li>
    );
  return (
    <li
      class={`${current ? 'current' : ''} `
        + `${answering.value?.id === conversation.id ? 'answering' : ''}`}
      onBlurCapture={leave}
      onKeyDown={(e) => {
        if (e.key !== 'Escape' || !open.value) return;
        e.preventDefault();
        open.value = false;
        button.current?.focus();
      }}>
      <a href={`#/c/${conversation.id}`} aria-current={current ? 'page' : undefined} tabIndex={tab}
        onClick={() => (drawer.value = false)}>
        <span dir="auto">{conversation.title}</span>
        {answering.value?.id === conversation.id && <span class="visually-hidden">
          (being answered)
        </span>}
      </a>
      <button ref={button} class="icon-button small" type="button"
        aria-label={`Actions for ${conversation.title}`} aria-expanded={open.value} tabIndex={tab}
        onClick={() => (open.value = !open.value)}><Icon name="more" /></button>
      {open.value && (
        // It can have the focus: Safari gives that to no button that is clicked, but to what is
        // around.
        <div class="menu" tabIndex={-1}>
          <button type="button" ref={focused} onClick={() => choose(() => (renaming.value = true))}>
            <Icon name="pencil" /> Rename
          </button>
          <button type="button" onClick={() => choose(() => exportConversations(conversation))}>
            <Icon name="download" /> Export
          </button>
          <button type="button" class="danger"
            onClick={() => choose(() => deleteConversation(conversation))}>
            <Icon name="trash" /> Delete
          </button>
        </div>
      )}
    </li>
  );
}
