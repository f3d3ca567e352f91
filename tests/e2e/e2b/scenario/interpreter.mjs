// What a program does with E2B's code interpreter for JavaScript; prints what run.mjs prints.
// usage: node interpreter.mjs [FEATURE...]
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { report } from './report.mjs'

const require = createRequire(`${process.env.E2B_CLIENTS}/npm/`)
const { Sandbox } = require('@e2b/code-interpreter')

const CHARTS = {
  line: 'plt.plot([1, 2, 3], [4, 5, 6])',
  scatter: 'plt.scatter([1, 2, 3], [4, 5, 6])',
  bar: 'plt.bar(["a", "b"], [1, 2])',
  pie: 'plt.pie([1, 2], labels=["a", "b"])',
  box_and_whisker: 'plt.boxplot([[1, 2, 3], [2, 3, 4]])',
  superchart: 'f, (a, b) = plt.subplots(1, 2); a.plot([1], [2]); b.bar(["x"], [1])',
}

async function stateful(box) {
  await box.runCode('x = 20')
  const done = await box.runCode('x + 22')
  assert.equal(done.text, '42')
  assert.equal(done.error, undefined)
}

async function streams(box) {
  const out = []
  const err = []
  const done = await box.runCode('import sys\nprint("a")\nprint("b", file=sys.stderr)', {
    onStdout: (message) => out.push(message.line),
    onStderr: (message) => err.push(message.line),
  })
  assert.deepEqual([out.join(''), err.join('')], ['a\n', 'b\n'])
  assert.deepEqual(done.logs, { stdout: ['a\n'], stderr: ['b\n'] })
}

async function errors(box) {
  const done = await box.runCode('1 / 0')
  assert.equal(done.error.name, 'ZeroDivisionError')
  assert.equal(done.error.value, 'division by zero')
  assert.match(done.error.traceback, /ZeroDivisionError/)
}

async function textOfString(box) {
  assert.equal((await box.runCode('"plain"')).text, 'plain')
}

async function rich(box) {
  const code = 'from IPython.display import HTML, display\ndisplay(HTML("<b>x</b>"))'
  const fallback = 'class H:\n  def _repr_html_(self):\n    return "<b>x</b>"\nH()'
  const first = await box.runCode(code)
  const done = first.error ? await box.runCode(fallback) : first
  assert.equal(done.results[0].html, '<b>x</b>')
}

async function charts(box) {
  for (const [type, code] of Object.entries(CHARTS)) {
    const done = await box.runCode(`import matplotlib.pyplot as plt\n${code}\nplt.title("t")\nplt.show()`)
    assert.equal(done.error, undefined, `${type}: ${done.error?.value}`)
    const result = done.results.find((item) => item.chart)
    assert.ok(result, `${type} has no chart: ${JSON.stringify(done.results.map((item) => item.formats()))}`)
    assert.equal(result.chart.type, type)
    assert.ok(result.chart.elements.length > 0, type)
    assert.ok(result.png?.length > 100, `${type} has no picture`)
  }
}

async function frames(box) {
  const done = await box.runCode('import pandas\npandas.DataFrame({"a": [1, 2], "b": ["x", "y"]})')
  assert.equal(done.error, undefined, done.error?.value)
  assert.deepEqual(done.results[0].data, { a: [1, 2], b: ['x', 'y'] })
  assert.match(done.results[0].html, /<table/)
}

async function contexts(box) {
  const context = await box.createCodeContext({ cwd: '/tmp' })
  assert.equal((await box.runCode('import os; os.getcwd()', { context })).text, '/tmp')
  await box.runCode('only_here = 1', { context })
  assert.equal((await box.runCode('only_here')).error.name, 'NameError')
  assert.ok((await box.listCodeContexts()).some((item) => item.id === context.id))
  await box.restartCodeContext(context)
  assert.equal((await box.runCode('only_here', { context })).error.name, 'NameError')
  await box.removeCodeContext(context)
  assert.ok(!(await box.listCodeContexts()).some((item) => item.id === context.id))
}

async function languages(box) {
  assert.deepEqual((await box.runCode('console.log(6 * 7)', { language: 'js' })).logs.stdout, ['42\n'])
  const typed = await box.runCode('const n: number = 42; console.log(n)', { language: 'ts' })
  assert.deepEqual(typed.logs.stdout, ['42\n'], JSON.stringify(typed.error))
  assert.equal((await box.runCode('echo $((6*7))', { language: 'bash' })).logs.stdout.join(''), '42\n')
}

async function variables(box) {
  const code = 'import os; os.environ.get("ONCE")'
  assert.equal((await box.runCode(code, { envs: { ONCE: 'yes' } })).text, 'yes')
  assert.equal((await box.runCode(code)).text, undefined)
}

async function timeout(box) {
  await assert.rejects(box.runCode('import time; time.sleep(600)', { timeoutMs: 1_000 }))
  assert.equal((await box.runCode('1 + 1')).text, '2')
}

const box = await Sandbox.create({ timeoutMs: 300_000 })
await report(
  Object.entries({
    'state between runs': stateful,
    'streamed output': streams,
    errors,
    'text of strings': textOfString,
    'rich results': rich,
    'charts as data': charts,
    'data frames': frames,
    contexts,
    languages,
    'variables of one run': variables,
    'timeout interrupts': timeout,
  }).map(([name, run]) => ({ name, run: () => run(box) })),
  process.argv.slice(2),
)
await box.kill()
process.exit(0)
