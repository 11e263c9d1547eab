//! Makes a FLAC file of any length in few bytes: each frame says that 65,535 samples are equal.

const BLOCK: u64 = 65_535;

/// Returns a file of `seconds` at 1,000 samples a second. `announced` is whether the header declares the number of
/// samples.
pub fn long_flac(seconds: u64, announced: bool) -> Vec<u8> {
    let rate = 1_000;
    let frames = (seconds * rate).div_ceil(BLOCK);
    let samples = if announced { frames * BLOCK } else { 0 };
    let mut file = b"fLaC\x80\0\0\x22".to_vec();
    file.extend([BLOCK.to_be_bytes()[6..].repeat(2), vec![0; 6]].concat());
    // The rate in 20 bits, one channel in 3, 16 bits a sample in 5, the number of samples in 36.
    file.extend((rate << 44 | 15 << 36 | samples).to_be_bytes());
    file.extend([0; 16]);
    for number in 0..frames {
        let start = file.len();
        file.extend([0xFF, 0xF8, 0x70, 0x00]);
        file.extend(coded(number as u32));
        file.extend(u16::try_from(BLOCK - 1).unwrap().to_be_bytes());
        file.push(crc8(&file[start..]));
        file.extend([0, 0, 0]);
        file.extend(crc16(&file[start..]).to_be_bytes());
    }
    file
}

/// Encodes a frame number like a UTF-8 character.
fn coded(number: u32) -> Vec<u8> {
    let mut buffer = [0; 4];
    let surrogate = (0xD800..0xE000).contains(&number);
    match char::from_u32(number) {
        Some(char) if !surrogate => char.encode_utf8(&mut buffer).as_bytes().to_vec(),
        _ => {
            let part = |shift: u32| 0x80 | (number >> shift & 0x3F) as u8;
            vec![0xE0 | (number >> 12) as u8, part(6), part(0)]
        }
    }
}

fn crc8(bytes: &[u8]) -> u8 {
    let step = |crc: u8, _| if crc & 0x80 == 0 { crc << 1 } else { crc << 1 ^ 0x07 };
    bytes.iter().fold(0, |crc, byte| (0..8).fold(crc ^ byte, step))
}

fn crc16(bytes: &[u8]) -> u16 {
    let step = |crc: u16, _| if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x8005 };
    bytes.iter().fold(0, |crc, byte| (0..8).fold(crc ^ u16::from(*byte) << 8, step))
}
