// The same facts in a worker of Chromium, with a reload half-way: node
// tests/web/test_train_browser.mjs gpu|cpu
import { runPage } from './browser.mjs';
import { zeroedByLoop } from './dawn_toggles.mjs';

const [backend = 'gpu'] = process.argv.slice(2);
process.exitCode = await runPage(`/tests/web/train.html?backend=${backend}`, {
  seconds: 900, flags: [zeroedByLoop],
});
