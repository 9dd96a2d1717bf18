// Before the first paint: the theme that was chosen, so that nothing flashes. (A file, since the page's
// policy allows no inline script.)
try {
  const theme = JSON.parse(localStorage.getItem('bezel.prefs') || '{}').theme;
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // No storage: the system's theme.
}
