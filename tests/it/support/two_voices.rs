//! Recorded speech of two voices, made of that of one reader.

use super::librivox::readings;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The reader, and the same speech as a higher voice would say it.
pub const READER: &str = "anull";
pub const HIGHER: &str = "asetrate=22000,aresample=16000,atempo=0.727";

/// Some of the readings in a row, changed by filters of ffmpeg.
pub fn speech(numbers: &[usize], filters: &str, to: &Path) -> PathBuf {
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-v", "error", "-y"]);
    for number in numbers {
        command.arg("-i").arg(&readings()[*number].path);
    }
    let inputs: String = (0..numbers.len()).map(|number| format!("[{number}:a]")).collect();
    let graph = format!("{inputs}concat=n={}:v=0:a=1,{filters}", numbers.len());
    assert!(command.args(["-filter_complex", &graph]).arg(to).status().expect("install `ffmpeg`").success());
    to.to_owned()
}
