// MessageList - the conversation on screen. It follows the answer while the person is at its end,
// and not otherwise.

import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { live } from '../chat/live';
import { turns } from '../chat/tree';
import { copyText } from '../lib/files';
import { reveal } from '../lib/reveal';
import { busyHere, changeSettings, conversation, path, showBranchOf } from '../state/chat';
import { opened } from '../state/library';
import { notify, notifyError } from '../state/notices';
import { Answer } from './Answer';
import { Icon } from './Icon';
import { Question } from './Question';
import { Welcome } from './Welcome';

/** Buttons inside of rendered markdown: those that copy code, and the marks of footnotes. */
function onClick(e: MouseEvent) {
  const button =
    e.target instanceof Element ? e.target.closest<HTMLElement>('[data-copy], [data-note]') : null;
  const name = button?.dataset['note'];
  if (name !== undefined) {
    const notes = [...(button?.closest('.markdown')?.querySelectorAll<HTMLElement>('[data-noted]')
      ?? [])];
    notes.find((note) => note.dataset['noted'] === name)?.focus();
    return;
  }
  const code = button?.closest('.code')?.querySelector('code')?.textContent;
  if (code !== undefined && code !== null)
    copyText(code).then(() => notify('Copied.'), notifyError);
}

/** Below this line the model reads. */
const Dropped = () => (
  <p class="dropped"><span>The model does not read what is above.{' '}
    <button class="link-button" type="button" disabled={busyHere.value}
      onClick={() => changeSettings({ from: null }).catch(notifyError)}>
      Read it again
    </button></span></p>
);

export function MessageList() {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useSignal(true);
  const put = useRef(-1); // where the page scrolled to
  const shown = turns(path.value);
  const toEnd = () => {
    const element = box.current;
    if (!element) return;
    // The welcome is read from its beginning.
    element.scrollTop = path.peek().length ? element.scrollHeight : 0;
    put.current = element.scrollTop;
  };
  const check = () => {
    const element = box.current;
    if (!element) return;
    const isNear = element.scrollHeight - element.scrollTop - element.clientHeight < 80;
    // The page's own scrolling is told of a frame later. A list that was made lower meanwhile does
    // not mean that the person scrolled.
    if (isNear || element.scrollTop !== put.current) atEnd.value = isNear;
  };
  const count = path.value.length;
  useLayoutEffect(toEnd, [conversation.value?.id, count]);
  useLayoutEffect(() => {
    if (atEnd.peek()) toEnd();
  }, [live.value]);
  // A search found it: its branch is shown, and its words.
  const hit = opened.value;
  const here = hit?.message && conversation.value?.id === hit.conversation ? hit : null;
  useEffect(() => {
    if (!here) return;
    showBranchOf(here.message);
    const frame = requestAnimationFrame(() => {
      const turn = [...(box.current?.querySelectorAll<HTMLElement>('[data-messages]') ?? [])].find(
        (e) => e.dataset['messages']?.split(' ').includes(here.message),
      );
      if (!turn) return;
      atEnd.value = false;
      reveal(turn, here.excerpt.split(/[\u0001\u0002]/)[1] ?? '');
      opened.value = null;
    });
    return () => cancelAnimationFrame(frame);
  }, [here, count]);
  // Colours and formulas arrive late and change the height.
  useEffect(() => {
    const column = box.current?.firstElementChild;
    if (!column) return undefined;
    const observer = new ResizeObserver(() => atEnd.peek() && toEnd());
    observer.observe(column);
    if (box.current) observer.observe(box.current); // notices take of its height
    return () => observer.disconnect();
  }, []);
  return (
    <>
      <div class="messages" ref={box} onScroll={check} onClick={onClick}>
        <div class="column">
          {shown.length === 0 && <Welcome />}
          {shown.map((turn, i) => {
            const first = turn.messages[0];
            if (!first) return null;
            if (turn.role === 'user' && i > 0 && first.id === conversation.value?.settings.from)
              return [<Dropped key="dropped" />, <Question key={first.id} message={first} />];
            return turn.role === 'user'
              ? <Question key={first.id} message={first} />
              : <Answer key={first.id} turn={turn} last={i === shown.length - 1} />;
          })}
        </div>
      </div>
      {!atEnd.value && shown.length > 0 && (
        <div class="dock-jump">
          <button class="icon-button jump" type="button" aria-label="To the latest message"
            onClick={toEnd}><Icon name="down" /></button>
        </div>
      )}
    </>
  );
}
