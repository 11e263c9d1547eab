//! The program. Everything is in the library; its map is `src/lib.rs`.

use std::process::ExitCode;

fn main() -> ExitCode {
    scribed::run()
}
