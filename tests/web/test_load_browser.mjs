// Weights that the device places and cuts itself, in Chromium: node tests/web/test_load_browser.mjs
// [model]
import { runPage } from './browser.mjs';

const [model = 'models/tiny.q8_0.gguf'] = process.argv.slice(2);
process.exitCode =
  Math.min(100, await runPage(`/tests/web/load.html?model=${model}`, { seconds: 600 }));
