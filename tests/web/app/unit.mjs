// unit - a module of the page in Node: bundled by the page's own build tool and imported.
//
//   const { readArchive } = await unit('web/app/src/chat/archive.ts');
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

export async function unit(entry) {
  const { build } = await import('../../../web/app/node_modules/vite/dist/node/index.js');
  const outDir = path.resolve('build/tmp', `unit-${path.basename(entry, '.ts')}-${process.pid}`);
  await build({
    configFile: false, logLevel: 'error', publicDir: false,
    build: {
      outDir, emptyOutDir: true, minify: false, target: 'es2022',
      lib: { entry: path.resolve(entry), formats: ['es'], fileName: () => 'unit.mjs' },
      rolldownOptions: { external: /^@sqlite/ },
    },
  });
  const file = path.join(outDir, 'unit.mjs');
  try {
    return await import(pathToFileURL(file));
  } finally {
    fs.rmSync(outDir, { recursive: true });
  }
}
