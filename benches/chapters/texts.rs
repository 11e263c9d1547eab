//! Texts with sections, and what is made of them: mixtures of several texts, whose borders are known, and texts as a
//! recogniser would write them.

use super::random::Random;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// A section of a text.
pub struct Section {
    pub heading: String,
    pub said: Vec<String>,
}

/// Texts of one kind, each with its sections.
pub struct Source {
    pub texts: Vec<Vec<Section>>,
}

/// A text that is to be divided.
pub struct Sample {
    pub said: Vec<String>,
    /// Where its segments begin, without the first one.
    pub begins: Vec<usize>,
}

pub fn words(text: &str) -> impl Iterator<Item = String> {
    let edge = |letter: char| !letter.is_alphanumeric();
    text.split([' ', '-', '–', '—', '/'])
        .map(move |word| word.trim_matches(edge).to_lowercase())
        .filter(|word| !word.is_empty())
}

/// Whether a heading is that of many papers, and says nothing of one.
pub fn is_general(heading: &str) -> bool {
    const GENERAL: &str = "chapter introduction conclusion related experiment result method discussion background evaluation \
                           summary acknowled overview data analysis approach model setup";
    let heading = heading.to_lowercase();
    GENERAL.split_whitespace().any(|general| heading.contains(general))
}

fn listed(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    paths.sort();
    Ok(paths)
}

pub fn read_sources(folder: &Path) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for source in listed(folder)?.into_iter().filter(|path| path.is_dir()) {
        let files = listed(&source)?.into_iter().filter(|path| path.extension().is_some_and(|ext| ext == "txt"));
        sources.push(Source { texts: files.map(|file| read_text(&file)).collect::<Result<_>>()? });
    }
    Ok(sources)
}

fn read_text(file: &Path) -> Result<Vec<Section>> {
    let mut sections: Vec<Section> = Vec::new();
    for line in std::fs::read_to_string(file).with_context(|| file.display().to_string())?.lines() {
        match (line.strip_prefix("# "), sections.last_mut()) {
            (Some(heading), _) => sections.push(Section { heading: heading.to_owned(), said: Vec::new() }),
            (None, Some(section)) if !line.trim().is_empty() => section.said.push(line.to_owned()),
            _ => {}
        }
    }
    Ok(sections)
}

/// The number of mixtures of each kind.
const MIXTURES: usize = 60;

pub fn samples_of(sources: &[Source], random: &mut Random) -> Vec<(&'static str, Vec<Sample>)> {
    let all: Vec<&Source> = sources.iter().collect();
    let mixed = |of: &dyn Fn(usize) -> Vec<usize>, random: &mut Random| {
        (0..MIXTURES).filter_map(|n| mixture(&of(n).iter().map(|at| all[*at]).collect::<Vec<_>>(), random)).collect()
    };
    let every: Vec<usize> = (0..sources.len()).collect();
    // A source of few texts gives few different mixtures.
    let large: Vec<usize> = every.iter().copied().filter(|at| sources[*at].texts.len() >= 3).collect();
    let texts = sources.iter().flat_map(|source| &source.texts);
    vec![
        ("mixtures of all", mixed(&|_| every.clone(), random)),
        ("mixtures of one kind", mixed(&|n| large.get(n % large.len().max(1)).copied().into_iter().collect(), random)),
        ("sections of one text", texts.clone().filter_map(|text| sections(text)).collect()),
        ("one section", texts.filter_map(|text| longest(text)).collect()),
    ]
}

/// Joins segments of 15 to 90 sentences of 4 to 12 different texts, where there are so many.
fn mixture(sources: &[&Source], random: &mut Random) -> Option<Sample> {
    let mut texts: Vec<&Vec<Section>> = Vec::new();
    let wanted = random.between(4, 12);
    for _ in 0..wanted * 10 {
        let text = sources.get(random.below(sources.len())).and_then(|source| {
            let at = random.below(source.texts.len());
            source.texts.get(at)
        })?;
        let is_new = texts.len() < wanted && !texts.iter().any(|one| std::ptr::eq(*one, text));
        if is_new && text.iter().map(|section| section.said.len()).sum::<usize>() >= 15 {
            texts.push(text);
        }
    }
    let mut sample = Sample { said: Vec::new(), begins: Vec::new() };
    for text in texts {
        let said: Vec<&String> = text.iter().flat_map(|section| &section.said).collect();
        let length = random.between(15, 90).min(said.len());
        let starts = text.iter().scan(0, |at, section| Some(std::mem::replace(at, *at + section.said.len())));
        let starts: Vec<usize> = starts.filter(|start| start + length <= said.len()).collect();
        let begin = starts.get(random.below(starts.len())).copied().unwrap_or_default();
        sample.begins.push(sample.said.len());
        sample.said.extend(said[begin..begin + length].iter().map(|one| (*one).clone()));
    }
    sample.begins.remove(0);
    (!sample.begins.is_empty()).then_some(sample)
}

/// A text of three sections or more, divided at them. Of a longer text, the first eight.
fn sections(text: &[Section]) -> Option<Sample> {
    let mut sample = Sample { said: Vec::new(), begins: Vec::new() };
    for section in text.iter().filter(|section| section.said.len() >= 3).take(8) {
        sample.begins.push(sample.said.len());
        sample.said.extend(section.said.iter().cloned());
    }
    (sample.begins.len() >= 3).then(|| sample.begins.remove(0)).map(|_| sample)
}

/// Returns the longest section of a text, if it has 40 sentences: one topic, as far as its author divided it.
fn longest(text: &[Section]) -> Option<Sample> {
    let section = text.iter().max_by_key(|section| section.said.len()).filter(|section| section.said.len() >= 40)?;
    Some(Sample { said: section.said.clone(), begins: Vec::new() })
}

impl Sample {
    /// Returns it as a recogniser would write it: one word in five wrong (14 % are others, 4 % are missing, 2 % are added),
    /// neither case nor punctuation, and utterances of 4 to 24 words whatever the sentences are.
    pub fn recognised(&self, sources: &[Source], random: &mut Random) -> Self {
        let mut said = Vec::new();
        let mut begins = Vec::new();
        let ends = self.begins.iter().copied().chain([self.said.len()]);
        let mut begin = 0;
        for end in ends {
            if begin > 0 {
                begins.push(said.len());
            }
            let heard = heard(&self.said[begin..end], sources, random);
            let mut rest = heard.as_slice();
            while !rest.is_empty() {
                let (utterance, after) = rest.split_at(random.between(4, 24).min(rest.len()));
                said.push(utterance.join(" "));
                rest = after;
            }
            begin = end;
        }
        Self { said, begins }
    }
}

fn heard(said: &[String], sources: &[Source], random: &mut Random) -> Vec<String> {
    let mut heard = Vec::new();
    for word in said.iter().flat_map(|one| words(one)) {
        match random.below(100) {
            0..14 => heard.extend(any_word(sources, random)),
            14..18 => {}
            18..20 => {
                heard.push(word);
                heard.extend(any_word(sources, random));
            }
            _ => heard.push(word),
        }
    }
    heard
}

fn any_word(sources: &[Source], random: &mut Random) -> Option<String> {
    let text = sources.get(random.below(sources.len())).and_then(|one| one.texts.get(random.below(one.texts.len())))?;
    let section = text.get(random.below(text.len()))?;
    let line = section.said.get(random.below(section.said.len()))?;
    let all: Vec<String> = words(line).collect();
    all.get(random.below(all.len())).cloned()
}
