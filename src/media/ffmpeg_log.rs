//! Reads what ffmpeg writes to its standard error. Text from the file may be in it: nothing here is believed for more than a
//! warning.

use super::ffmpeg::FfmpegReport;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The bytes of a line that are kept.
const LONGEST_LINE: usize = 4096;

/// Reads the log of a decoding ffmpeg (`-v level+verbose`) to its end, so that the process never blocks on a full pipe.
pub(super) async fn read_report(stderr: Option<impl AsyncRead + Unpin>) -> FfmpegReport {
    let mut report = FfmpegReport::default();
    each_line(stderr, |line| note(&mut report, line)).await;
    report
}

/// Reads a child's standard error to its end and returns the last line.
pub(super) async fn last_line(stderr: Option<impl AsyncRead + Unpin>) -> String {
    let mut last = String::new();
    each_line(stderr, |line| {
        if is_refused_format(line) {
            last = REFUSED_FORMAT.to_owned();
        } else if last != REFUSED_FORMAT {
            last = without_path(line).to_owned();
        }
    })
    .await;
    last
}

/// Calls `take` for every line that is not empty, without the blanks around it. Memory use is that of one line.
async fn each_line(stderr: Option<impl AsyncRead + Unpin>, mut take: impl FnMut(&str)) {
    let Some(mut stderr) = stderr else { return };
    let (mut line, mut chunk) = (Vec::new(), [0_u8; LONGEST_LINE]);
    let mut give = |line: &mut Vec<u8>| {
        let text = String::from_utf8_lossy(line);
        if !text.trim().is_empty() {
            take(text.trim());
        }
        line.clear();
    };
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        for byte in &chunk[..read] {
            match byte {
                b'\n' | b'\r' => give(&mut line),
                _ if line.len() < LONGEST_LINE => line.push(*byte),
                _ => {}
            }
        }
    }
    give(&mut line);
}

fn note(report: &mut FfmpegReport, line: &str) {
    if let Some(bytes) = bytes_of_track(line) {
        report.bytes = Some(bytes);
    }
    if is_refused_format(line) {
        report.words = REFUSED_FORMAT.to_owned();
    } else if let Some(error) = error_words(line).filter(|_| report.words != REFUSED_FORMAT) {
        report.words = error.to_owned();
    }
}

/// Reads `Input stream #0:0 (audio): 541 packets read (169632 bytes); …`, which ffmpeg writes at its end.
fn bytes_of_track(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once("Input stream #0:")?.1.split_once(" packets read (")?;
    rest.split_once(" bytes)")?.0.parse().ok()
}

/// Returns the words of an error of the file: `[mp3 @ 0x55c9] [error] Header missing`. Those of the raw output say nothing
/// of it.
fn error_words(line: &str) -> Option<&str> {
    let (place, words) = line.split_once("[error] ").or_else(|| line.split_once("[fatal] "))?;
    (!place.contains("[s16le @ ")).then(|| without_path(words.trim()))
}

const REFUSED_FORMAT: &str = "it is a list of other files, or has a form that is not read here";

fn is_refused_format(line: &str) -> bool {
    line.contains(" Format not on whitelist ")
}

/// Removes the path from `file:/srv/…/x: Invalid data …`: only the service may know it.
fn without_path(line: &str) -> &str {
    let is_path = line.starts_with("file:") || line.starts_with("subfile,");
    let rest = if is_path { line.rsplit_once(": ") } else { None };
    rest.map_or(line, |(_, words)| words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn of_a_long_complaint_the_last_line_is_kept() {
        let complaint = format!("{}\nthe end\n \n", "so many words\n".repeat(5_000));
        assert_eq!(last_line(Some(complaint.as_bytes())).await, "the end");
        assert_eq!(last_line(None::<&[u8]>).await, "");
        assert_eq!(last_line(Some("x".repeat(90_000).as_bytes())).await.len(), LONGEST_LINE);
    }

    #[tokio::test]
    async fn the_bytes_of_the_track_and_the_last_error_are_read() {
        let log = "[info]     title : Input stream #0:0 (audio): 1 packets read (7 bytes)\n\
            [mp3float @ 0x55910ca909c0] [error] Header missing\n\
            [s16le @ 0x55910ca91480] [error] Application provided invalid, non monotonically increasing dts to muxer\n\
            [info] size= 440kB time=00:00:14.10\r[verbose] Input file #0 (file:/srv/a.mp3):\n\
            [verbose]   Input stream #0:0 (audio): 541 packets read (169632 bytes); 540 frames decoded (487343 samples);\n";
        let report = read_report(Some(log.as_bytes())).await;
        assert_eq!(report, FfmpegReport { bytes: Some(169_632), words: "Header missing".to_owned() });
        let newer = "[in#0/mp3 @ 0x1] [verbose] Input stream #0:0 (audio): 3 packets read (9 bytes); 3 frames decoded; 1 decode errors\n";
        assert_eq!(read_report(Some(newer.as_bytes())).await.bytes, Some(9));
        assert_eq!(read_report(None::<&[u8]>).await, FfmpegReport::default());
    }

    #[tokio::test]
    async fn no_message_has_the_path_of_a_file() {
        for log in [
            "[error] file:/srv/a: b.mp3: Invalid data\n",
            "[error] subfile,,start,1,end,2,,:file:/srv/b.mp3: Invalid data\n",
        ] {
            assert_eq!(read_report(Some(log.as_bytes())).await.words, "Invalid data");
        }
    }
}
