// A program that E2B's SDK serves while something goes wrong. What it knows it prints as JSON, a line each.
// usage: node fault.mjs begin | again ID PID | vanish | full | flood BYTES | crowd COUNT
import { createRequire } from 'node:module'
import { failure, until } from './world.mjs'

const require = createRequire(`${process.env.E2B_CLIENTS}/npm/`)
const { NotEnoughSpaceError, Sandbox } = require('e2b')

const say = (value) => process.stdout.write(JSON.stringify(value) + '\n')
const STEADY = 'echo first; until [ -e go ]; do sleep 0.1; done; echo last'

async function started() {
  const box = await Sandbox.create('base', { timeoutMs: 600_000 })
  const handle = await box.commands.run(STEADY, { background: true, timeoutMs: 0 })
  await until(() => handle.stdout === 'first\n', 'its first line')
  say({ id: box.sandboxId, pid: handle.pid })
  return handle
}

const parts = {
  // Follows a command until its server is no more.
  async begin() {
    const handle = await started()
    const error = await failure(handle.wait())
    say({ error: error.name, message: error.message })
  },

  // Comes back to it: everything it has said is there, and it goes on.
  async again(id, pid) {
    const box = await Sandbox.connect(id)
    const handle = await box.commands.connect(Number(pid), { timeoutMs: 0 })
    await box.files.write('go', '')
    const done = await handle.wait()
    say({ stdout: done.stdout, exitCode: done.exitCode })
    await box.kill()
  },

  // Is gone without a word.
  async vanish() {
    await started()
    process.kill(process.pid, 'SIGKILL')
  },

  async full() {
    const box = await Sandbox.create('base')
    const error = await failure(box.files.write('large', 'x'.repeat(64 << 20)))
    say({ error: error.name, right: error instanceof NotEnoughSpaceError, message: error.message })
    await box.files.write('small', 'fits')
    say({ small: await box.files.read('small') })
    await box.kill()
  },

  // More output than is kept of any command reaches who follows it.
  async flood(bytes) {
    const box = await Sandbox.create('base')
    let seen = 0
    const handle = await box.commands.run(`head -c ${bytes} /dev/zero | tr '\\0' x`, {
      background: true,
      timeoutMs: 0,
      onStdout: (text) => (seen += text.length),
    })
    const done = await handle.wait()
    say({ seen, exitCode: done.exitCode })
    await box.kill()
  },

  async crowd(count) {
    const ends = await Promise.allSettled(
      Array.from({ length: Number(count) }, async (_, i) => {
        const box = await Sandbox.create('base', { timeoutMs: 600_000, requestTimeoutMs: 300_000 })
        const done = await box.commands.run(`echo ${i}`, { timeoutMs: 0, requestTimeoutMs: 300_000 })
        await box.kill({ requestTimeoutMs: 300_000 })
        if (done.stdout !== `${i}\n`) throw new Error(`it said ${done.stdout}`)
      }),
    )
    const failed = ends.filter((end) => end.status === 'rejected').map((end) => String(end.reason))
    say({ good: ends.length - failed.length, failed })
  },
}

const [name, ...args] = process.argv.slice(2)
await parts[name](...args)
process.exit(0)
