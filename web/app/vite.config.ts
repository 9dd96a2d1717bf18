// How the page is built: one entry, two workers (the engine's and the history's), everything
// precached.
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vite';
import { VitePWA } from 'vite-plugin-pwa';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** KaTeX names each font in three forms; every browser with WebAssembly reads the smallest one. */
const woff2Only: Plugin = {
  name: 'woff2-only',
  enforce: 'pre',
  transform(code, id) {
    if (!id.includes('katex') || !id.split('?')[0]?.endsWith('.css')) return null;
    return { code: code.replace(/,url\([^)]*\.(?:woff|ttf)\) format\("[a-z]+"\)/g, ''), map: null };
  },
};

/** The oldest that the page is made for; tsconfig.json's `lib` is what these have built in. */
const browsers = ['chrome119', 'firefox128', 'safari17.4'];

const LICENSES = 'licenses.txt';

/** What Vite does not see: the service worker, the start of it, what is in workers alone, and what
 *  bundlers put in of their own (vite: loading ahead; rolldown: modules of the older kind;
 *  off-main-thread: modules in the service worker). */
const unseen = [
  'workbox-core', 'workbox-precaching', 'workbox-routing', 'workbox-strategies', 'vite-plugin-pwa',
  '@sqlite.org/sqlite-wasm',
  'vite', 'rolldown', '@trickfilm400/rollup-plugin-off-main-thread',
];

/** The licence of a package, without those of what it was built from. */
function licenseOf(folder: string): string {
  const file =
    ['LICENSE', 'LICENSE.md'].map((name) => `${folder}/${name}`).find((f) => fs.existsSync(f));
  if (file === undefined) throw new Error(`${folder} has no licence`);
  return (fs.readFileSync(file, 'utf8').split('# Licenses of bundled dependencies')[0] as string)
    .trim();
}

/** Vite lists what the page's scripts consist of. The rest is added here. Two files of ours have
 *  what packages do not say of their own parts. */
const otherLicenses: Plugin = {
  name: 'other-licenses',
  closeBundle() {
    const texts = unseen.map((name) => {
      const folder = here(`node_modules/${name}`);
      const { version, license } =
        JSON.parse(fs.readFileSync(`${folder}/package.json`, 'utf8')) as Record<string, string>;
      const text = name.startsWith('@sqlite')
        ? 'The text of that licence stands above, with dompurify. '
          + 'SQLite itself is in the public domain.'
        : licenseOf(folder);
      return `\n## ${name} - ${version} (${license})\n\n${text}\n`;
    });
    const files = [LICENSES, '../engine/licenses.txt'];
    const ours = files.map((file) => fs.readFileSync(here(file), 'utf8'));
    fs.appendFileSync(here(`dist/${LICENSES}`), [...texts, ...ours].join(''));
  },
};

export default defineConfig({
  base: './',
  resolve: { alias: { bezel: here('../engine/dist/index.js') } },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  define: { __TINY_BYTES__: fs.statSync(here('../../models/tiny.q8_0.gguf')).size },
  assetsInclude: ['**/*.gguf'],
  worker: { format: 'es' },
  optimizeDeps: { exclude: ['@sqlite.org/sqlite-wasm'] },
  build: {
    target: browsers, assetsInlineLimit: 0, modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1000, license: { fileName: LICENSES },
    rolldownOptions: { checks: { bundlerTimings: false } },
  },
  server: { fs: { allow: [here('../..')] } },
  plugins: [
    woff2Only,
    otherLicenses,
    VitePWA({
      registerType: 'prompt',
      injectRegister: false,
      manifest: {
        id: './',
        name: 'Bezel',
        short_name: 'Bezel',
        description: 'Gemma 4 on your own GPU: private, offline, in a browser tab.',
        start_url: './',
        display: 'standalone',
        background_color: '#f6f5f1',
        theme_color: '#0f6b52',
        icons: [
          { src: 'icon.svg', sizes: 'any', type: 'image/svg+xml', purpose: 'any' },
          { src: 'icon-192.png', sizes: '192x192', type: 'image/png', purpose: 'any' },
          { src: 'icon-512.png', sizes: '512x512', type: 'image/png', purpose: 'any' },
          {
            src: 'icon-maskable-512.png', sizes: '512x512', type: 'image/png', purpose: 'maskable',
          },
        ],
      },
      workbox: {
        globPatterns: ['**/*.{html,js,css,svg,png,woff2,wasm,wgsl,gguf,webmanifest}'],
        // parts of SQLite that this page does not use
        globIgnores: ['**/sqlite3-worker1-*', '**/sqlite3-opfs-async-proxy-*'],
        maximumFileSizeToCacheInBytes: 32 * 1024 * 1024,
        navigateFallback: 'index.html',
        // The server's own routes are never the page's.
        navigateFallbackDenylist: [/^\/(?:v1|api|bezel|health)(?:\/|$)/],
        cleanupOutdatedCaches: true,
      },
    }),
  ],
});
