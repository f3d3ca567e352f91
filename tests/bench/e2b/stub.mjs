// A server that has every answer ready: it runs nothing and keeps nothing. What the SDK takes with it is what the SDK
// itself and the line cost, below which no server can come.
// usage: node stub.mjs        prints the port it listens on; ends when its input ends
import http from 'node:http'

const SANDBOX = {
  sandboxID: 'stub0000000000000000',
  templateID: 'base',
  clientID: 'stub',
  envdVersion: '0.6.13',
  envdAccessToken: 'stub',
  domain: null,
}

function envelope(flags, value) {
  const text = Buffer.from(JSON.stringify(value))
  const head = Buffer.alloc(5)
  head[0] = flags
  head.writeUInt32BE(text.length, 1)
  return Buffer.concat([head, text])
}

const RUN = Buffer.concat([
  envelope(0, { event: { start: { pid: 7 } } }),
  envelope(0, { event: { end: { exited: true, status: 'exit status 0' } } }),
  envelope(2, {}),
])

const answers = [
  [/^POST \/(v2\/)?sandboxes$/, 201, 'application/json', JSON.stringify(SANDBOX)],
  [/^POST \/(v2\/)?sandboxes\/[^/]+\/connect$/, 200, 'application/json', JSON.stringify(SANDBOX)],
  [/^DELETE \/sandboxes\/[^/]+$/, 204],
  [/^POST \/process.Process\/Start$/, 200, 'application/connect+json', RUN],
  [/^GET \/health$/, 204],
]

function answer(request, response) {
  const line = `${request.method} ${request.url}`
  const [, status, type, body] = answers.find(([pattern]) => pattern.test(line)) ?? [
    null,
    501,
    'application/json',
    JSON.stringify({ code: 501, message: `the stub has no answer for ${line}` }),
  ]
  response.writeHead(status, type ? { 'content-type': type, 'content-length': Buffer.byteLength(body) } : {})
  response.end(body)
}

// The whole request first, as a server must.
const server = http.createServer((request, response) => {
  request.on('end', () => answer(request, response))
  request.resume()
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
process.stdin.on('end', () => process.exit(0))
process.stdin.resume()
