// Sidebar - new conversation, search, the history, and the way to the other views.

import { useEffect, useRef } from 'preact/hooks';
import { conversations, groups, hits, lasts, opened, query, search } from '../state/library';
import { IN_MEMORY } from '../storage/changes';
import type { SearchHit } from '../storage/history';
import { notifyError } from '../state/notices';
import { onFocus, onKeyDown, tabStop } from '../state/roving';
import { go, route, type View } from '../state/route';
import { setPrefs } from '../state/prefs';
import { drawer, focusComposer, isNarrow } from '../state/ui';
import { HistoryItem } from './HistoryItem';
import { Gem, Icon, type IconName } from './Icon';
import { Notices } from './Notices';

export function startNew() {
  drawer.value = false;
  go('/');
  focusComposer();
}

/** The words that were found stand between two control characters. */
const Excerpt = ({ text }: { text: string }) => (
  <span class="excerpt" dir="auto">
    {text.split(/[\u0001\u0002]/).map((part, i) => (i % 2 ? <mark key={i}>{part}</mark> : part))}
  </span>
);

function openHit(hit: SearchHit) {
  drawer.value = false;
  opened.value = { ...hit }; // the same one again goes to its words again
}

function Hits() {
  const found = hits.value ?? [];
  if (!found.length) return <p class="empty">Nothing found.</p>;
  return (
    <ul>
      {found.map((hit) => (
        <li key={hit.conversation}
          class={route.value.conversation === hit.conversation ? 'current' : ''}>
          <a href={`#/c/${hit.conversation}`} tabIndex={tabStop.value === hit.conversation ? 0 : -1}
            onClick={() => openHit(hit)}>
            <span dir="auto">{hit.title}</span>
            {hit.excerpt && <Excerpt text={hit.excerpt} />}
          </a>
        </li>
      ))}
    </ul>
  );
}

function Groups() {
  if (conversations.value && !conversations.value.length)
    return (
      <p class="empty">
        {lasts.value ? 'Conversations are kept here, in this browser only.' : IN_MEMORY}
      </p>
    );
  return (
    <>
      {groups.value.map((group) => (
        <section key={group.label} aria-label={group.label}>
          <h2>{group.label}</h2>
          <ul>
            {group.items.map((item) =>
              <HistoryItem key={item.id} conversation={item}
                current={route.value.conversation === item.id} />)}
          </ul>
        </section>
      ))}
    </>
  );
}

const links: { view: View; label: string; icon: IconName }[] = [
  { view: 'models', label: 'Models', icon: 'cube' },
  { view: 'train', label: 'Fine-tune', icon: 'spark' },
  { view: 'device', label: 'Device', icon: 'chip' },
  { view: 'settings', label: 'Settings', icon: 'gear' },
];

export function Sidebar() {
  const element = useRef<HTMLElement>(null);
  useEffect(() => {
    if (drawer.value)
      requestAnimationFrame(() => element.current?.querySelector<HTMLElement>('.new')?.focus());
  }, [drawer.value]);
  const close = () => (isNarrow() ? (drawer.value = false) : setPrefs({ sidebar: false }));
  return (
    <nav class="sidebar" id="sidebar" aria-label="Conversations and views" ref={element}>
      <div class="brand">
        <a href="#/" aria-label="Bezel, new conversation" onClick={() => (drawer.value = false)}>
          <Gem size={26} /> Bezel
        </a>
        <button class="icon-button" type="button" aria-label="Hide the sidebar" onClick={close}>
          <Icon name="close" size={18} />
        </button>
      </div>
      <button class="button new" type="button" onClick={startNew}>
        <Icon name="plus" /> New conversation
      </button>
      <div class="search" role="search">
        <Icon name="search" size={18} />
        <input id="search" class="input" type="search" dir="auto" aria-label="Search conversations"
          placeholder="Search" value={query.value}
          onInput={(e) => search(e.currentTarget.value).catch(notifyError)} />
      </div>
      <div class="history" onFocusIn={onFocus} onKeyDown={onKeyDown}>
        {query.value.trim() ? <Hits /> : <Groups />}
      </div>
      {drawer.value && <Notices />}
      <div class="nav">
        {links.map(({ view, label, icon }) => (
          <a key={view} href={`#/${view}`}
            aria-current={route.value.view === view ? 'page' : undefined}
            onClick={() => (drawer.value = false)}>
            <Icon name={icon} /> {label}
          </a>
        ))}
      </div>
    </nav>
  );
}
