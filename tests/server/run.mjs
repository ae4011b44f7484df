// Runs the tests of a client's package, an object of functions, and counts them for tests/run.sh.
import { createRequire } from 'node:module';

export const [packages, url] = process.argv.slice(2); // node SCRIPT PACKAGES URL
export const load = createRequire(`${packages}/`);

export async function run(tests) {
  let failed = 0;
  for (const [name, test] of Object.entries(tests)) {
    try {
      await test();
    } catch (e) {
      failed++;
      console.log(`[  FAILED  ] ${name}\n${e.stack}`);
    }
  }
  console.log(`[  PASSED  ] ${Object.keys(tests).length - failed} test(s).`);
  if (failed) console.log(`[  FAILED  ] ${failed} test(s)`);
  process.exit(failed ? 1 : 0);
}
