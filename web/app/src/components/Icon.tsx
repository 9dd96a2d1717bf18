// Icon - line drawings on a 20 px grid, drawn here so that nothing is fetched. Decorative: names
// are on the buttons.

const paths = {
  plus: 'M10 4v12M4 10h12',
  menu: 'M3 5h14M3 10h14M3 15h14',
  close: 'M5 5l10 10M15 5L5 15',
  search: 'M9 3.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 0 0 0-11M13 13l4 4',
  send: 'M10 16V4M5 9l5-5l5 5',
  stop: 'M6 6h8v8H6z',
  more: 'M4.5 10h.01M10 10h.01M15.5 10h.01',
  cube: 'M10 2.5l6.5 3.75v7.5L10 17.5l-6.5-3.75v-7.5zM3.5 6.25L10 10l6.5-3.75M10 10v7.5',
  chip: 'M6 6h8v8H6zM8 3v3M12 3v3M8 14v3M12 14v3M3 8h3M3 12h3M14 8h3M14 12h3',
  sliders: 'M4 6h7M15 6h1M4 14h1M9 14h7M13 4v4M7 12v4',
  gear:
    'M10 7.2a2.8 2.8 0 1 0 0 5.6a2.8 2.8 0 0 0 0-5.6M10 2.5v2M10 15.5v2M2.5 10h2M15.5 10h2M4.7 '
      + '4.7l1.4 1.4M13.9 13.9l1.4 1.4M15.3 4.7l-1.4 1.4M6.1 13.9l-1.4 1.4',
  copy: 'M7.5 7.5h8v9h-8zM12.5 7.5v-4h-8v9h3',
  redo: 'M15.5 8A6 6 0 1 0 16 11.5M16 4v4.2h-4.2',
  pencil: 'M4 16l.8-3.4L13 4.4a1.4 1.4 0 0 1 2 0l.6.6a1.4 1.4 0 0 1 0 2L7.4 15.2zM11.5 6l2.5 2.5',
  left: 'M12 5l-5 5l5 5',
  right: 'M8 5l5 5l-5 5',
  down: 'M5 8l5 5l5-5',
  steps: 'M3.5 15.5h3v-3h3v-3h3v-3h4',
  swap: 'M4 7.5h9M10 4.5l3 3l-3 3M16 12.5H7M10 9.5l-3 3l3 3',
  folder: 'M2.5 5h5l1.8 2h8.2v8.5h-15z',
  file: 'M5 2.5h6.5L15 6v11.5H5zM11.5 2.5V6H15',
  download: 'M10 3v9M6 8.5l4 4l4-4M4 16h12',
  trash: 'M4 6h12M8 6V4h4v2M5.5 6l.7 10h7.6l.7-10M8.3 9v4.5M11.7 9v4.5',
  check: 'M4 10.5l4 4l8-9',
  warn: 'M10 3l7.5 13.5h-15zM10 8v4M10 14.2h.01',
  spark: 'M10 3l1.6 5.4L17 10l-5.4 1.6L10 17l-1.6-5.4L3 10l5.4-1.6z',
  wrench:
    'M16.5 6.2a4 4 0 0 1-5.4 4.6l-5.3 5.3a1.6 1.6 0 0 1-2.2-2.2l5.3-5.3a4 4 0 0 1 '
      + '4.6-5.4L11.2 5.6l.5 2.7l2.7.5z',
  play: 'M6 4l10 6l-10 6z',
  globe:
    'M10 2.8a7.2 7.2 0 1 0 0 14.4a7.2 7.2 0 0 0 0-14.4M2.8 10h14.4M10 2.8c2.6 2 3.4 4.5 3.4 '
      + '7.2s-.8 5.2-3.4 7.2c-2.6-2-3.4-4.5-3.4-7.2s.8-5.2 3.4-7.2',
  keyboard: 'M2.5 5.5h15v9h-15zM5.5 8.5h.01M8.5 8.5h.01M11.5 8.5h.01M14.5 8.5h.01M6.5 11.7h7',
};

export type IconName = keyof typeof paths;

export function Icon({ name, size = 20 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 20 20" aria-hidden="true"
      focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}

/** The mark: an emerald cut in its setting. */
export function Gem({ size = 28, class: name = '' }: { size?: number; class?: string }) {
  return (
    <svg class={`gem ${name}`} width={size} height={size} viewBox="0 0 64 64" aria-hidden="true"
      focusable="false">
      <path class="gem-rim" d="M20 3h24l17 17v24L44 61H20L3 44V20z" />
      <path class="gem-1" d="M22 10h20l-5 9H27z" />
      <path class="gem-2" d="M22 10L10 22l9 5 8-8z" />
      <path class="gem-3" d="M42 10l12 12-9 5-8-8z" />
      <path class="gem-4" d="M10 22v20l9-5V27z" />
      <path class="gem-5" d="M54 22v20l-9-5V27z" />
      <path class="gem-6" d="M10 42l12 12 5-9-8-8z" />
      <path class="gem-7" d="M54 42L42 54l-5-9 8-8z" />
      <path class="gem-8" d="M22 54h20l-5-9H27z" />
      <path class="gem-table" d="M27 19h10l8 8v10l-8 8H27l-8-8V27z" />
      <path class="gem-glint" d="M27 19h10L19 37V27z" />
    </svg>
  );
}
