// Calls of tools by published SDKs, in turn. usage: node measure.mjs HOLT_URL OTHER_URL RUNS
// Prints {what: [ms, …], …}.
import { connect } from '../../e2e/mcp/scenario/peer.mjs'

const [holt, other, runs] = process.argv.slice(2)
const key = process.env.MCP_KEY
const modern = (await connect({ sdk: 'v2', over: 'http', mode: 'modern', url: holt, key })).client
const legacy = (await connect({ sdk: 'v2', over: 'http', mode: 'legacy', url: holt, key })).client
const reference = (await connect({ sdk: 'v2', over: 'http', mode: 'legacy', url: other, key })).client
const run = (client) => () => client.callTool({ name: 'exec', arguments: { command: 'true' } })

const probes = {
  'Holt, exec true in a sandbox, 2026-07-28': run(modern),
  'Holt, exec true in a sandbox, 2025-11-25': run(legacy),
  'server-everything, echo, 2025-11-25': () => reference.callTool({ name: 'echo', arguments: { message: 'x' } }),
}
const found = Object.fromEntries(Object.keys(probes).map((name) => [name, []]))
for (let i = -5; i < Number(runs); i++) {
  for (const [name, probe] of Object.entries(probes)) {
    await new Promise((resolve) => setTimeout(resolve, 10))
    const start = performance.now()
    const result = await probe()
    if (result.isError) throw new Error(`${name}: ${JSON.stringify(result.content)}`)
    if (i >= 0) found[name].push(performance.now() - start) // the first ones warm up
  }
}
process.stdout.write(JSON.stringify(found))
process.exit(0)
