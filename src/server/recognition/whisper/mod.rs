//! Recognises speech in this process with the library of whisper.cpp, which is loaded at run time, and a model file that
//! the user brings. `model_file` checks a file before the library reads it, since the library trusts it; `model_folders`
//! is where files are looked for, `library` calls the library, `parameters` are its settings, `words` makes words of its
//! tokens. Start reading at `engine.rs`.

pub(crate) mod engine;
pub(crate) mod library;
pub(crate) mod model_file;
pub(crate) mod model_folders;
mod parameters;
mod tensor_types;
mod words;
