// What a program does with a published SDK of MCP, feature by feature.
// usage: node sdk.mjs v1|v2 http|stdio legacy|auto|modern [FEATURE...]
//   MCP_CLIENTS: where the SDKs are; MCP_URL, MCP_KEY: the daemon's; MCP_COMMAND: a JSON array that starts `holt mcp`
//
// Prints what report.mjs prints.
import assert from 'node:assert/strict'
import { report } from '../../e2b/scenario/report.mjs'
import { connect, load } from './peer.mjs'

const [sdk, over, mode, ...wanted] = process.argv.slice(2)
const how = { sdk, over, mode, url: process.env.MCP_URL, key: process.env.MCP_KEY }
if (process.env.MCP_COMMAND) how.command = JSON.parse(process.env.MCP_COMMAND)
const { client } = await connect(how)
const v2 = sdk === 'v2'

const tool = (name, args = {}, options) =>
  v2 ? client.callTool({ name, arguments: args }, options) : client.callTool({ name, arguments: args }, undefined, options)

// What it gave, once it has gone well.
async function good(name, args, options) {
  const result = await tool(name, args, options)
  assert.ok(!result.isError, JSON.stringify(result.content))
  return result.structuredContent ?? result
}

const text = (result) => result.content.map((block) => block.text ?? '').join('')

