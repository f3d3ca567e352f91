// What a program does with E2B's SDK for JavaScript, feature by feature, with any published version of it.
// usage: node run.mjs VERSION [FEATURE...]       (E2B_CLIENTS: where the versions are installed)
//
// Prints a line of JSON a feature: {"feature":…, "result":"ok" | "failed" | "absent", "error":…}. Absent means that
// this version of the SDK has no such call, by its own type declarations.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { World } from './world.mjs'
import { commands } from './commands.mjs'
import { files } from './files.mjs'
import { lifecycle } from './lifecycle.mjs'
import { services } from './services.mjs'

const LONGEST = 90_000 // ms for a feature, on a busy machine

const features = [...lifecycle, ...commands, ...files, ...services]

function deadline(ms) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${ms} ms`)), ms)
  })
  return { late, off: () => clearTimeout(timer) }
}

async function attempt(world, feature) {
  const { late, off } = deadline(LONGEST)
  try {
    await Promise.race([feature.run(world), late])
    return { result: 'ok' }
  } catch (error) {
    return { result: 'failed', error: `${error.name}: ${error.message}`.slice(0, 2000), stack: error.stack }
  } finally {
    off()
  }
}

function say(feature, outcome) {
  const line = { feature, ...outcome }
  if (!process.env.E2B_STACKS) delete line.stack
  process.stdout.write(JSON.stringify(line) + '\n')
}

async function main([version, ...wanted]) {
  const require = createRequire(`${process.env.E2B_CLIENTS}/npm/`)
  const sdk = require(`e2b-${version}`)
  const types = readFileSync(require.resolve(`e2b-${version}`).replace(/index\.js$/, 'index.d.ts'), 'utf8')
  const world = new World(sdk, types, version)
  for (const feature of features) {
    if (wanted.length && !wanted.includes(feature.name)) continue
    if (!(feature.has ?? []).every((pattern) => pattern.test(types))) {
      say(feature.name, { result: 'absent' })
      continue
    }
    const start = performance.now()
    say(feature.name, { ...(await attempt(world, feature)), ms: Math.round(performance.now() - start) })
  }
  await world.leave()
}

// A promise that nobody awaits and that fails is the program's fault, and must be seen.
process.on('unhandledRejection', (error) => {
  say('no stray errors', { result: 'failed', error: String(error), stack: error?.stack })
})
await main(process.argv.slice(2))
process.exit(0)
