// The official JavaScript client, as it is, against a running `scribed serve`.
//
// What it is told is in the environment: SERVICE_URL, SERVICE_KEY, SPEECH (a recording) and LONG (a longer
// one). The last lines on stdout are what was heard in SPEECH. The client reads answers without looking at
// them, so its own type declarations are held against each one afterwards, by the TypeScript compiler.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { GladiaClient } from '@gladiaio/sdk'
import ts from 'typescript'

const { SERVICE_URL: url, SERVICE_KEY: key, SPEECH: speech, LONG: long } = process.env
const client = (apiKey) => new GladiaClient({ apiKey, apiUrl: url })
const own = client(key).preRecordedV2()
const quick = { interval: 50 }

/** The methods that clients offer and that were not called yet; live sessions are no part of the service. */
const uncalled = new Set()
for (const offers of [own, client(key).liveV2()]) {
  const kind = Object.getPrototypeOf(offers)
  const declared = readFileSync(new URL(`./v2/${kind.getFile && kind.poll ? 'prerecorded' : 'live'}/client.d.ts`, import.meta.resolve('@gladiaio/sdk')), 'utf8')
  const names = [...declared.matchAll(/^  (\w+)\(/gm)].map((match) => match[1]).filter((name) => name !== 'constructor')
  for (const name of names.filter((name) => !['startSession', 'connectSession'].includes(name))) {
    const [entry, method] = [`${kind.poll ? '' : 'live '}${name}`, kind[name]]
    uncalled.add(entry)
    kind[name] = function (...given) {
      uncalled.delete(entry)
      return method.apply(this, given)
    }
  }
}

// Everything that the client has a type for, but what it types wrongly: the service refuses an array of
// arrays for audio_to_llm_config.prompts, as the public one does. Metadata is always given: the client's
// type allows it to be absent, where the public service answers null.
const all = {
  subtitles: true,
  subtitles_config: { formats: ['srt', 'vtt'], maximum_characters_per_row: 30 },
  sentences: true,
  punctuation_enhanced: true,
  diarization: true,
  diarization_config: { number_of_speakers: 1 },
  translation: true,
  translation_config: { target_languages: ['en', 'fr'] },
  summarization: true,
  named_entity_recognition: true,
  sentiment_analysis: true,
  audio_to_llm: true,
  custom_spelling: true,
  custom_spelling_config: { spelling_dictionary: { young: ['yung'] } },
  custom_vocabulary: true,
  custom_vocabulary_config: { vocabulary: ['exposed', { value: 'young', intensity: 0.4 }] },
  language_config: { languages: ['en'], code_switching: false },
  custom_metadata: { shelf: 'A 1', number: 7 },
}

const answers = []

/** Remembers an answer, to be held against this type of the client. */
function as(type, answer) {
  answers.push([type, answer])
  return answer
}

const job = (answer) => as('PreRecordedV2Response', answer)
const page = (answer) => as('PreRecordedV2ListResponse', answer)

/** Fails unless it is refused with this status and words of the service. */
async function refused(status, call) {
  const error = await call.then((answer) => assert.fail(`not refused with ${status}: ${JSON.stringify(answer)}`), (error) => error)
  assert.equal(error.name, 'HttpError', error)
  assert.equal(error.status, status, error)
  assert.match(error.requestId, /^G-/)
  assert.ok(error.responseBody.message && error.message.includes(error.responseBody.message))
  return error
}

async function upload() {
  const uploaded = as('PreRecordedV2AudioUploadResponse', await own.uploadFile(speech))
  const found = uploaded.audio_metadata
  assert.equal(uploaded.audio_url, `${url}/file/${found.id}`)
  assert.deepEqual([found.filename, found.extension], [basename(speech), 'wav'])
  assert.deepEqual([found.size, found.number_of_channels], [statSync(speech).size, 1])
  return uploaded
}

/** While a long one is worked on, the next one waits: what can be done with it, and what cannot. */
async function waiting(uploaded) {
  const create = async (body) => as('PreRecordedV2InitTranscriptionResponse', await own.create(body))
  const first = await create({ audio_url: (await own.uploadFile(long)).audio_url, custom_metadata: {} })
  const created = await create({ ...all, audio_url: uploaded.audio_url })
  assert.equal(created.result_url, `${url}/v2/pre-recorded/${created.id}`)
  const audio = Buffer.from(await own.getFile(created.id))
  const record = job(await own.get(created.id))
  assert.equal(record.status, 'queued')
  assert.deepEqual([record.result, record.completed_at, record.error_code], [null, null, null])
  assert.ok(audio.equals(readFileSync(speech)), 'the audio comes back as it went')
  await refused(403, own.delete(created.id))
  job(await own.poll(first.id, quick))
  return created
}

async function done(created, uploaded) {
  const record = job(await own.poll(created.id, quick))
  assert.deepEqual([record.status, record.kind, record.version], ['done', 'pre-recorded', 2])
  assert.equal(record.request_id, `G-${record.id.slice(0, 8)}`)
  assert.deepEqual(record.custom_metadata, all.custom_metadata)
  assert.deepEqual([record.file.id, record.file.filename], [uploaded.audio_metadata.id, basename(speech)])
  const { custom_metadata: _, custom_vocabulary_config: __, ...sent } = { ...all, audio_url: uploaded.audio_url }
  for (const [name, value] of Object.entries(sent)) {
    assert.deepEqual(typeof value === 'object' ? { ...record.request_params[name], ...value } : value, record.request_params[name], name)
  }
  const said = record.result.transcription
  assert.equal(said.full_transcript, said.utterances.map((one) => one.text).join(' '))
  assert.deepEqual(said.subtitles.map((one) => one.format), ['srt', 'vtt'])
  assert.deepEqual(said.sentences[0].results, said.utterances.map((one) => one.text))
  const [same, french] = record.result.translation.results
  assert.deepEqual([same.full_transcript, same.error], [said.full_transcript, null])
  assert.equal(french.error.status_code, 501)
  const { summarization, named_entity_recognition: entities, sentiment_analysis: sentiments } = record.result
  assert.equal(summarization.results, said.full_transcript, 'a short transcript is its own summary')
  assert.deepEqual([entities.success, entities.error, entities.is_empty], [true, null, entities.results.length === 0])
  assert.equal(sentiments.results.length, said.utterances.length)
  const audio = readFileSync(speech)
  assert.ok(Buffer.from(await own.getFile(created.id)).equals(audio), 'the audio is there after the end too')
  // One upload serves several creates.
  for (const way of ['createAndPoll', 'createAndPollUntyped']) {
    const other = job(await own[way]({ audio_url: uploaded.audio_url, custom_metadata: { way } }, quick))
    assert.deepEqual([other.status, other.file.id], ['done', record.file.id])
    assert.equal(await own.delete(other.id), true)
  }
  const untyped = await own.createUntyped({ audio_url: uploaded.audio_url, custom_metadata: {} })
  assert.equal(job(await own.poll(untyped.id, quick)).status, 'done')
  assert.ok(Buffer.from(await own.getFile(record.id)).equals(audio), 'another transcription has it')
  return record
}

/** By path, by a blob, and by an address that the service fetches from. */
async function otherWays() {
  const server = createServer((_, answer) => answer.end(readFileSync(speech)))
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready))
  const address = `http://127.0.0.1:${server.address().port}/${basename(speech)}`
  const blob = new Blob([readFileSync(speech)])
  const records = []
  for (const audio of [speech, blob, address]) {
    records.push(job(await own.transcribe(audio, { custom_metadata: { way: typeof audio } }, quick)))
  }
  records.push(job(await own.transcribeUntyped(speech, { custom_metadata: { way: 'untyped' } }, quick)))
  server.close()
  const texts = new Set(records.map((record) => record.result.transcription.full_transcript))
  assert.equal(texts.size, 1, [...texts].join(' / '))
  assert.deepEqual(records.map((record) => record.file.source), [null, null, address, null])
  return records[0]
}

