// A connection of a published SDK: of its first generation (v1) or its second (v2), over HTTP or a program's standard
// input and output, in one era of the protocol.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const require = createRequire(`${process.env.MCP_CLIENTS}/npm/`)
const load = (name) => import(pathToFileURL(require.resolve(name)))
const INFO = { name: 'holt-tests', version: '1.0.0' }
const MODES = { legacy: 'legacy', auto: 'auto', modern: { pin: '2026-07-28' } }

async function modules(sdk) {
  if (sdk === 'v2') {
    const client = await load('@modelcontextprotocol/client')
    const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio')
    return { ...client, StdioClientTransport }
  }
  const { Client } = await load('@modelcontextprotocol/sdk/client/index.js')
  const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js')
  const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js')
  return { Client, StdioClientTransport, StreamableHTTPClientTransport }
}

// how: {sdk, over: 'http' | 'stdio', mode, url, key, command: [...], capabilities, fetch}
export async function connect(how) {
  const sdk = await modules(how.sdk)
  const options = { capabilities: how.capabilities ?? {} }
  if (how.sdk === 'v2') options.versionNegotiation = { mode: MODES[how.mode] }
  const client = new sdk.Client(INFO, options)
  const [program, ...args] = how.command ?? []
  const transport =
    how.over === 'http'
      ? new sdk.StreamableHTTPClientTransport(new URL(how.url), {
          requestInit: { headers: { Authorization: `Bearer ${how.key}` } },
          fetch: how.fetch,
        })
      : new sdk.StdioClientTransport({ command: program, args, env: { ...process.env }, stderr: 'inherit' })
  await client.connect(transport)
  return { client, transport }
}

export { load }
