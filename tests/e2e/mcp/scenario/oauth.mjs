// A published SDK finds out by itself whose tokens are taken here, logs in without a person, and calls a tool.
// usage: node oauth.mjs
//   MCP_CLIENTS: where the SDK is; MCP_URL: the daemon's
import assert from 'node:assert/strict'
import { load } from './peer.mjs'

const { Client } = await load('@modelcontextprotocol/sdk/client/index.js')
const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js')
const url = new URL(process.env.MCP_URL)

const kept = {}
let code
const provider = {
  redirectUrl: 'http://127.0.0.1:9/callback', // nobody listens there: we look at it only
  clientMetadata: { client_name: 'test', redirect_uris: ['http://127.0.0.1:9/callback'] },
  clientInformation: () => kept.client,
  saveClientInformation: (value) => { kept.client = value },
  tokens: () => kept.tokens,
  saveTokens: (value) => { kept.tokens = value },
  saveCodeVerifier: (value) => { kept.verifier = value },
  codeVerifier: () => kept.verifier,
  redirectToAuthorization: async (address) => {
    const answer = await fetch(address, { redirect: 'manual' })
    code = new URL(answer.headers.get('location')).searchParams.get('code')
  },
}

const transport = new StreamableHTTPClientTransport(url, { authProvider: provider })
await assert.rejects(new Client({ name: 'test', version: '1' }).connect(transport), /Unauthorized/)
assert.ok(code)
await transport.finishAuth(code)

const client = new Client({ name: 'test', version: '1' })
await client.connect(new StreamableHTTPClientTransport(url, { authProvider: provider }))
const result = await client.callTool({ name: 'exec', arguments: { command: 'echo let in' } })
assert.equal(result.structuredContent.stdout, 'let in\n')
await client.close()
console.log(kept.tokens.access_token.split('.').length)
