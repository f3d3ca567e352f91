// Making, finding, pausing, copying and ending sandboxes.
import assert from 'node:assert/strict'
import { failure, until } from './world.mjs'

async function create(w) {
  const box = await w.create({ envs: { HELLO: 'there' } })
  assert.match(box.sandboxId, /^[a-z0-9]+$/)
  assert.equal((await box.commands.run('echo $HELLO')).stdout, 'there\n')
  assert.equal(await box.isRunning(), true)
}

async function connect(w) {
  const box = await w.box()
  const same = await w.Sandbox.connect(box.sandboxId)
  assert.equal(same.sandboxId, box.sandboxId)
  assert.equal((await same.commands.run('echo again')).stdout, 'again\n')
}

async function info(w) {
  const box = await w.create({ metadata: { who: w.mark } })
  const found = await box.getInfo()
  assert.equal(found.sandboxId, box.sandboxId)
  assert.equal(found.metadata.who, w.mark)
  assert.equal(found.state, 'running')
  assert.ok(found.endAt > found.startedAt)
  assert.ok(found.cpuCount > 0 && found.memoryMB > 0)
}

async function pages(paginator) {
  const items = []
  while (paginator.hasNext) items.push(...(await paginator.nextItems()))
  return items.map((item) => item.sandboxId)
}

async function list(w) {
  const metadata = { group: `a b&c=${w.mark}` }
  const first = await w.create({ metadata })
  const second = await w.create({ metadata })
  const found = await pages(w.Sandbox.list({ query: { metadata }, limit: 1 }))
  assert.deepEqual(found.sort(), [first.sandboxId, second.sandboxId].sort())
  assert.deepEqual(await pages(w.Sandbox.list({ query: { metadata, state: ['paused'] } })), [])
}

async function setTimeout_(w) {
  const box = await w.create({ timeoutMs: 60_000 })
  const before = (await box.getInfo()).endAt
  await box.setTimeout(600_000)
  assert.ok((await box.getInfo()).endAt > before)
  await box.setTimeout(1_000)
  await until(async () => !(await box.isRunning()), 'the end of its time')
}

async function kill(w) {
  const box = await w.create()
  await box.kill() // the oldest say nothing of whether it was there
  assert.equal(await w.Sandbox.kill(box.sandboxId), false)
  assert.equal(await box.isRunning(), false)
  const error = await failure(w.Sandbox.connect(box.sandboxId))
  assert.ok(error instanceof (w.sdk.SandboxNotFoundError ?? w.sdk.NotFoundError), error.name)
}

async function pauseAndResume(w) {
  const box = await w.create()
  await box.files.write('kept.txt', 'kept')
  const running = await box.commands.run('sleep 600', { background: true, timeoutMs: 0 })
  await w.pause(box)
  assert.equal((await w.Sandbox.getInfo(box.sandboxId)).state, 'paused')
  const again = await w.Sandbox.connect(box.sandboxId, { timeoutMs: 120_000 })
  assert.equal(await again.files.read('kept.txt'), 'kept')
  const pids = (await again.commands.list()).map((item) => item.pid)
  assert.ok(pids.includes(running.pid), 'the process has gone on')
  running.wait().catch(() => {})
  await again.kill()
}

async function pauseWithoutMemory(w) {
  const box = await w.create()
  await box.files.write('kept.txt', 'kept')
  await w.pause(box, { keepMemory: false })
  assert.equal((await w.Sandbox.getInfo(box.sandboxId)).state, 'paused')
  const again = await w.Sandbox.connect(box.sandboxId)
  assert.equal(await again.files.read('kept.txt'), 'kept')
  await again.kill()
}

// Its time is cut short when all is written: however slow the machine is, it is not over before.
async function pausing(w, more = {}) {
  const opts = { timeoutMs: 300_000 }
  const box = w.has(/lifecycle\?: SandboxLifecycle/)
    ? await w.Sandbox.create('base', { ...opts, lifecycle: { onTimeout: 'pause', ...more } })
    : await w.Sandbox.betaCreate('base', { ...opts, autoPause: true })
  w.keep(box)
  await box.files.write('kept.txt', 'kept')
  await box.setTimeout(1_000)
  await until(async () => (await w.Sandbox.getInfo(box.sandboxId)).state === 'paused', 'its being paused')
  return box
}

async function autoPause(w) {
  const box = await pausing(w)
  const again = await w.Sandbox.connect(box.sandboxId)
  assert.equal(await again.files.read('kept.txt'), 'kept')
}

async function autoResume(w) {
  const box = await pausing(w, { autoResume: true })
  assert.equal(await box.files.read('kept.txt'), 'kept')
}

async function snapshot(w) {
  const box = await w.create()
  await box.files.write('made.txt', 'before')
  const made = await box.createSnapshot()
  await box.files.write('made.txt', 'after')
  const other = w.keep(await w.Sandbox.create(made.snapshotId, { timeoutMs: 120_000 }))
  assert.equal(await other.files.read('made.txt'), 'before')
  await other.kill()
  assert.equal(await w.Sandbox.deleteSnapshot(made.snapshotId), true)
  assert.equal(await w.Sandbox.deleteSnapshot(made.snapshotId), false)
}

async function fork(w) {
  const box = await w.create()
  await box.files.write('made.txt', 'before')
  const copies = await box.fork({ count: 2 })
  assert.equal(copies.length, 2)
  for (const copy of copies) {
    if (copy instanceof Error) throw copy
    w.keep(copy)
    assert.equal(await copy.files.read('made.txt'), 'before')
  }
  await copies[0].files.write('made.txt', 'after')
  assert.equal(await box.files.read('made.txt'), 'before')
}

async function metrics(w) {
  const box = await w.box()
  const found = await until(async () => {
    const series = await box.getMetrics()
    return series.length ? series : undefined
  }, 'a first sample')
  assert.ok(found[0].memTotal > 0 && found[0].cpuCount > 0, JSON.stringify(found[0]))
  if (!w.isSince(2, 30)) return // they forget to send the range
  assert.deepEqual(await box.getMetrics({ start: new Date(0), end: new Date(1000) }), [])
}

export const lifecycle = [
  { name: 'create', run: create },
  { name: 'connect', run: connect },
  { name: 'info', run: info },
  { name: 'list, filter, pages', run: list },
  { name: 'timeout', run: setTimeout_ },
  { name: 'kill', run: kill },
  { name: 'pause, resume', run: pauseAndResume },
  { name: 'pause without memory', has: [/keepMemory\?: boolean/], run: pauseWithoutMemory },
  { name: 'auto-pause', run: autoPause },
  { name: 'auto-resume', has: [/autoResume\?: boolean/], run: autoResume },
  { name: 'snapshot', has: [/\bcreateSnapshot\(/], run: snapshot },
  { name: 'fork', has: [/\bfork\(/], run: fork },
  { name: 'metrics', run: metrics },
]
