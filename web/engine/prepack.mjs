// What a published package has that the repository keeps elsewhere: the licence, and the page for
// `bezel serve`.
import fs from 'node:fs';

const page = '../app/dist';
if (!fs.existsSync(`${page}/index.html`)) {
  console.error('bezel: the page has not been built: make app');
  process.exit(1);
}
fs.copyFileSync('../../LICENSE', 'LICENSE');
fs.rmSync('app', { recursive: true, force: true });
fs.cpSync(page, 'app', { recursive: true });
