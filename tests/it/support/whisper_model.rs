//! A made model for the library of whisper.cpp (`tests/whisper/install.sh` installs that). It knows no speech: it says one
//! sentence in English for two seconds of low sound, and one in German for high sound. So everything around the weights is
//! real: the file, the library, its search, its tokens and their times.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// What it says for low and for high sound.
pub const LOW: &str = "A low tone.";
pub const HIGH: &str = "Ein hoher Ton!";

/// Returns the library's file.
pub fn library() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let checked = Command::new(root.join("tests/whisper/install.sh")).arg("--check").output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    root.join("target/whisper/libwhisper.so")
}

/// Returns the path of the model file, which is written once.
pub fn made_model() -> &'static Path {
    static WRITTEN: LazyLock<PathBuf> = LazyLock::new(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("made-whisper.bin");
        // Another run of the tests may read it.
        let half_written = path.with_extension(std::process::id().to_string());
        std::fs::write(&half_written, bytes()).unwrap();
        std::fs::rename(&half_written, &path).unwrap();
        path
    });
    &WRITTEN
}

/// Returns samples of 16 kHz: half-second bursts of a tone, so that they count as speech.
pub fn tone(hertz: f64, seconds: usize) -> Vec<i16> {
    let sample = |at: usize| {
        let time = at as f64 / 16_000.0;
        let is_on = time % 0.5 < 0.4;
        if is_on { (8_000.0 * (std::f64::consts::TAU * hertz * time).sin()) as i16 } else { 0 }
    };
    (0..seconds * 16_000).map(sample).collect()
}

pub const LOW_HERTZ: f64 = 500.0;
pub const HIGH_HERTZ: f64 = 6_000.0;

const WIDTH: usize = 64;
const BANDS: usize = 80;
const BINS: usize = 201;
const WORDS: usize = 51_865;
const OWN_WORDS: usize = 50_257;
const AUDIO_POSITIONS: usize = 1_500;
const TEXT_POSITIONS: usize = 64;

/// The marks of a multilingual model.
const END: usize = 50_257;
const ENGLISH: usize = 50_259;
const GERMAN: usize = 50_261;
const TIME_0: usize = 50_364;
/// Two seconds.
const TIME_2: usize = TIME_0 + 100;

const LOW_WORDS: [(usize, &str); 4] = [(1_000, " A"), (1_001, " low"), (1_002, " tone"), (1_003, ".")];
const HIGH_WORDS: [(usize, &str); 4] = [(2_000, " Ein"), (2_001, " hoher"), (2_002, " Ton"), (2_003, "!")];

/// Returns a vector that no other token has. Its first component, which the sound decides on, is zero.
fn direction(token: usize) -> [f32; WIDTH] {
    let mut state = token as u64 + 1;
    std::array::from_fn(|at| {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        match at {
            0 => 0.0,
            _ if (mixed >> 63) == 0 => 0.125,
            _ => -0.125,
        }
    })
}

/// Returns the vector by which a token is known and chosen: low sound is at one end of the first component.
fn embedding(token: usize) -> [f32; WIDTH] {
    let mut vector = direction(token).map(|one| 4.0 * one);
    let is_of = |words: &[(usize, &str)]| words.iter().any(|(one, _)| *one == token);
    if is_of(&LOW_WORDS) || token == ENGLISH {
        vector[0] = 2.0;
    } else if is_of(&HIGH_WORDS) || token == GERMAN {
        vector[0] = -2.0;
    }
    vector
}

/// Returns what is said after each position: the sound chooses between two tokens. Position 0 is where the language is
/// found, 2 is the last one before the first token.
fn positions() -> Vec<f32> {
    let said = |words: [(usize, &str); 4]| {
        let words = words.map(|(word, _)| word);
        [&[TIME_0][..], &words, &[TIME_2, END]].concat()
    };
    let (low, high) = (said(LOW_WORDS), said(HIGH_WORDS));
    let pair = |position: usize| match position {
        0 => (ENGLISH, GERMAN),
        1 => (END, END),
        _ => match (low.get(position - 2), high.get(position - 2)) {
            (Some(low), Some(high)) => (*low, *high),
            _ => (END, END),
        },
    };
    let vector = |position| {
        let (low, high) = pair(position);
        let (low, high) = (direction(low), direction(high));
        std::array::from_fn::<f32, WIDTH, _>(|at| 24.0 * (low[at] + high[at]))
    };
    (0..TEXT_POSITIONS).flat_map(vector).collect()
}

struct ModelFile(Vec<u8>);

impl ModelFile {
    fn number(&mut self, number: usize) {
        self.0.extend(u32::try_from(number).unwrap().to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len());
        self.0.extend(text.as_bytes());
    }

    /// Vectors and positions are stored in 32 bits, all else in 16.
    fn tensor(&mut self, name: &str, sizes: &[usize], values: &[f32]) {
        assert_eq!(sizes.iter().product::<usize>(), values.len(), "{name}");
        let is_whole = sizes.len() == 1 || name.ends_with("positional_embedding") || name.ends_with("bias");
        [sizes.len(), name.len(), usize::from(!is_whole)].into_iter().for_each(|number| self.number(number));
        sizes.iter().rev().for_each(|size| self.number(*size));
        self.0.extend(name.as_bytes());
        match is_whole {
            true => self.0.extend(values.iter().flat_map(|value| value.to_le_bytes())),
            false => self.0.extend(values.iter().flat_map(|value| half(*value).to_le_bytes())),
        }
    }

