// Times E2B's published SDK against Holt and against the stub, in turn, so that whatever the machine does meanwhile
// falls on both. usage: node measure.mjs HOLT-URL STUB-URL RUNS        (E2B_CLIENTS, E2B_API_KEY)
//
// Prints one JSON object: for each row {"holt":[ms…], "stub":[ms…]}, and the number of sandboxes that came when
// CROWD were asked for at once.
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { promisify } from 'node:util'

const CROWD = 100
const TURN = 10 // runs of one before the other's

const [holtUrl, stubUrl, runsText] = process.argv.slice(2)
const runs = Number(runsText)
const apiKey = process.env.E2B_API_KEY
const require = createRequire(`${process.env.E2B_CLIENTS}/npm/`)
const { Sandbox } = require('e2b')
const { e2b } = require('@computesdk/e2b')
const run = promisify(execFile)

// Which server is meant goes by the environment, as users set it.
function pointAt(url) {
  process.env.E2B_API_URL = url
  process.env.E2B_SANDBOX_URL = url
}

async function timed(work) {
  const start = performance.now()
  await work()
  return performance.now() - start
}

async function inTurn(sides, count) {
  const times = Object.fromEntries(Object.keys(sides).map((name) => [name, []]))
  for (let done = -TURN; done < count; done += TURN) { // the first turn warms up and is not counted
    for (const [name, side] of Object.entries(sides)) {
      for (let i = 0; i < TURN; i++) {
        const ms = await side()
        if (done >= 0) times[name].push(ms)
      }
    }
  }
  return times
}

// What the SDK has run in the sandbox, without one; a home of its own, so that nobody's profile counts.
const env = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: mkdtempSync(`${tmpdir()}/holt-bench.`) }
const bare = (command) => timed(() => run('/bin/bash', ['-l', '-c', command], { env }))

async function commands() {
  const boxes = {}
  for (const [name, url] of [['holt', holtUrl], ['stub', stubUrl]]) {
    pointAt(url)
    boxes[name] = await Sandbox.create({ apiKey, timeoutMs: 600_000 })
  }
  const times = await inTurn(
    {
      holt: () => timed(() => boxes.holt.commands.run('true')),
      stub: () => timed(() => boxes.stub.commands.run('true')),
      bare: () => bare('true'),
    },
    runs,
  )
  await boxes.holt.kill()
  return times
}

// As ComputeSDK's benchmark does it: from the call of create() to the end of the first command, `node -v`; the
// sandbox is destroyed after that, and the next one begins.
async function firstCommand(url, command = 'node -v') {
  pointAt(url)
  const compute = e2b({ apiKey })
  const start = performance.now()
  const sandbox = await compute.sandbox.create()
  const result = await sandbox.runCommand(command)
  const ms = performance.now() - start
  if (result.exitCode !== 0) throw new Error(`${command} ended with ${result.exitCode}: ${result.stderr}`)
  await sandbox.destroy()
  return ms
}

async function crowd() {
  pointAt(holtUrl)
  const start = performance.now()
  const ends = await Promise.allSettled(
    Array.from({ length: CROWD }, async (_, i) => {
      const box = await Sandbox.create({ apiKey, timeoutMs: 300_000 })
      const done = await box.commands.run(`echo ${i}`)
      if (done.stdout !== `${i}\n`) throw new Error(`sandbox ${i} said ${done.stdout}`)
      return { box, ms: performance.now() - start }
    }),
  )
  const good = ends.filter((end) => end.status === 'fulfilled').map((end) => end.value)
  await Promise.all(good.map((item) => item.box.kill()))
  return {
    asked: CROWD,
    came: good.length,
    times: good.map((item) => item.ms),
    errors: ends.filter((end) => end.status === 'rejected').map((end) => String(end.reason)),
  }
}

const report = {
  run: await commands(),
  tti: await inTurn(
    { holt: () => firstCommand(holtUrl), stub: () => firstCommand(stubUrl), bare: () => bare('node -v') },
    runs,
  ),
  small: await inTurn(
    { holt: () => firstCommand(holtUrl, 'true'), stub: () => firstCommand(stubUrl, 'true'), bare: () => bare('true') },
    runs,
  ),
  crowd: await crowd(),
}
rmSync(env.HOME, { recursive: true })
process.stdout.write(JSON.stringify(report) + '\n')
process.exit(0)