async function refusals(id) {
  assert.match((await refused(401, client('wrong').preRecordedV2().list())).message, /key/)
  // A path on the client's machine is nothing that the service could fetch.
  const error = await refused(400, own.create({ audio_url: speech, diarization: 'perhaps' }))
  assert.deepEqual(error.responseBody.validation_errors.map((one) => one.split(' ')[0]), ['audio_url', 'diarization'])
  await refused(404, own.get('00000000-0000-4000-8000-000000000000'))
  await refused(400, own.list({ limit: 0 }))
  assert.equal(await own.delete(id), true)
  await refused(404, own.get(id))
}

async function failure() {
  const created = await own.create({ audio_url: 'http://127.0.0.1:1/talk.wav', custom_metadata: { way: 'nowhere' } })
  await assert.rejects(own.poll(created.id, quick), {
    message: `Pre-recorded job ${created.id} failed with error code: 502`,
  })
  const record = job(await own.get(created.id))
  assert.deepEqual([record.status, record.error_code, record.result], ['error', 502, null])
  assert.ok(record.post_session_metadata.error, 'in words')
  return record
}

async function lists(failed) {
  const pages = async (query) => {
    const found = []
    for (let next = query; next; ) {
      const one = page(await own.list(next))
      found.push(...one.items.map((record) => record.id))
      next = one.next === null ? undefined : { url: one.next }
    }
    return found
  }
  const everything = await pages({})
  assert.ok(everything.length > 3)
  assert.deepEqual(await pages({ limit: 2 }), everything)
  assert.deepEqual(await pages({ limit: 2, status: ['error'] }), [failed.id])
  assert.deepEqual(await pages({ status: ['queued', 'processing'] }), [])
  assert.deepEqual(await pages({ custom_metadata: { way: 'nowhere' } }), [failed.id])
  assert.deepEqual(await pages({ date: failed.created_at.slice(0, 10) }), everything)
  assert.deepEqual(await pages({ before_date: failed.created_at }), everything.slice(1))
  assert.deepEqual(await pages({ after_date: failed.created_at }), [])
}

