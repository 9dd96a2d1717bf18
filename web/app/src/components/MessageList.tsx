// MessageList - the conversation on screen. It follows the answer while the person is at its end, and not otherwise.

import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { live } from '../chat/live';
import { turns } from '../chat/tree';
import { copyText } from '../lib/files';
import { conversation, path } from '../state/chat';
import { notify, notifyError } from '../state/notices';
import { Answer } from './Answer';
import { Icon } from './Icon';
import { Question } from './Question';
import { Welcome } from './Welcome';

/** Copy buttons inside of rendered markdown. */
function onCopy(e: MouseEvent) {
  const button = e.target instanceof Element ? e.target.closest('[data-copy]') : null;
  const code = button?.closest('.code')?.querySelector('code')?.textContent;
  if (code !== undefined && code !== null) copyText(code).then(() => notify('Copied.'), notifyError);
}

export function MessageList() {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useSignal(true);
  const shown = turns(path.value);
  const toEnd = () => {
    const element = box.current;
    if (element) element.scrollTop = element.scrollHeight;
  };
  const check = () => {
    const element = box.current;
    if (element) atEnd.value = element.scrollHeight - element.scrollTop - element.clientHeight < 80;
  };
  const count = path.value.length;
  useLayoutEffect(toEnd, [conversation.value?.id, count]);
  useLayoutEffect(() => {
    if (atEnd.peek()) toEnd();
  }, [live.value]);
  // Colours and formulas arrive late and change the height.
  useEffect(() => {
    const column = box.current?.firstElementChild;
    if (!column) return undefined;
    const observer = new ResizeObserver(() => atEnd.peek() && toEnd());
    observer.observe(column);
    return () => observer.disconnect();
  }, []);
  return (
    <>
      <div class="messages" ref={box} onScroll={check} onClick={onCopy}>
        <div class="column">
          {shown.length === 0 && <Welcome />}
          {shown.map((turn, i) => {
            const first = turn.messages[0];
            if (!first) return null;
            return turn.role === 'user' ? <Question key={first.id} message={first} /> : <Answer key={first.id} turn={turn} last={i === shown.length - 1} />;
          })}
        </div>
      </div>
      {!atEnd.value && shown.length > 0 && (
        <div class="dock-jump"><button class="icon-button jump" type="button" aria-label="To the latest message" onClick={toEnd}><Icon name="down" /></button></div>
      )}
    </>
  );
}
