// AdapterSwitches - which adapters a conversation uses, and how strong each is.

import { adaptersOf, library } from '../state/adapters';
import { changeSettings } from '../state/chat';
import { notifyError } from '../state/notices';
import { Switch } from './Switch';

type Use = { name: string; scale: number };

export function AdapterSwitches({ uses }: { uses: readonly Use[] }) {
  const change = (adapters: Use[]) => changeSettings({ adapters }).catch(notifyError);
  const names = adaptersOf(library.value, uses);
  if (!names.length) return null;
  return (
    <fieldset class="plain-set">
      <legend class="label">Adapters</legend>
      {names.map((name) => {
        const use = uses.find((u) => u.name === name);
        return (
          <div class="stack tight" key={name}>
            <Switch label={name}
              hint={use ? `At ${Math.round(100 * use.scale)} % of its strength.` : 'Off.'}
              checked={use !== undefined}
              onChange={(on) =>
                change(on ? [...uses, { name, scale: 1 }] : uses.filter((u) => u.name !== name))} />
            {use && (
              <input class="slider" type="range" min={0} max={2} step={0.05} value={use.scale}
                aria-label={`Strength of ${name}`}
                onChange={(e) => change(uses.map((u) =>
                  (u.name === name ? { name, scale: e.currentTarget.valueAsNumber } : u)))} />
            )}
          </div>
        );
      })}
    </fieldset>
  );
}
