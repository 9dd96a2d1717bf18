// The page in WebKitGTK, whose builds give pages no files: what a private window of Safari is like.
// node tests/web/app/test_webkit.mjs [--only WORDS]
import { done } from '../check.mjs';
import { visitsWithoutFiles } from './visits.mjs';
import { openWebKit } from './webkit.mjs';

const close = await visitsWithoutFiles(openWebKit);
await done(process.argv[process.argv.indexOf('--only') + 1 || process.argv.length]);
await close();
