// EditPanel - some words of an answer, to be written again by a diffusion model between what stands
// around them.

import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Message } from '../chat/types';
import { fitToText } from '../lib/grow';
import { isComposing } from '../lib/keys';
import { busy, editInPlace } from '../state/chat';
import { stopEditing, type Editing } from '../state/editing';
import { ready } from '../state/engine';

const lengths = [['Shorter', 0.5], ['As long', 1], ['Longer', 2]] as const;

export function EditPanel({ message, wish }: { message: Message; wish: Editing }) {
  const text = useRef<HTMLTextAreaElement>(null);
  const instruction = useSignal(''), length = useSignal(1);
  const range = useSignal<[number, number]>([wish.from, wish.to]);
  const [from, to] = range.value, words = message.content.slice(from, to);
  const can = words.trim() !== '' && ready.value && !busy.value;
  useEffect(() => {
    const area = text.current;
    if (!area) return undefined;
    fitToText(area);
    area.focus();
    area.setSelectionRange(wish.from, wish.to);
    // A field that is read only has no caret to select with.
    const refuse = (e: Event) => e.preventDefault();
    area.addEventListener('beforeinput', refuse);
    return () => area.removeEventListener('beforeinput', refuse);
  }, [message.id]);
  const look = () => {
    const { selectionStart: start = 0, selectionEnd: end = 0 } = text.current ?? {};
    if (start !== end) range.value = [start, end];
  };
  const write = () => {
    if (!can) return;
    stopEditing();
    void editInPlace(message, {
      text: message.content, selection: range.value, instruction: instruction.value,
      length: length.value,
    });
  };
  return (
    <form class="editor edit-panel" aria-label="Edit in place"
      onSubmit={(e) => { e.preventDefault(); write(); }}
      onKeyDown={(e) => {
        if (e.key !== 'Escape' || isComposing(e)) return;
        e.preventDefault();
        e.stopPropagation();
        stopEditing();
      }}>
      <label class="field">
        <span class="label">Select the words to write again</span>
        <textarea class="input" ref={text} aria-readonly="true" inputMode="none" dir="auto"
          spellcheck={false} value={message.content} onSelect={look} onKeyUp={look} />
      </label>
      <p class="chosen">
        {words.trim() ? <>“<mark dir="auto">{words}</mark>” is written again, the rest stays.</>
          : 'Nothing is selected.'}
      </p>
      <label class="field">
        <span class="label">What should be there (may be empty)</span>
        <input class="input" dir="auto" value={instruction.value}
          onInput={(e) => (instruction.value = e.currentTarget.value)} />
      </label>
      <div class="edit-foot">
        <span class="segments" role="radiogroup" aria-label="Length">
          {lengths.map(([name, times]) => (
            <label key={name}>
              <input type="radio" name={`length-${message.id}`} checked={length.value === times}
                onChange={() => (length.value = times)} /><span>{name}</span>
            </label>
          ))}
        </span>
        <span class="row">
          <button class="button small" type="button" onClick={stopEditing}>Cancel</button>
          <button class="button small primary" type="submit" disabled={!can}>Write again</button>
        </span>
      </div>
    </form>
  );
}
