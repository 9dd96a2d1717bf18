// format - numbers as people read them.

const units = ['bytes', 'KB', 'MB', 'GB', 'TB'];

export function bytes(n: number): string {
  const power = n < 1000 ? 0 : Math.min(4, Math.floor(Math.log10(n) / 3));
  const value = n / 1000 ** power;
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[power]}`;
}

export const count = (n: number): string => Math.round(n).toLocaleString('en');

export function short(n: number): string {
  if (n < 1e3) return String(n);
  if (n < 1e6) return `${(n / 1e3).toFixed(n < 1e4 ? 1 : 0)} K`;
  return n < 1e9 ? `${(n / 1e6).toFixed(n < 1e7 ? 1 : 0)} M` : `${(n / 1e9).toFixed(1)} B`;
}

export function duration(seconds: number): string {
  if (seconds < 1) return `${Math.max(0, Math.round(seconds * 1000))} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

export const speed = (n: number): string => (n >= 100 ? count(n) : n.toFixed(1));

/** What is wrong with a conversation that is longer than the context. */
export const tooLong = (tokens: number, context: number): string =>
  `This conversation has ${count(tokens)} tokens; `
    + `the model is loaded with room for ${count(context)}.`;

/** The heading under which the sidebar files a conversation. */
export function dayLabel(time: number, now = Date.now()): string {
  const startOfDay = (t: number) => new Date(t).setHours(0, 0, 0, 0);
  const days = Math.round((startOfDay(now) - startOfDay(time)) / 86_400_000);
  if (days <= 0) return 'Today';
  if (days === 1) return 'Yesterday';
  if (days < 7) return 'This week';
  return days < 31
    ? 'This month'
    : new Date(time).toLocaleString('en', { month: 'long', year: 'numeric' });
}
