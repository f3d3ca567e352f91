// Every skill and every file of it, as the published SDK verifies them: sums, sizes, heads.
// usage: node skills.mjs legacy|modern; the environment is sdk.mjs's
//
// Prints {"name": [paths...]}.
import assert from 'node:assert/strict'
import { connect, load } from './peer.mjs'

const { client } = await connect({ sdk: 'v2', over: 'http', mode: process.argv[2], url: process.env.MCP_URL,
  key: process.env.MCP_KEY })
const { SkillsClient } = await load('@modelcontextprotocol/client/ext/skills')
const skills = new SkillsClient(client)
assert.ok(skills.supported && skills.directoryRead)

async function walk(uri) {
  const found = []
  for (const child of (await skills.readDirectory(uri)).resources) {
    if (child.mimeType === 'inode/directory') found.push(...await walk(child.uri))
    else found.push(child.uri)
  }
  return found
}

const seen = {}
for (const entry of (await skills.list()).skills) {
  const root = entry.uri.slice(0, -'/SKILL.md'.length)
  for (const file of entry.resources) assert.ok((await skills.read(entry, file.uri)).verified)
  assert.deepEqual((await skills.read(entry)).frontmatter, entry.frontmatter)
  assert.deepEqual((await skills.get(entry.uri)).skill, entry)
  assert.deepEqual((await walk(root)).sort(), entry.resources.map((file) => file.uri).sort())
  seen[entry.frontmatter.name] = entry.resources.map((file) => decodeURIComponent(file.uri.slice(root.length + 1)))
}
console.log(JSON.stringify(seen))
await client.close()
process.exit(0)
