// The sandboxes of one run of the scenario, and what waits for what must happen.
import http from 'node:http'

export class World {
  constructor(sdk, types, version) {
    Object.assign(this, { sdk, types, version, Sandbox: sdk.Sandbox, made: [] })
    this.mark = `${process.pid}-${version}`
  }

  // One sandbox for all that leave it as it was.
  async box() {
    this.shared ??= await this.create()
    return this.shared
  }

  async create(opts = {}) {
    return this.keep(await this.Sandbox.create('base', { timeoutMs: 300_000, ...opts }))
  }

  // Made by whatever way: killed at the end.
  keep(sandbox) {
    this.made.push(sandbox)
    return sandbox
  }

  has(pattern) {
    return pattern.test(this.types)
  }

  isSince(major, minor) {
    const [a, b] = this.version.split('.').map(Number)
    return a > major || (a === major && b >= minor)
  }

  async pause(sandbox, opts) {
    return sandbox.pause ? sandbox.pause(opts) : sandbox.betaPause(opts)
  }

  async leave() {
    for (const sandbox of this.made) await this.Sandbox.kill(sandbox.sandboxId).catch(() => false)
  }
}

export async function until(condition, what) {
  const end = performance.now() + 60_000
  for (;;) {
    const value = await condition()
    if (value) return value
    if (performance.now() > end) throw new Error(`${what} did not happen within 60 s`)
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

export async function failure(promise) {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('it did not fail')
}

// A request to the daemon for whatever host the URL names: names of sandboxes are not in this machine's DNS.
export function ask(url, { method = 'GET', headers = {}, body } = {}) {
  const wanted = new URL(url)
  const daemon = new URL(process.env.E2B_API_URL)
  return new Promise((resolve, reject) => {
    const request = http.request(
      {
        host: daemon.hostname,
        port: daemon.port,
        path: wanted.pathname + wanted.search,
        method,
        headers: { host: wanted.host, ...headers },
        agent: false,
      },
      (response) => {
        const parts = []
        response.on('data', (part) => parts.push(part))
        response.on('error', reject)
        response.on('end', () => {
          resolve({ status: response.statusCode, headers: response.headers, text: Buffer.concat(parts).toString() })
        })
      },
    )
    request.on('error', reject)
    request.end(body)
  })
}
