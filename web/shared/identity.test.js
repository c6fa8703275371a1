import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerChallenge, judge, newNonce, statement, toBytes, toText } from './identity.js';

const HOST = '127.0.0.1:3000';
const ECDSA = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const newKey = () => crypto.subtle.generateKey(ECDSA, false, ['sign', 'verify']);

/** A browser that has signed in to a server. */
async function signedIn() {
  const [ours, theirs] = [await newKey(), await newKey()];
  return {
    identity: { id: 'b1', privateKey: ours.privateKey, serverKey: theirs.publicKey },
    publicKey: ours.publicKey,
    /** @param {...string} fields */
    sign: async (...fields) => toText(await crypto.subtle.sign(ECDSA, theirs.privateKey, statement(...fields))),
  };
}

test('bytes survive the conversion to base64url and back', () => {
  const bytes = Uint8Array.from({ length: 256 }, (_, at) => at);
  assert.match(toText(bytes), /^[A-Za-z0-9_-]+$/);
  assert.deepEqual(toBytes(toText(bytes)), bytes);
  assert.notEqual(newNonce(), newNonce());
});

test("a challenge of the server is answered with the browser's signature", async () => {
  const { identity, publicKey, sign } = await signedIn();
  const signature = await sign('Liminal Builder server 1', HOST, 'b1', 'page', 'server');
  const proof = await answerChallenge(identity, HOST, 'page', { type: 'challenge', nonce: 'server', signature });
  assert.equal(proof?.type, 'proof');
  const signed = statement('Liminal Builder browser 1', HOST, 'b1', 'page', 'server');
  assert.ok(await crypto.subtle.verify(ECDSA, publicKey, toBytes(proof?.signature ?? ''), signed));
});

test('a challenge that the server did not sign for this page gets no answer', async () => {
  const { identity, sign } = await signedIn();
  const other = await signedIn();
  const right = ['Liminal Builder server 1', HOST, 'b1', 'page', 'server'];
  /** @param {number} at @param {string} field */
  const changed = (at, field) => sign(...right.map((text, index) => (index === at ? field : text)));
  const signatures = [
    await other.sign(...right),
    await changed(0, 'Liminal Builder browser 1'),
    await changed(1, '127.0.0.1:3001'),
    await changed(2, 'b2'),
    await changed(3, 'earlier'),
    await changed(4, 'other'),
    '',
    'not base64!',
  ];
  for (const signature of signatures) {
    const challenge = /** @type {const} */ ({ type: 'challenge', nonce: 'server', signature });
    assert.equal(await answerChallenge(identity, HOST, 'page', challenge), null, signature);
  }
});

test('only a signed answer says whether the browser is known', async () => {
  const { identity, sign } = await signedIn();
  const says = (/** @type {string} */ word) => sign('Liminal Builder identity 1', HOST, 'b1', 'page', word);
  const [known, unknown] = [await says('known'), await says('unknown')];
  const of = (/** @type {unknown} */ answer) => judge(identity, HOST, 'page', answer);
  assert.equal(await of({ known: true, signature: known }), 'server');
  assert.equal(await of({ known: false, signature: unknown }), 'signed-out');
  for (const answer of [
    { known: false, signature: known },
    { known: true, signature: unknown },
    { known: 'yes', signature: known },
    { known: true },
    undefined,
    null,
    'known',
  ]) {
    assert.equal(await of(answer), 'other', JSON.stringify(answer));
  }
  assert.equal(await judge(identity, '127.0.0.1:3001', 'page', { known: true, signature: known }), 'other');
});