async function live() {
  const live = client(key).liveV2()
  const [record, ...more] = as('LiveV2ListResponse', await live.list()).items
  assert.deepEqual([await live.get(record.id), more], [record, []])
  assert.equal(record.kind, 'live')
  // What was imported has no audio, and stays.
  await refused(404, live.getFile(record.id))
  await refused(404, live.delete(record.id))
}

/** An answer with its sentiments as a text: so the client declares them, where the public service has a list. */
function asDeclared(answer) {
  return JSON.parse(JSON.stringify(answer, (name, value) => {
    if (name !== 'sentiment_analysis' || !Array.isArray(value?.results)) return value
    for (const one of value.results) assert.deepEqual([typeof one.text, typeof one.sentiment], ['string', 'string'])
    return { ...value, results: JSON.stringify(value.results) }
  }))
}

/** What is wrong with these answers as the client's declarations have it. */
function wrong(answers) {
  const folder = mkdtempSync(join(tmpdir(), 'scribed-answers-'))
  const declared = createRequire(join(process.cwd(), 'here')).resolve('@gladiaio/sdk')
  // Written out, and taken for what it is: fields that the client does not know are no mistake.
  const lines = answers.map(([type, answer], at) => `export const a${at}: sdk.${type} = plain(${JSON.stringify(asDeclared(answer))})`)
  const text = `import type * as sdk from ${JSON.stringify(declared)}
    type Plain<T> = T extends object ? { -readonly [K in keyof T]: Plain<T[K]> } : T
    function plain<const T>(value: T): Plain<T> { return value as Plain<T> }
    ${lines.join('\n')}\n`
  try {
    const file = join(folder, 'answers.ts')
    writeFileSync(file, text)
    const options = {
      strict: true, noEmit: true, skipLibCheck: true, types: [],
      module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2022, lib: ['lib.es2022.d.ts', 'lib.dom.d.ts'],
    }
    const found = ts.getPreEmitDiagnostics(ts.createProgram([file], options))
    return found.map((one) => ts.flattenDiagnosticMessageText(one.messageText, '\n'))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function declarations(record) {
  assert.deepEqual(wrong(answers), [])
  // A record that is wrong in one place is found out.
  for (const [field, value] of [['start', 'soon'], ['confidence', null], ['word', undefined]]) {
    const broken = structuredClone(record)
    broken.result.transcription.utterances[0].words[0][field] = value
    const found = wrong([['PreRecordedV2Response', broken]])
    assert.ok(found.length === 1 && found[0].includes(`'${field}'`) || found[0]?.includes('words'), `${field}: ${found}`)
  }
}

const uploaded = await upload()
const record = await done(await waiting(uploaded), uploaded)
const plain = await otherWays()
await refusals(plain.id)
await lists(await failure())
await live()
declarations(record)
assert.deepEqual([...uncalled], [], 'everything that the clients offer was called')
for (const one of [record, plain]) console.log(one.result.transcription.full_transcript)
