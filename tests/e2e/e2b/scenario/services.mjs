// Ports, templates, network, volumes, secrets, and what the SDK says when something is wrong.
import assert from 'node:assert/strict'
import { ask, failure, until } from './world.mjs'

async function port(w) {
  const box = await w.box()
  await box.files.write('site/index.html', 'hello from inside')
  const server = await box.commands.run('cd site && exec python3 -m http.server 8123', {
    background: true,
    timeoutMs: 0,
  })
  const url = `http://${box.getHost(8123)}/index.html`
  const answer = await until(async () => {
    const got = await ask(url)
    return got.status === 502 ? undefined : got
  }, 'the server in the sandbox')
  assert.deepEqual([answer.status, answer.text], [200, 'hello from inside'])
  await server.kill()
  await failure(server.wait())
  const closed = await ask(`http://${box.getHost(8124)}/`)
  assert.equal(closed.status, 502)
  assert.equal(JSON.parse(closed.text).code, 502)
}

async function network(w) {
  const box = await w.create()
  await box.updateNetwork({ denyOut: ['0.0.0.0/0'] })
}

async function build(w) {
  const { Template } = w.sdk
  const name = `holt-test-${w.mark}`.replaceAll('.', '-')
  const steps = Template().fromTemplate('base').setEnvs({ MADE: 'yes' }).runCmd('echo built > ~/built.txt')
  await Template.build(steps, ...(w.has(/static build\([^)]*name: string/) ? [name, {}] : [{ alias: name }]))
  const box = w.keep(await w.Sandbox.create(name, { timeoutMs: 120_000 }))
  assert.equal((await box.commands.run('cat ~/built.txt')).stdout, 'built\n')
  if (Template.exists) assert.equal(await Template.exists(name), true)
  await box.kill()
}

async function volume(w) {
  const { Volume } = w.sdk
  const name = `test-${w.mark}`.replaceAll('.', '-')
  const made = await Volume.create(name)
  const found = await Volume.list()
  assert.ok(found.some((item) => item.volumeId === made.volumeId))
  const box = await w.create({ volumeMounts: { '/mnt/v': made } })
  await box.commands.run('echo there > /mnt/v/f')
  await box.kill()
  const other = await w.create({ volumeMounts: { '/mnt/v': made } })
  assert.equal((await other.commands.run('cat /mnt/v/f')).stdout, 'there\n')
  await other.kill()
  assert.equal(await Volume.destroy(made.volumeId), true)
}

async function volumeFiles(w) {
  const { Volume } = w.sdk
  const made = await Volume.create(`files-${w.mark}`.replaceAll('.', '-'))
  await made.makeDir('/a/b', { force: true })
  assert.equal((await made.writeFile('/a/b/f', 'from outside')).path, '/a/b/f')
  await made.writeFile('/bytes', new Blob([new Uint8Array([0, 255, 1])]), { mode: 0o600 })
  assert.equal((await made.getInfo('/bytes')).mode, 0o600)
  assert.deepEqual([...(await made.readFile('/bytes', { format: 'bytes' }))], [0, 255, 1])
  const box = await w.create({ volumeMounts: { '/mnt/v': made } })
  assert.equal((await box.commands.run('cat /mnt/v/a/b/f; echo inside > /mnt/v/g')).stdout, 'from outside')
  assert.equal(await made.readFile('/g'), 'inside\n')
  await box.kill()
  assert.deepEqual((await made.list('/a', { depth: 2 })).map((item) => item.path), ['/a/b', '/a/b/f'])
  assert.equal((await made.updateMetadata('/g', { mode: 0o640 })).mode, 0o640)
  await made.remove('/a')
  assert.equal(await made.exists('/a'), false)
  assert.match((await failure(made.readFile('/a'))).message, /not found/)
  assert.equal(await (await Volume.connect(made.volumeId)).readFile('/g'), 'inside\n')
  assert.equal(await Volume.destroy(made.volumeId), true)
}

async function secret(w) {
  const { Secret } = w.sdk
  const name = `test_${w.mark}`.replaceAll(/[.-]/g, '_')
  const made = await Secret.create(name, 'very quiet', { metadata: { for: 'tests' } })
  assert.equal(await Secret.exists(name), true)
  const changed = await Secret.update(made.secretId, 'quieter')
  assert.deepEqual([changed.version, changed.metadata], [made.version + 1, { for: 'tests' }])
  assert.deepEqual(await Secret.getInfo(name), changed)
  const found = []
  for (const pages = Secret.list({ limit: 1 }); pages.hasNext; ) found.push(...(await pages.nextItems()))
  assert.ok(found.some((one) => one.secretId === made.secretId))
  const network = { rules: { 'a.test': [{ transform: { headers: { key: Secret.fill(name) } } }] } }
  assert.match((await failure(w.create({ network }))).message, /network\.rules/)
  assert.equal(await Secret.destroy(name), true)
  assert.equal(await Secret.exists(name), false)
}

async function noSandbox(w) {
  const error = await failure(w.Sandbox.connect('nosuchsandbox0000'))
  assert.ok(error instanceof (w.sdk.SandboxNotFoundError ?? w.sdk.NotFoundError), error.name)
}

async function noTemplate(w) {
  const error = await failure(w.Sandbox.create('no-such-template'))
  assert.match(error.message, /no-such-template/)
}

// The only one that fails to be let in: all clients of a test have one address, which may fail 20 times a minute.
async function badKey(w) {
  const apiKey = 'e2b_' + '0'.repeat(40)
  const error = await failure(w.Sandbox.create('base', { apiKey }))
  assert.ok(error instanceof w.sdk.AuthenticationError, `${error.name}: ${error.message}`)
}

async function badCwd(w) {
  const box = await w.box()
  const error = await failure(box.commands.run('true', { cwd: '/no/such' }))
  assert.match(error.message, /\/no\/such/)
}

export const services = [
  { name: 'ports by getHost', run: port },
  { name: 'network rules', has: [/\bupdateNetwork\(/], run: network },
  { name: 'template build', run: build },
  { name: 'volumes', has: [/class Volume /], run: volume },
  { name: 'files of volumes', has: [/class Volume /], run: volumeFiles },
  { name: 'secrets', has: [/class Secret /, /static create\(name: string, value: string/], run: secret },
  { name: 'error: no such sandbox', run: noSandbox },
  { name: 'error: no such template', run: noTemplate },
  { name: 'error: bad key', run: badKey },
  { name: 'error: bad directory', run: badCwd },
]
