// check - tests as sentences: test('it does so', () => {...}), then await done(). Exit code =
// failures.
export { deepStrictEqual as same, ok, rejects, strictEqual as equal, throws } from 'node:assert';

const tests = [];

export function test(sentence, fn) {
  tests.push([sentence, fn]);
}

/** Runs the tests in order; a name on the command line (--only WORDS) picks some. TEST_TIMES=1
 *  says how long each takes. */
export async function done(only) {
  let failed = 0, passed = 0;
  for (const [sentence, fn] of tests) {
    if (only && !sentence.includes(only)) continue;
    const begin = performance.now();
    try {
      await fn();
      passed++;
    } catch (e) {
      failed++;
      console.log(
        `FAILED "${sentence}"\n  ${(e?.stack ?? String(e)).split('\n').slice(0, 12).join('\n  ')}`,
      );
    }
    if (process.env.TEST_TIMES)
      console.log(`${((performance.now() - begin) / 1000).toFixed(1).padStart(6)} s  ${sentence}`);
  }
  console.log(`${passed + failed} tests: ${passed} passed, ${failed} failed, 0 skipped`);
  process.exitCode = Math.min(failed, 100);
  // A device, a server or a worker that is left open keeps the process for ever. After a failed
  // test that is no wonder.
  const late = setTimeout(() => {
    if (!failed) console.log('FAILED: something was not closed');
    process.exit(Math.max(1, process.exitCode));
  }, failed ? 1000 : 60_000);
  late.unref();
}
