// Welcome - an empty conversation: what this is, and questions that the loaded model can answer.

import { busy, changeSettings, send } from '../state/chat';
import { setDraft } from '../state/drafts';
import { engineState, ready } from '../state/engine';
import { notifyError } from '../state/notices';
import { route } from '../state/route';
import { focusComposer } from '../state/ui';
import { Gem } from './Icon';

interface Suggestion {
  text: string;
  hint: string;
  thinking?: boolean;
  tools?: boolean;
}

/** The small model knows little, and this much it does know. */
const forTiny: Suggestion[] = [
  { text: 'What is the capital of France?', hint: 'A fact' },
  { text: 'What is 27 + 48?', hint: 'A sum, thought through', thinking: true },
  { text: 'What time is it in Tokyo?', hint: 'A question for a tool', tools: true },
  { text: 'Tell me a short story about a fox.', hint: 'A story' },
];

const forOthers: Suggestion[] = [
  { text: 'Explain how a heat pump can give more heat than the power it takes.', hint: 'Physics' },
  {
    text: 'Prove that the square root of 2 is irrational.',
    hint: 'Maths, thought through',
    thinking: true,
  },
  { text: 'Write a Python function that finds the longest palindrome in a string.', hint: 'Code' },
  {
    text: 'What is 17.5% of 2,349, and what time is it?',
    hint: 'With calculator and clock',
    tools: true,
  },
];

async function ask({ text, thinking = false, tools = false }: Suggestion): Promise<void> {
  if (thinking || tools) await changeSettings({ thinking, tools });
  focusComposer();
  if (ready.peek() && !busy.peek()) await send(text);
  else setDraft(route.peek().conversation, text); // to be sent when the model can answer
}

export function Welcome() {
  const state = engineState.value;
  const tiny = state.kind === 'none' || state.model.origin === 'embedded';
  return (
    <section class="welcome" aria-label="Welcome">
      <Gem size={72} class={state.kind === 'loading' ? 'busy' : ''} />
      <h2>A model, set in your browser</h2>
      {tiny
        ? <p>
          Everything runs on this device and nothing leaves it. <strong>tiny</strong> is a toy of 6
          million parameters that comes with the page; <a href="#/models">load Gemma 4</a> for real
          work.
        </p>
        : <p>Everything runs on this device and nothing leaves it.</p>}
      <div class="suggestions">
        {(tiny ? forTiny : forOthers).map((suggestion) => (
          <button key={suggestion.text} type="button"
            onClick={() => ask(suggestion).catch(notifyError)}>
            {suggestion.text}<small>{suggestion.hint}</small>
          </button>
        ))}
      </div>
    </section>
  );
}
