// Programs in a sandbox: their output, input, terminals and ends.
import assert from 'node:assert/strict'
import { failure, until } from './world.mjs'

async function run(w) {
  const box = await w.box()
  const done = await box.commands.run('echo out; echo err >&2')
  assert.deepEqual([done.exitCode, done.stdout, done.stderr], [0, 'out\n', 'err\n'])
}

async function streams(w) {
  const box = await w.box()
  const out = []
  const err = []
  await box.commands.run('for i in 1 2 3; do echo $i; echo e$i >&2; done', {
    onStdout: (text) => out.push(text),
    onStderr: (text) => err.push(text),
  })
  assert.equal(out.join(''), '1\n2\n3\n')
  assert.equal(err.join(''), 'e1\ne2\ne3\n')
}

async function options(w) {
  const box = await w.box()
  const done = await box.commands.run('echo $A $(pwd) $(whoami)', { envs: { A: 'b c' }, cwd: '/tmp' })
  assert.equal(done.stdout, 'b c /tmp user\n')
  assert.equal((await box.commands.run('pwd')).stdout, '/home/user\n')
}

async function root(w) {
  const box = await w.box()
  assert.equal((await box.commands.run('whoami', { user: 'root' })).stdout, 'root\n')
  assert.equal((await box.commands.run('sudo whoami')).stdout, 'root\n')
  await box.commands.run('sudo sh -c "echo x > /0"')
}

async function fails(w) {
  const box = await w.box()
  const error = await failure(box.commands.run('echo no >&2; exit 3'))
  assert.ok(error instanceof w.sdk.CommandExitError, error.name)
  assert.deepEqual([error.exitCode, error.stderr, error.error], [3, 'no\n', 'exit status 3'])
}

async function timeout(w) {
  const box = await w.box()
  const error = await failure(box.commands.run('sleep 600', { timeoutMs: 500 }))
  assert.ok(error instanceof w.sdk.TimeoutError, `${error.name}: ${error.message}`)
}

async function background(w) {
  const box = await w.box()
  const handle = await box.commands.run('echo begun; sleep 0.2; echo done', { background: true })
  assert.ok(handle.pid > 0)
  const done = await handle.wait()
  assert.equal(done.stdout, 'begun\ndone\n')
}

// Beyond E2B: what was said before and after is not lost to who comes back.
async function reconnect(w) {
  const box = await w.box()
  const handle = await box.commands.run('echo first; read line; echo last $line', { background: true, stdin: true })
  await until(() => handle.stdout === 'first\n', 'its first line')
  await handle.disconnect()
  handle.wait().catch(() => {})
  const again = await box.commands.connect(handle.pid)
  await box.commands.sendStdin(handle.pid, 'word\n')
  assert.equal((await again.wait()).stdout, 'first\nlast word\n')
  const late = await box.commands.connect(handle.pid)
  assert.equal((await late.wait()).stdout, 'first\nlast word\n')
}

async function stdin(w) {
  const box = await w.box()
  const handle = await box.commands.run('read a; echo "got $a"', { background: true, stdin: true })
  await box.commands.sendStdin(handle.pid, 'line\n')
  assert.equal((await handle.wait()).stdout, 'got line\n')
}

async function closeStdin(w) {
  const box = await w.box()
  const handle = await box.commands.run('cat', { background: true, stdin: true })
  await box.commands.sendStdin(handle.pid, 'all of it')
  await box.commands.closeStdin(handle.pid)
  assert.equal((await handle.wait()).stdout, 'all of it')
}

async function killCommand(w) {
  const box = await w.box()
  const handle = await box.commands.run('sleep 600', { background: true, timeoutMs: 0 })
  assert.equal(await handle.kill(), true)
  const error = await failure(handle.wait())
  assert.ok(error instanceof w.sdk.CommandExitError, `${error.name}: ${error.message}`)
  assert.equal(error.error, 'signal: killed')
  assert.equal(await box.commands.kill(999_999), false)
}

async function list(w) {
  const box = await w.box()
  const handle = await box.commands.run('sleep 601', { background: true, envs: { A: 'b' }, cwd: '/tmp' })
  const found = (await box.commands.list()).find((item) => item.pid === handle.pid)
  assert.deepEqual([found.cmd, found.args, found.cwd], ['/bin/bash', ['-l', '-c', 'sleep 601'], '/tmp'])
  assert.equal(found.envs.A, 'b')
  await handle.kill()
  await failure(handle.wait())
}

async function muchOutput(w) {
  const box = await w.box()
  const done = await box.commands.run('head -c 3000000 /dev/zero | tr "\\0" x', { timeoutMs: 60_000 })
  assert.equal(done.stdout.length, 3_000_000)
}

// Between a sandbox's end and a broken line the SDK tells the difference by asking for its health.
async function killedWhileStreaming(w) {
  const box = await w.create()
  const handle = await box.commands.run('echo on; sleep 600', { background: true, timeoutMs: 0 })
  await until(() => handle.stdout === 'on\n', 'its first line')
  const end = failure(handle.wait())
  await box.kill()
  const error = await end
  if (w.has(/checkHealth/)) assert.match(error.message, /killed or reached its end of life|sandbox/i)
  assert.ok(!(error instanceof w.sdk.CommandExitError), `${error.name}: ${error.message}`)
}

async function pty(w) {
  const box = await w.box()
  let seen = ''
  const decoder = new TextDecoder()
  const handle = await box.pty.create({
    cols: 80,
    rows: 24,
    onData: (bytes) => (seen += decoder.decode(bytes, { stream: true })),
    timeoutMs: 0,
  })
  const say = (text) => box.pty.sendInput(handle.pid, new TextEncoder().encode(text))
  await say('echo $((6*7))-$TERM; stty size\n')
  await until(() => /42-xterm-256color/.test(seen) && /24 80/.test(seen), `the terminal's answer in ${seen}`)
  await box.pty.resize(handle.pid, { cols: 100, rows: 30 })
  await say('stty size\n')
  await until(() => /30 100/.test(seen), 'the new size')
  await say('exit\n')
  await handle.wait()
}

async function ptyKill(w) {
  const box = await w.box()
  const handle = await box.pty.create({ cols: 80, rows: 24, onData: () => {}, timeoutMs: 0 })
  assert.equal(await box.pty.kill(handle.pid), true)
  await failure(handle.wait())
}

async function git(w) {
  const box = await w.box()
  await box.git.init('/tmp/repo')
  await box.files.write('/tmp/repo/a', 'x')
  const status = await box.git.status('/tmp/repo')
  assert.equal(status.fileStatus?.length ?? status.files?.length, 1)
}

export const commands = [
  { name: 'run', run },
  { name: 'streamed output', run: streams },
  { name: 'env, cwd', run: options },
  { name: 'root and sudo', run: root },
  { name: 'exit code', run: fails },
  { name: 'command timeout', run: timeout },
  { name: 'background', run: background },
  { name: 'reconnect with replay', run: reconnect },
  { name: 'stdin', run: stdin },
  { name: 'close stdin', has: [/\bcloseStdin\(/], run: closeStdin },
  { name: 'kill a command', run: killCommand },
  { name: 'list commands', run: list },
  { name: '3 MB of output', run: muchOutput },
  { name: 'kill while streaming', run: killedWhileStreaming },
  { name: 'terminal', run: pty },
  { name: 'kill a terminal', run: ptyKill },
  { name: 'git', has: [/class Git /], run: git },
]
