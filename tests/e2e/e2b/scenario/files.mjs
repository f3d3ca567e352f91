// Files of a sandbox.
import assert from 'node:assert/strict'
import { ask, failure, until } from './world.mjs'

const BYTES = Uint8Array.from({ length: 70_000 }, (_, i) => (i * 7) % 256)

async function text(w) {
  const box = await w.box()
  const made = await box.files.write('a/b.txt', 'grüße')
  assert.equal(made.path, '/home/user/a/b.txt')
  assert.equal(await box.files.read('a/b.txt'), 'grüße')
  await box.files.write('empty', '')
  assert.equal(await box.files.read('empty'), '')
  assert.equal((await box.commands.run('stat -c %U a/b.txt')).stdout, 'user\n')
}

async function bytes(w) {
  const box = await w.box()
  await box.files.write('bytes', BYTES.buffer)
  assert.deepEqual(await box.files.read('bytes', { format: 'bytes' }), BYTES)
}

async function blob(w) {
  const box = await w.box()
  await box.files.write('blob', new Blob([BYTES]))
  const read = await box.files.read('blob', { format: 'blob' })
  assert.deepEqual(new Uint8Array(await read.arrayBuffer()), BYTES)
}

async function stream(w) {
  const box = await w.box()
  await box.files.write('stream', new Blob([BYTES]).stream())
  const parts = []
  for await (const part of await box.files.read('stream', { format: 'stream' })) parts.push(part)
  assert.deepEqual(new Uint8Array(Buffer.concat(parts)), BYTES)
}

async function many(w) {
  const box = await w.box()
  const made = await box.files.write([
    { path: 'many/1', data: 'one' },
    { path: 'many/2', data: 'two' },
  ])
  assert.equal(made.length, 2)
  assert.deepEqual([await box.files.read('many/1'), await box.files.read('many/2')], ['one', 'two'])
}

async function gzip(w) {
  const box = await w.box()
  const data = 'again and again '.repeat(10_000)
  await box.files.write('zipped', data, { gzip: true })
  assert.equal(await box.files.read('zipped', { gzip: true }), data)
  assert.equal((await box.files.getInfo('zipped')).size, data.length)
}

async function octets(w) {
  const box = await w.box()
  await box.files.write('octets', BYTES.buffer, { useOctetStream: true })
  assert.deepEqual(await box.files.read('octets', { format: 'bytes' }), BYTES)
}

async function metadata(w) {
  const box = await w.box()
  await box.files.write('marked', 'x', { metadata: { colour: 'red' } })
  assert.deepEqual((await box.files.getInfo('marked')).metadata, { colour: 'red' })
  await box.files.write('marked', 'x', { metadata: { size: 'big' } })
  assert.deepEqual((await box.files.getInfo('marked')).metadata, { size: 'big' })
}

async function manage(w) {
  const box = await w.box()
  assert.equal(await box.files.makeDir('dir/inner'), true)
  assert.equal(await box.files.makeDir('dir/inner'), false)
  await box.files.write('dir/inner/f', '123')
  const listed = await box.files.list('dir', { depth: 2 })
  assert.deepEqual(listed.map((entry) => [entry.path, entry.type]).sort(), [
    ['/home/user/dir/inner', 'dir'],
    ['/home/user/dir/inner/f', 'file'],
  ])
  const moved = await box.files.rename('dir/inner/f', 'dir/g')
  assert.equal(moved.path, '/home/user/dir/g')
  assert.equal(await box.files.exists('dir/inner/f'), false)
  await box.files.remove('dir')
  assert.equal(await box.files.exists('dir'), false)
}

async function info(w) {
  const box = await w.box()
  await box.files.write('told', '12345')
  await box.commands.run('chmod 640 told; ln -sf told link')
  const told = await box.files.getInfo('told')
  assert.deepEqual([told.size, told.permissions, told.owner, told.group], [5, '-rw-r-----', 'user', 'user'])
  assert.equal(told.mode & 0o777, 0o640)
  assert.ok(Math.abs(told.modifiedTime - Date.now()) < 600_000)
  assert.equal((await box.files.getInfo('link')).symlinkTarget, '/home/user/told')
}

async function missing(w) {
  const box = await w.box()
  const error = await failure(box.files.read('not/there'))
  assert.ok(error instanceof w.sdk.NotFoundError || error instanceof w.sdk.FileNotFoundError, error.name)
  assert.equal(await box.files.exists('not/there'), false)
}

async function watched(w, dir, opts, name) {
  const box = await w.box()
  await box.files.makeDir(`${dir}/inner`)
  const events = []
  const handle = await box.files.watchDir(dir, (event) => events.push(event), opts)
  await box.files.write(`${dir}/${name}`, 'x')
  const event = await until(() => events.find((item) => item.name === name && item.type === 'write'), 'the event')
  await handle.stop()
  return event
}

async function watch(w) {
  await watched(w, 'watched', {}, 'f')
}

async function watchDeep(w) {
  await watched(w, 'watched-deep', { recursive: true }, 'inner/f')
}

async function watchEntry(w) {
  const event = await watched(w, 'watched-entry', { includeEntry: true }, 'f')
  assert.equal(event.entry.path, '/home/user/watched-entry/f')
}

async function signed(w) {
  const box = await w.box()
  await box.files.write('shared.txt', 'for all')
  const good = await box.downloadUrl('shared.txt', { useSignatureExpiration: 600 })
  assert.equal((await ask(good)).text, 'for all')
  const form = new Response(formOf('by link'))
  const sent = await ask(await box.uploadUrl('sent.txt'), {
    method: 'POST',
    headers: { 'content-type': form.headers.get('content-type') },
    body: Buffer.from(await form.arrayBuffer()),
  })
  assert.equal(sent.status, 200, sent.text)
  assert.equal(await box.files.read('sent.txt'), 'by link')
}

function formOf(text) {
  const form = new FormData()
  form.append('file', new Blob([text]), 'sent.txt')
  return form
}

export const files = [
  { name: 'files as text', run: text },
  { name: 'files as bytes', run: bytes },
  { name: 'files as blobs', run: blob },
  { name: 'files as streams', run: stream },
  { name: 'many files at once', run: many },
  { name: 'gzip', has: [/gzip\?: boolean/], run: gzip },
  { name: 'octet streams', has: [/useOctetStream\?: boolean/], run: octets },
  { name: 'metadata of files', has: [/interface FilesystemWriteOpts[^}]*metadata\?: Record/], run: metadata },
  { name: 'list, rename, remove', run: manage },
  { name: 'info of files', run: info },
  { name: 'files that are missing', run: missing },
  { name: 'watch', run: watch },
  { name: 'watch a tree', run: watchDeep },
  { name: 'watch with entries', has: [/includeEntry\?: boolean/], run: watchEntry },
  { name: 'signed URLs', run: signed },
]
