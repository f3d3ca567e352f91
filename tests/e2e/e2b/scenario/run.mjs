// What a program does with E2B's SDK for JavaScript, feature by feature, with any published version of it.
// usage: node run.mjs VERSION [FEATURE...]       (E2B_CLIENTS: where the versions are installed)
//
// Prints what report.mjs prints. Absent means that this version of the SDK has no such call, by its own type
// declarations.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { World } from './world.mjs'
import { commands } from './commands.mjs'
import { files } from './files.mjs'
import { lifecycle } from './lifecycle.mjs'
import { report } from './report.mjs'
import { services } from './services.mjs'

const [version, ...wanted] = process.argv.slice(2)
const require = createRequire(`${process.env.E2B_CLIENTS}/npm/`)
const types = readFileSync(require.resolve(`e2b-${version}`).replace(/index\.js$/, 'index.d.ts'), 'utf8')
const world = new World(require(`e2b-${version}`), types, version)
const features = [...lifecycle, ...commands, ...files, ...services].map(({ name, has = [], run }) => ({
  name,
  run: () => run(world),
  absent: !has.every((pattern) => pattern.test(types)),
}))
await report(features, wanted)
await world.leave()
process.exit(0)
