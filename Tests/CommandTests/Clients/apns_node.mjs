// Pushes with node's http2, and prints what came of each notification: by token the status 200, the reason, or an error.
// node apns_node.mjs COUNT CA.pem AUTHORIZATION-FILE      (environment: patience, seconds for an answer)
import { connect } from 'node:http2';
import { readFileSync } from 'node:fs';

const [count, ca, authorization] = process.argv.slice(2);
const said = {};
let session;

function open() {
  const fresh = connect('https://api.push.apple.com', { ca: readFileSync(ca) });
  const forget = () => { if (session === fresh) session = undefined; };
  fresh.on('error', forget).on('goaway', forget).on('close', forget);
  return fresh;
}

const push = number => new Promise(resolve => {
  const token = number.toString(16).padStart(64, '0');
  session ??= open();
  const stream = session.request({
    ':method': 'POST', ':path': `/3/device/${token}`, 'apns-topic': 'com.example.app', 'apns-push-type': 'alert',
    authorization: readFileSync(authorization, 'ascii').trim(),
  });
  let status, text = '';
  const end = word => { said[token] ??= word; resolve(); };
  stream.setTimeout(1_000 * Number(process.env.patience ?? 20), () => stream.close());
  stream.setEncoding('utf8');
  stream.on('response', fields => { status = fields[':status']; });
  stream.on('data', part => { text += part; });
  stream.on('end', () => {
    if (status === 200) return end('200');
    try { end(JSON.parse(text).reason); } catch { end(status ? `error: status ${status}` : 'error: no answer'); }
  });
  stream.on('error', error => end(`error: ${error.code}`));
  stream.on('close', () => end('error: closed'));
  stream.end(JSON.stringify({ aps: { alert: `number ${number}` } }));
});

// 20 at once, one after the other.
let next = 0;
await Promise.all(Array.from({ length: 20 }, async () => { while (next < Number(count)) await push(next++); }));
session?.close();
console.log(JSON.stringify(said));
