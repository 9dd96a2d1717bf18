// JsonField - whether the answers of a conversation are JSON, and of which schema: typed, checked
// as it is typed, or taken from an example.

import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { checkSchema, type SchemaCheck } from '../chat/json';
import { examples } from '../chat/schemas';
import type { ChatSettings } from '../chat/types';
import { canEdit } from '../state/editing';
import { engineState } from '../state/engine';
import { Icon } from './Icon';

const PAUSE = 300; // milliseconds without a key, after which a schema is checked

const kinds = [
  { value: 'off', label: 'Off' }, { value: 'object', label: 'Any object' },
  { value: 'schema', label: 'A schema' },
] as const;

function Verdict({ check }: { check: SchemaCheck }) {
  if (check.kind === 'bad')
    return (
      <p class="problem" role="alert">
        <Icon name="warn" size={18} /> <span>{check.why}</span>
      </p>
    );
  return (
    <p class="hint" role="status">
      {check.kind === 'good' ? 'Every answer will be JSON of this schema.' : 'A JSON Schema.'}
    </p>
  );
}

function SchemaField({ text, onChange }: { text: string; onChange(schema: string): void }) {
  const check = useSignal<SchemaCheck>({ kind: 'none' }), state = engineState.value;
  const engine = state.kind === 'ready' ? state.engine : null;
  useEffect(() => {
    let over = false;
    const timer = setTimeout(async () => {
      const found = await checkSchema(text, engine);
      if (!over) check.value = found;
    }, PAUSE);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [text, engine]);
  return (
    <div class="field">
      <div class="row spread">
        <label class="label" for="set-schema">Schema</label>
        <span class="row" role="group" aria-label="Examples">
          {examples.map(({ name, schema }) =>
            <button class="button small" type="button" key={name}
              onClick={() => onChange(JSON.stringify(schema, null, 2))}>{name}</button>)}
        </span>
      </div>
      <div id="hint-schema"><Verdict check={check.value} /></div>
      <textarea class="input code" id="set-schema" rows={8} dir="ltr" spellcheck={false}
        placeholder={'{"type": "object", "properties": {"name": {"type": "string"}}, "required": '
          + '["name"]}'}
        value={text} aria-describedby="hint-schema" aria-invalid={check.value.kind === 'bad'}
        onInput={(e) => onChange(e.currentTarget.value)} />
    </div>
  );
}

export function JsonField({
  settings: { json, schema }, change,
}: {
  settings: Pick<ChatSettings, 'json' | 'schema'>; change(part: Partial<ChatSettings>): void;
}) {
  return (
    <>
      <div class="row spread" role="radiogroup" aria-labelledby="label-json"
        aria-describedby="hint-json">
        <span class="titled">
          <strong id="label-json">Answer as JSON</strong>
          <span class="hint" id="hint-json">
            {canEdit.value
              ? 'A diffusion model cannot keep to it yet.'
              : 'Answers cannot be anything else. Say in your question what belongs in them.'}
          </span>
        </span>
        <span class="segments">
          {kinds.map(({ value, label }) => (
            <label key={value}>
              <input type="radio" name="json" checked={json === value}
                onChange={() => change({ json: value })} />
              <span>{label}</span>
            </label>
          ))}
        </span>
      </div>
      {json === 'schema'
        && <SchemaField text={schema} onChange={(next) => change({ schema: next })} />}
    </>
  );
}
