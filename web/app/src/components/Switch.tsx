// Switch - on or off, with a word on what for.

export function Switch({
  label, hint, checked, onChange,
}: { label: string; hint: string; checked: boolean; onChange(on: boolean): void }) {
  return (
    <label class="switch">
      <span><strong>{label}</strong><span class="hint">{hint}</span></span>
      <input type="checkbox" role="switch" checked={checked}
        onChange={(e) => onChange(e.currentTarget.checked)} />
    </label>
  );
}