// However slow the machine is; report.mjs has the deadline.
async function until(condition) {
  for (;;) {
    const value = await condition()
    if (value) return value
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const runs = async (word) => {
  const { stdout } = await good('exec', { command: `cat /proc/[0-9]*/cmdline | tr '\\0' ' '` })
  return stdout.replace(/cat \/proc[^\n]*/, '').includes(`sleep ${word}`)
}

const features = {
  'tools are listed': async () => {
    const { tools } = await client.listTools()
    const names = tools.map((t) => t.name)
    for (const name of ['exec', 'run_code', 'read_file', 'write_file', 'edit_file', 'list_dir', 'search_files',
      'process_start', 'process_output', 'process_input', 'process_kill', 'process_list', 'sandbox_create',
      'sandbox_list', 'sandbox_kill']) assert.ok(names.includes(name), `no ${name} in ${names}`)
    assert.ok(!names.some((name) => name.startsWith('test_')), 'fixtures of tests among the tools')
    for (const t of tools) {
      assert.equal(t.inputSchema.type, 'object')
      assert.ok(t.description && t.annotations, t.name)
    }
  },
  'a command runs': async () => {
    const result = await tool('exec', { command: 'echo out; echo err >&2; exit 42' })
    const got = result.structuredContent
    assert.deepEqual([got.stdout, got.stderr, got.exit_code], ['out\n', 'err\n', 42])
    assert.ok(text(result).includes('out'), text(result))
  },
  'the sandbox stays the same': async () => {
    const first = await good('exec', { command: 'echo kept > /workspace/kept' })
    const second = await good('exec', { command: 'cat /workspace/kept' })
    assert.equal(second.stdout, 'kept\n')
    assert.equal(second.sandbox_id, first.sandbox_id)
  },
  'wrong arguments are an error of the tool': async () => {
    const result = await tool('exec', { command: 7 })
    assert.equal(result.isError, true)
    assert.match(text(result), /command/)
  },
  'an unknown tool is an error of the protocol': async () => {
    await assert.rejects(tool('no_such_tool'), (error) => error.code === -32602)
  },
  'files are written, read, changed, listed and found': async () => {
    await good('write_file', { path: 'deep/er/note.txt', content: 'one\ntwo\n' })
    assert.match(text(await tool('read_file', { path: 'deep/er/note.txt', line_numbers: false })), /one\ntwo/)
    await good('edit_file', { path: 'deep/er/note.txt', old_text: 'two', new_text: 'three' })
    assert.match(text(await tool('read_file', { path: 'deep/er/note.txt' })), /three/)
    const { entries } = await good('list_dir', { path: 'deep/er' })
    assert.deepEqual(entries.map(({ name, type, size }) => [name, type, size]), [['note.txt', 'file', 10]])
    const found = await good('search_files', { path: 'deep', pattern: 'three' })
    assert.equal(found.matches.length, 1)
    assert.equal((await tool('read_file', { path: 'no/such/file' })).isError, true)
  },
  'code runs': async () => {
    const { stdout } = await good('run_code', { language: 'python', code: 'print(6 * 7)' })
    assert.equal(stdout, '42\n')
  },
  'a process is started, heard, told and killed': async () => {
    const { process_id: id } = await good('process_start',
      { command: 'read line; echo "got $line"; exec sleep 4711', stdin: true })
    await good('process_input', { process_id: id, text: 'hello\n' })
    await until(async () => (await good('process_output', { process_id: id })).stdout.includes('got hello'))
    const { processes } = await good('process_list')
    assert.ok(processes.some((p) => p.process_id === id), JSON.stringify(processes))
    await good('process_kill', { process_id: id })
    await until(async () => !(await runs('4711')))
  },
  'sandboxes are made, listed and killed': async () => {
    const { sandbox_id: id } = await good('sandbox_create', {})
    const { stdout } = await good('exec', { command: 'pwd', sandbox_id: id })
    assert.equal(stdout, '/workspace\n')
    const { sandboxes } = await good('sandbox_list')
    assert.ok(sandboxes.some((s) => s.sandbox_id === id), JSON.stringify(sandboxes))
    await good('sandbox_kill', { sandbox_id: id })
    assert.equal((await tool('exec', { command: 'true', sandbox_id: id })).isError, true)
  },
  'progress is told': async () => {
    const seen = []
    await good('exec', { command: 'for i in 1 2 3 4 5 6; do echo $i; sleep 0.5; done' },
      { onprogress: (p) => seen.push(p.progress) })
    assert.ok(seen.length > 0, 'no progress')
    assert.deepEqual(seen, [...seen].sort((a, b) => a - b))
    assert.equal(new Set(seen).size, seen.length, `not rising: ${seen}`)
  },
  'what is cancelled is killed, with what it started': async () => {
    const gone = new AbortController()
    const call = tool('exec', { command: 'sleep 4713 & sleep 4712' }, { signal: gone.signal, timeout: 80_000 })
    call.catch(() => {})
    await until(() => runs('4712'))
    gone.abort()
    await assert.rejects(call)
    await until(async () => !(await runs('4712')) && !(await runs('4713')))
  },
  'prompts are listed and given': async () => {
    const { prompts } = await client.listPrompts()
    assert.ok(prompts.length > 0)
    for (const prompt of prompts) {
      const args = Object.fromEntries((prompt.arguments ?? []).filter((a) => a.required).map((a) => [a.name, 'x']))
      const got = await client.getPrompt({ name: prompt.name, arguments: args })
      assert.ok(got.messages.length > 0, prompt.name)
    }
  },
  'files are resources': async () => {
    const { sandbox_id: id } = await good('exec', { command: 'echo resource > /workspace/r.txt' })
    const { resourceTemplates } = await client.listResourceTemplates()
    assert.ok(resourceTemplates.some((t) => t.uriTemplate.startsWith('sandbox://')), JSON.stringify(resourceTemplates))
    const { contents } = await client.readResource({ uri: `sandbox://${id}/files/workspace/r.txt` })
    assert.equal(contents[0].text, 'resource\n')
    await client.listResources()
    await assert.rejects(client.readResource({ uri: `sandbox://${id}/files/workspace/none` }))
  },
  'ten calls at once are answered': async () => {
    const all = await Promise.all([...Array(10).keys()].map((i) => good('exec', { command: `echo ${i}` })))
    assert.deepEqual(all.map((got) => got.stdout), [...Array(10).keys()].map((i) => `${i}\n`))
    assert.equal(new Set(all.map((got) => got.sandbox_id)).size, 1)
  },
}
if (mode === 'legacy') features['a ping is answered'] = () => client.ping()
if (v2) {
  features['skills are listed'] = async () => {
    const { SkillsClient } = await load('@modelcontextprotocol/client/ext/skills')
    const skills = new SkillsClient(client)
    assert.ok(skills.supported)
    await skills.list()
  }
}

await report(Object.entries(features).map(([name, run]) => ({ name, run })), wanted)
await client.close()
process.exit(0)
