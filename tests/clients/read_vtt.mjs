// Reads WebVTT files with the parser of the W3C, and prints what it reads of each as one JSON list.
//
// usage: read_vtt.mjs MODE FILE…    MODE: metadata, subtitles/captions/descriptions or chapters
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(new URL("../../target/clients/package.json", import.meta.url));
const { WebVTTParser } = require("webvtt-parser");
const entities = require("webvtt-parser/html-entities.json");

// The text of a cue, without its tags.
const textOf = (node) => (node.type === "text" ? node.value : (node.children ?? []).map(textOf).join(""));

const [mode, ...files] = process.argv.slice(2);
const read = files.map((file) => {
  const { cues, errors } = new WebVTTParser(entities).parse(readFileSync(file, "utf8"), mode);
  return {
    errors: errors.map(({ message, line }) => `${line}: ${message}`),
    times: cues.map((cue) => [cue.startTime, cue.endTime]),
    texts: cues.map((cue) => cue.tree.children.map(textOf).join("").replaceAll("\n", " ")),
  };
});
console.log(JSON.stringify(read));
