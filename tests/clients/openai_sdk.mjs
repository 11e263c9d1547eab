// OpenAI's official JavaScript client, as it is, against a running `scribed serve`.
//
// What it is told is in the environment: SERVICE_URL, SERVICE_KEY, SPEECH (a recording) and STEREO (two people,
// each on a channel). The last lines on stdout are what was heard in SPEECH. The client reads answers without
// looking at them, so its own type declarations are held against each one afterwards, by the TypeScript compiler.

import assert from 'node:assert/strict'
import { createReadStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import OpenAI, { toFile } from 'openai'
import ts from 'typescript'

const { SERVICE_URL: url, SERVICE_KEY: key, SPEECH: speech, STEREO: stereo } = process.env
const client = (apiKey) => new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 })
const own = client(key)
const answers = []

/** Remembers an answer, to be held against this type of the client. */
function as(type, answer) {
  answers.push([type, answer])
  return answer
}

const create = (asked) => own.audio.transcriptions.create({ model: 'whisper-1', file: createReadStream(speech), ...asked })

async function refused(status, param, code, call) {
  const error = await call.then((answer) => assert.fail(`not refused: ${JSON.stringify(answer)}`), (error) => error)
  assert.ok(error instanceof OpenAI.APIError, error)
  assert.deepEqual([error.status, error.param ?? null, error.code ?? null], [status, param, code], error.message)
  assert.match(error.requestID, /^G-/)
}

async function models() {
  const listed = []
  for await (const model of own.models.list()) listed.push(as('Models.Model', model).id)
  assert.deepEqual(listed, ['scribed', 'whisper-1', 'gpt-transcribe'])
  assert.equal(as('Models.Model', await own.models.retrieve('scribed')).owned_by, 'scribed')
  await refused(404, 'model', 'model_not_found', own.models.retrieve('whisper-9'))
}

async function formats() {
  const text = as('Audio.Transcription', await create({ language: 'en' })).text
  assert.equal(await create({ response_format: 'text' }), `${text}\n`)
  assert.match(await create({ response_format: 'srt' }), /^1\n00:00:0/)
  assert.match(await create({ response_format: 'vtt' }), /^WEBVTT\n/)
  const verbose = (timestamp_granularities) => create({ response_format: 'verbose_json', timestamp_granularities })
  const both = as('Audio.TranscriptionVerbose', await verbose(['word', 'segment']))
  assert.deepEqual([both.text, both.language], [text, 'english'])
  assert.equal(both.words.map((one) => one.word).join(' '), text)
  assert.equal(both.segments.map((one) => one.text).join('').trim(), text)
  const words = as('Audio.TranscriptionVerbose', await verbose(['word']))
  assert.deepEqual([words.words, words.segments], [both.words, undefined])
  const blob = await toFile(readFileSync(speech), '../Élan "1".wav')
  assert.equal(as('Audio.Transcription', await create({ file: blob })).text, text)
  return text
}

async function speakers() {
  const file = () => createReadStream(stereo)
  const answer = as('Audio.TranscriptionDiarized', await create({ file: file(), response_format: 'diarized_json' }))
  assert.deepEqual([...new Set(answer.segments.map((one) => one.speaker))].sort(), ['A', 'B'])
  const alone = as('Audio.TranscriptionDiarized', await create({ response_format: 'diarized_json' }))
  assert.deepEqual([...new Set(alone.segments.map((one) => one.speaker))], ['A'])
}

async function streamed(text) {
  const events = []
  for await (const event of await create({ stream: true })) events.push(as('Audio.TranscriptionStreamEvent', event))
  const done = events.pop()
  assert.deepEqual([done.type, done.text], ['transcript.text.done', text])
  assert.equal(events.map((event) => event.delta).join(''), text)
  return done.text
}

async function translations(text) {
  const create = (asked) => own.audio.translations.create({ model: 'whisper-1', file: createReadStream(speech), ...asked })
  assert.equal(as('Audio.Translation', await create()).text, text)
  assert.equal(as('Audio.TranslationVerbose', await create({ response_format: 'verbose_json' })).text, text)
}

async function refusals() {
  await refused(401, null, 'invalid_api_key', client('wrong').models.list())
  await refused(404, 'model', 'model_not_found', create({ model: 'gpt-9' }))
  await refused(400, 'language', 'unsupported_language', create({ language: 'de' }))
  await refused(400, 'include', 'unsupported_parameter', create({ include: ['logprobs'] }))
  await refused(400, 'file', null, create({ file: await toFile(Buffer.from('no recording'), 'talk.wav') }))
}

/** What is wrong with these answers as the client's declarations have it. */
function wrong(answers) {
  const folder = mkdtempSync(join(tmpdir(), 'scribed-answers-'))
  const declared = createRequire(join(process.cwd(), 'here')).resolve('openai')
  const lines = answers.map(([type, answer], at) => `export const a${at}: OpenAI.${type} = plain(${JSON.stringify(answer)})`)
  const text = `import type OpenAI from ${JSON.stringify(declared)}
    type Plain<T> = T extends object ? { -readonly [K in keyof T]: Plain<T[K]> } : T
    function plain<const T>(value: T): Plain<T> { return value as Plain<T> }
    ${lines.join('\n')}\n`
  try {
    const file = join(folder, 'answers.ts')
    writeFileSync(file, text)
    const options = {
      strict: true, noEmit: true, skipLibCheck: true, types: [], esModuleInterop: true,
      module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2022, lib: ['lib.es2022.d.ts', 'lib.dom.d.ts'],
    }
    const found = ts.getPreEmitDiagnostics(ts.createProgram([file], options))
    return found.map((one) => ts.flattenDiagnosticMessageText(one.messageText, '\n'))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function declarations() {
  assert.deepEqual(wrong(answers), [])
  const verbose = answers.find(([type]) => type === 'Audio.TranscriptionVerbose')
  const broken = structuredClone(verbose)
  broken[1].words[0].start = 'soon'
  assert.equal(wrong([broken]).length, 1, 'a wrong answer is found out')
}

await models()
const text = await formats()
await speakers()
const heard = await streamed(text)
await translations(text)
await refusals()
declarations()
console.log(text)
console.log(heard)
