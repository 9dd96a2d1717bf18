// clock - the time and the date, here or in a city that a time zone is named after.

/** "Paris", "paris" or "Europe/Paris" to a zone; '' is where the browser is. */
function zoneOf(city: string): string | undefined {
  if (!city.trim()) return undefined;
  const wanted = city.trim().toLowerCase().replace(/\s+/g, '_');
  const zone = Intl.supportedValuesOf('timeZone').find((z) =>
    z.toLowerCase() === wanted || z.toLowerCase().endsWith(`/${wanted}`));
  if (!zone) throw new Error(`no time zone is known for ${city}`);
  return zone;
}

const show = (city: string, options: Intl.DateTimeFormatOptions): string => {
  const timeZone = zoneOf(city);
  return new Date().toLocaleString('en-GB', { ...options, ...(timeZone && { timeZone }) });
};

export const timeIn = (city: string): string => show(city, { hour: '2-digit', minute: '2-digit' });
export const dateIn = (city: string): string => show(city, { dateStyle: 'full' });
