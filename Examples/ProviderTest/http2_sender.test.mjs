// Tests of a sender over HTTP/2, with node's own test runner:  node --test http2_sender.test.mjs
// Needs apnscope on the PATH, and node 20 or newer.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

let simulator, folder, control, session

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'apnscope-'))
  const ready = join(folder, 'ready')
  simulator = spawn(process.env.apnscope ?? 'apnscope', ['simulate', '--http2', '127.0.0.1:0', '--trust', 'any',
    '--plain', '--control', '127.0.0.1:0', '--ready-file', ready], { stdio: ['ignore', 'ignore', 'inherit'] })
  while (!existsSync(ready)) {  // It appears when connections are accepted.
    assert.equal(simulator.exitCode, null, 'the simulator does not start')
    await sleep(10)
  }
  const places = Object.fromEntries(readFileSync(ready, 'utf8').trim().split('\n').map(line => line.split(' ')))
  control = places.control
  session = connect('http://' + places.http2)
})

after(async () => {
  session.close()
  simulator.kill()
  await new Promise(resolve => simulator.once('exit', resolve))
  rmSync(folder, { recursive: true })
})

async function ask(method, path, body) {
  const answer = await fetch(control + path, { method, body: body && JSON.stringify(body),
    headers: body ? { 'content-type': 'application/json' } : {} })
  assert.ok(answer.ok, `${answer.status} ${path}`)  // 408: it did not come in time.
  const text = await answer.text()
  return text ? JSON.parse(text) : null
}

beforeEach(() => ask('POST', '/reset'))

// The sender under test: in place of yours.
function push(token, alert) {
  return new Promise((resolve, reject) => {
    const request = session.request({ ':method': 'POST', ':path': `/3/device/${token}`,
      'apns-topic': 'com.example.app', 'apns-push-type': 'alert' })
    let status, text = ''
    request.on('response', headers => { status = headers[':status'] })
    request.on('data', part => { text += part })
    request.on('end', () => resolve({ status, reason: text ? JSON.parse(text).reason : undefined }))
    request.on('error', reject)
    request.end(JSON.stringify({ aps: { alert } }))
  })
}

test('an alert arrives', async () => {
  assert.deepEqual(await push('aa'.repeat(32), 'Grüße'), { status: 200, reason: undefined })
  const { notifications: [arrived] } = await ask('GET', '/notifications/wait?count=1&within_s=10')
  assert.deepEqual(arrived.payload, { aps: { alert: 'Grüße' } })
  assert.equal(arrived.push_type, 'alert')
})

test('a rejection is told', async () => {
  await ask('POST', '/faults/rejections', { token: 'bb'.repeat(32), reason: 'Unregistered', times: 1 })
  assert.deepEqual(await push('bb'.repeat(32), 'Hello'), { status: 410, reason: 'Unregistered' })
  const verdict = await ask('GET', '/verdict')
  assert.equal(verdict.stories.rejected, 1)
})
