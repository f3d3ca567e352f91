// Tries features and prints a line of JSON for each: {"feature":…, "result":"ok" | "failed" | "absent", "error":…}.
const LONGEST = 90_000 // ms for a feature, on a busy machine

function deadline(ms) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${ms} ms`)), ms)
  })
  return { late, off: () => clearTimeout(timer) }
}

async function attempt(feature) {
  const { late, off } = deadline(LONGEST)
  try {
    await Promise.race([feature.run(), late])
    return { result: 'ok' }
  } catch (error) {
    return { result: 'failed', error: `${error.name}: ${error.message}`.slice(0, 2000), stack: error.stack }
  } finally {
    off()
  }
}

function say(feature, outcome) {
  const line = { feature, ...outcome }
  if (!process.env.E2B_STACKS) delete line.stack
  process.stdout.write(JSON.stringify(line) + '\n')
}

// features: {name, run, absent}; wanted: names, or none for all.
export async function report(features, wanted = []) {
  // A promise that nobody awaits and that fails is somebody's fault, and must be seen.
  process.on('unhandledRejection', (error) => {
    say('no stray errors', { result: 'failed', error: String(error), stack: error?.stack })
  })
  for (const feature of features) {
    if (wanted.length && !wanted.includes(feature.name)) continue
    if (feature.absent) {
      say(feature.name, { result: 'absent' })
      continue
    }
    const start = performance.now()
    const outcome = await attempt(feature)
    say(feature.name, { ...outcome, ms: Math.round(performance.now() - start) })
  }
}
