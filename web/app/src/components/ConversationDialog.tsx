// ConversationDialog - system prompt and sampling of the open conversation.

import { useEffect } from 'preact/hooks';
import { defaultSettings, type ChatSettings } from '../chat/types';
import { changeSettings, conversation } from '../state/chat';
import { canEdit } from '../state/editing';
import { notify, notifyError } from '../state/notices';
import { setPrefs } from '../state/prefs';
import { lookInStore } from '../state/shelf';
import { dialog } from '../state/ui';
import { AdapterSwitches } from './AdapterSwitches';
import { Dialog } from './Dialog';
import { JsonField } from './JsonField';
import { Switch } from './Switch';

type NumberKey = 'temperature' | 'topP' | 'topK' | 'minP' | 'steps' | 'maxTokens' | 'seed';

interface NumberSetting {
  key: NumberKey; label: string; hint: string; min: number; max: number; step: number;
}

/** How the next word is drawn. */
const drawing: NumberSetting[] = [
  {
    key: 'temperature', label: 'Temperature', hint: '0 always takes the likeliest word', min: 0,
    max: 5, step: 0.05,
  },
  {
    key: 'topP', label: 'Top-p', hint: 'Likeliest words up to this share', min: 0, max: 1,
    step: 0.01,
  },
  {
    key: 'topK', label: 'Top-k', hint: 'This many words at most; 0: all', min: 0, max: 100000,
    step: 1,
  },
  {
    key: 'minP', label: 'Min-p', hint: 'No word below this share of the best', min: 0, max: 1,
    step: 0.01,
  },
];
/** How a canvas is denoised. */
const denoising: NumberSetting[] = [
  {
    key: 'steps', label: 'Steps', hint: 'Of a canvas at most; fewer are quicker', min: 1,
    max: 1024, step: 1,
  },
];
const common: NumberSetting[] = [
  { key: 'maxTokens', label: 'Longest answer', hint: 'In tokens', min: 1, max: 1000000, step: 1 },
  {
    key: 'seed', label: 'Seed', hint: 'The same seed gives the same answer', min: 0,
    max: 4294967295, step: 1,
  },
];

const change = (part: Partial<ChatSettings>) => changeSettings(part).catch(notifyError);

function NumberField({ field, value }: { field: NumberSetting; value: number | null }) {
  const read = (input: HTMLInputElement) => {
    if (input.value === '') return change({ [field.key]: null });
    return input.checkValidity()
      ? change({ [field.key]: input.valueAsNumber })
      : input.reportValidity();
  };
  return (
    <div class="field">
      <label for={`set-${field.key}`}>{field.label}</label>
      <input class="input" id={`set-${field.key}`} type="number" placeholder="As the model likes"
        min={field.min} max={field.max} step={field.step}
        value={value ?? ''} aria-describedby={`hint-${field.key}`}
        onChange={(e) => read(e.currentTarget)} />
      <span class="hint" id={`hint-${field.key}`}>{field.hint}</span>
    </div>
  );
}

export function ConversationDialog() {
  const settings = conversation.value?.settings;
  useEffect(() => void lookInStore().catch(notifyError), []);
  if (!settings) return null;
  const keep = () => {
    setPrefs({ chat: { ...settings, from: null, summaryOf: null } });
    notify('New conversations will begin like this one.');
  };
  return (
    <Dialog title="This conversation" onClose={() => (dialog.value = 'none')}>
      <div class="field">
        <label for="set-system">System prompt</label>
        <textarea class="input" id="set-system" dir="auto"
          placeholder="Who the model should be, and how it should answer" value={settings.system}
          onChange={(e) => change({ system: e.currentTarget.value })} />
      </div>
      <Switch label="Thinking" hint="The model reasons before it answers."
        checked={settings.thinking} onChange={(thinking) => change({ thinking })} />
      <Switch label="Tools" hint="It may use a calculator and the clock." checked={settings.tools}
        onChange={(tools) => change({ tools })} />
      <JsonField settings={settings} change={change} />
      <AdapterSwitches uses={settings.adapters} />
      <div class="grid-2">
        {[...(canEdit.value ? denoising : drawing), ...common].map((field) =>
          <NumberField key={field.key} field={field} value={settings[field.key]} />)}
      </div>
      <div class="dialog-foot">
        <button class="button" type="button"
          onClick={() => change({
            ...defaultSettings, from: settings.from, summaryOf: settings.summaryOf,
          })}>Reset</button>
        <button class="button" type="button" onClick={keep}>Use for new conversations</button>
      </div>
    </Dialog>
  );
}
