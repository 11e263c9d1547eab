//! Sound without speech.

pub const RATE: usize = 16_000;

#[derive(Debug, Clone, Copy)]
pub enum Background {
    Silence,
    /// The hiss of a quiet room.
    Hiss,
    /// Loud steady noise.
    Noise,
    /// Chords that are held.
    Chords,
    /// A melody of plucked notes.
    Melody,
    /// Drums alone.
    Drums,
}

impl Background {
    pub const ALL: [Self; 6] = [Self::Silence, Self::Hiss, Self::Noise, Self::Chords, Self::Melody, Self::Drums];

    pub fn name(self) -> &'static str {
        match self {
            Self::Silence => "silence",
            Self::Hiss => "hiss",
            Self::Noise => "loud steady noise",
            Self::Chords => "music: chords",
            Self::Melody => "music: a melody",
            Self::Drums => "music: drums",
        }
    }

    /// Returns sound of this kind. The halves have other instruments and speeds.
    pub fn samples(self, seconds: usize, half: usize, random: &mut fastrand::Rng) -> Vec<i16> {
        let mut sound = vec![0.0; seconds * RATE];
        match self {
            Self::Silence => {}
            Self::Hiss => add_noise(&mut sound, 60.0, random),
            Self::Noise => add_noise(&mut sound, 3000.0, random),
            Self::Chords => notes(&mut sound, 1.5 + half as f64, 3, 0.3, half, random),
            Self::Melody => notes(&mut sound, 0.2 + 0.15 * random.f64(), 1, 3.0, half, random),
            Self::Drums => drums(&mut sound, 0.2 + 0.2 * random.f64(), random),
        }
        add_noise(&mut sound, 3.0, random);
        sound.into_iter().map(|sample| sample.clamp(-32768.0, 32767.0) as i16).collect()
    }
}

fn add_noise(sound: &mut [f64], amplitude: f64, random: &mut fastrand::Rng) {
    sound.iter_mut().for_each(|sample| *sample += amplitude * (2.0 * random.f64() - 1.0));
}

/// Adds `many` notes at once, every `step` seconds, that fade at the rate `fading`.
fn notes(sound: &mut [f64], step: f64, many: usize, fading: f64, half: usize, random: &mut fastrand::Rng) {
    let seconds = sound.len() as f64 / RATE as f64;
    let mut begin = 0.0;
    while begin < seconds {
        let length = step * f64::from(random.u8(1..4));
        for _ in 0..many {
            let (pitch, loudness) =
                (110.0 * 2_f64.powf(f64::from(random.u8(..36)) / 12.0), 1000.0 + 3000.0 * random.f64());
            let from = (begin * RATE as f64) as usize;
            for (n, sample) in sound.iter_mut().skip(from).take((2.0 * length * RATE as f64) as usize).enumerate() {
                let time = n as f64 / RATE as f64;
                *sample += loudness * (-fading * time / length).exp() * timbre(pitch * time, half);
            }
        }
        begin += step;
    }
}

/// A tone with the overtones of one half's instrument.
fn timbre(turns: f64, half: usize) -> f64 {
    let overtones: &[f64] = if half == 0 { &[1.0, 0.5, 0.33, 0.25] } else { &[1.0, 0.0, 0.4, 0.0, 0.3, 0.0, 0.2] };
    let tone = |(n, loudness): (usize, &f64)| loudness * (std::f64::consts::TAU * turns * (n + 1) as f64).sin();
    overtones.iter().enumerate().map(tone).sum()
}

fn drums(sound: &mut [f64], step: f64, random: &mut fastrand::Rng) {
    let seconds = sound.len() as f64 / RATE as f64;
    let (mut begin, mut beat) = (0.0, 0);
    while begin < seconds {
        let from = (begin * RATE as f64) as usize;
        for (n, sample) in sound.iter_mut().skip(from).take(RATE / 5).enumerate() {
            let time = n as f64 / RATE as f64;
            let hit =
                if beat % 2 == 0 { (std::f64::consts::TAU * 60.0 * time).sin() } else { 2.0 * random.f64() - 1.0 };
            *sample += 8000.0 * (-time / 0.04).exp() * hit;
        }
        (begin, beat) = (begin + step, beat + 1);
    }
}

/// Returns 16 kHz mono samples as a WAV file.
pub fn wav(samples: &[i16]) -> Vec<u8> {
    let length = samples.len() as u32 * 2;
    let mut bytes = Vec::with_capacity(samples.len() * 2 + 44);
    bytes.extend(b"RIFF");
    bytes.extend((length + 36).to_le_bytes());
    bytes.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    bytes.extend((RATE as u32).to_le_bytes());
    bytes.extend((RATE as u32 * 2).to_le_bytes());
    bytes.extend(b"\x02\0\x10\0data");
    bytes.extend(length.to_le_bytes());
    bytes.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
    bytes
}