    fn zeros(&mut self, name: &str, sizes: &[usize]) {
        self.tensor(name, sizes, &vec![0.0; sizes.iter().product()]);
    }

    fn norm(&mut self, name: &str) {
        self.tensor(&format!("{name}.weight"), &[WIDTH], &[1.0; WIDTH]);
        self.zeros(&format!("{name}.bias"), &[WIDTH]);
    }

    fn attention(&mut self, name: &str, value: &[f32], out: &[f32]) {
        for (part, weights) in [("query", None), ("key", None), ("value", Some(value)), ("out", Some(out))] {
            let zeros = [0.0; WIDTH * WIDTH];
            self.tensor(&format!("{name}.{part}.weight"), &[WIDTH, WIDTH], weights.unwrap_or(&zeros));
            if part != "key" {
                self.zeros(&format!("{name}.{part}.bias"), &[WIDTH]);
            }
        }
    }

    /// A layer that adds nothing, but for what `sound` attends to.
    fn layer(&mut self, name: &str, sound: Option<(&[f32], &[f32])>) {
        let zeros = [0.0; WIDTH * WIDTH];
        self.norm(&format!("{name}.attn_ln"));
        self.attention(&format!("{name}.attn"), &zeros, &zeros);
        if let Some((value, out)) = sound {
            self.norm(&format!("{name}.cross_attn_ln"));
            self.attention(&format!("{name}.cross_attn"), value, out);
        }
        self.norm(&format!("{name}.mlp_ln"));
        self.zeros(&format!("{name}.mlp.0.weight"), &[4 * WIDTH, WIDTH]);
        self.zeros(&format!("{name}.mlp.0.bias"), &[4 * WIDTH]);
        self.zeros(&format!("{name}.mlp.2.weight"), &[WIDTH, 4 * WIDTH]);
        self.zeros(&format!("{name}.mlp.2.bias"), &[WIDTH]);
    }
}

/// Returns the bits of a number that 16 bits hold exactly, or nearly.
fn half(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    if value == 0.0 {
        return sign;
    }
    let exponent = ((bits >> 23) & 0xff) as i32 - 127 + 15;
    assert!((1..31).contains(&exponent), "{value}");
    sign | (exponent as u16) << 10 | (bits >> 13 & 0x3ff) as u16
}

fn matrix(cells: &[(usize, usize, f32)]) -> Vec<f32> {
    let mut matrix = vec![0.0; WIDTH * WIDTH];
    cells.iter().for_each(|(row, column, value)| matrix[row * WIDTH + column] = *value);
    matrix
}

/// Returns the whole file.
pub fn bytes() -> Vec<u8> {
    let mut file = ModelFile(Vec::new());
    let header = [0x6767_6d6c, WORDS, AUDIO_POSITIONS, WIDTH, 1, 1, TEXT_POSITIONS, WIDTH, 1, 1, BANDS, 1];
    header.into_iter().chain([BANDS, BINS]).for_each(|number| file.number(number));
    for band in 0..BANDS {
        let own = band * 200 / BANDS..=(band + 1) * 200 / BANDS;
        file.0.extend((0..BINS).flat_map(|bin| if own.contains(&bin) { 0.25_f32 } else { 0.0 }.to_le_bytes()));
    }
    vocabulary(&mut file);
    encoder(&mut file);
    decoder(&mut file);
    file.0
}

fn vocabulary(file: &mut ModelFile) {
    file.number(OWN_WORDS);
    for token in 0..OWN_WORDS {
        let own = LOW_WORDS.iter().chain(&HIGH_WORDS).find(|(word, _)| *word == token);
        match (token, own) {
            (_, Some((_, text))) => file.text(text),
            (220, _) => file.text(" "),
            (532, _) => file.text(" -"),
            (705, _) => file.text(" '"),
            _ => file.text(&format!("t{token}")),
        }
    }
}

/// Two channels: how much more low sound there is than high, and the reverse.
fn encoder(file: &mut ModelFile) {
    file.zeros("encoder.positional_embedding", &[AUDIO_POSITIONS, WIDTH]);
    let mut compared = vec![0.0; WIDTH * BANDS * 3];
    for band in 0..BANDS {
        let sign = if band < BANDS / 2 { 0.03125 } else { -0.03125 };
        compared[band * 3 + 1] = sign;
        compared[(BANDS + band) * 3 + 1] = -sign;
    }
    file.tensor("encoder.conv1.weight", &[WIDTH, BANDS, 3], &compared);
    file.zeros("encoder.conv1.bias", &[WIDTH, 1]);
    let mut same = vec![0.0; WIDTH * WIDTH * 3];
    (0..2).for_each(|channel| same[(channel * WIDTH + channel) * 3 + 1] = 1.0);
    file.tensor("encoder.conv2.weight", &[WIDTH, WIDTH, 3], &same);
    file.zeros("encoder.conv2.bias", &[WIDTH, 1]);
    file.norm("encoder.ln_post");
    file.layer("encoder.blocks.0", None);
}

fn decoder(file: &mut ModelFile) {
    file.tensor("decoder.positional_embedding", &[TEXT_POSITIONS, WIDTH], &positions());
    let embeddings: Vec<f32> = (0..WORDS).flat_map(embedding).collect();
    file.tensor("decoder.token_embedding.weight", &[WORDS, WIDTH], &embeddings);
    file.norm("decoder.ln");
    let (value, out) = (matrix(&[(0, 0, 1.0), (0, 1, -1.0)]), matrix(&[(0, 0, 64.0)]));
    file.layer("decoder.blocks.0", Some((&value, &out)));
}
