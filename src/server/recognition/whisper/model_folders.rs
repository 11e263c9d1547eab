//! Where model files are looked for.

use std::path::{Path, PathBuf};

/// Returns the folders in which model files are looked for, in this order: the one beside the configuration, the
/// user's own (the XDG Base Directory Specification), and those of the machine. They need not exist.
pub fn model_folders(beside: &Path, env: impl Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let is_absolute = |path: &PathBuf| path.is_absolute();
    let home = || env("HOME").filter(is_absolute).map(|home| home.join(".local/share"));
    let own = env("XDG_DATA_HOME").filter(is_absolute).or_else(home);
    let shared = ["/usr/local/share", "/usr/share"].map(PathBuf::from);
    let below = own.into_iter().chain(shared).map(|folder| folder.join("scribed/models"));
    std::iter::once(beside.to_owned()).chain(below).collect()
}

/// Returns the files that a name may mean: `base` is short for `ggml-base.bin`.
pub fn file_names(name: &str) -> Vec<String> {
    let mut names = vec![name.to_owned()];
    if !name.contains('.') || name.ends_with(".en") {
        names.push(format!("ggml-{name}.bin"));
    }
    names
}

/// Returns the first file of this name in these folders.
pub fn find_model(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let names = file_names(name);
    let candidates = folders.iter().flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    candidates.into_iter().find(|path| path.is_file())
}

/// Returns the files in a folder that are named as models are, in order of their names; none if it cannot be read.
pub fn model_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_model = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "bin") && path.is_file();
    let mut files: Vec<PathBuf> = entries.filter(is_model).collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_follow_the_environment() {
        let folders = |env: &dyn Fn(&str) -> Option<PathBuf>| model_folders(Path::new("/etc/scribed/models"), env);
        let home = folders(&|name| (name == "HOME").then(|| "/home/anna".into()));
        assert_eq!(home[..2], ["/etc/scribed/models", "/home/anna/.local/share/scribed/models"].map(PathBuf::from));
        let data = folders(&|name| (name == "XDG_DATA_HOME").then(|| "/data".into()));
        assert_eq!(data[1], Path::new("/data/scribed/models"));
        let relative = folders(&|name| (name == "XDG_DATA_HOME").then(|| "data".into()));
        assert_eq!(relative[1..], ["/usr/local/share/scribed/models", "/usr/share/scribed/models"].map(PathBuf::from));
    }

    #[test]
    fn a_name_is_found_in_the_first_folder_that_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let folders = ["a", "b"].map(|name| folder.path().join(name)).to_vec();
        folders.iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
        std::fs::write(folders[1].join("ggml-base.en.bin"), "").unwrap();
        let expected = folders[1].join("ggml-base.en.bin");
        assert_eq!(find_model("base.en", &folders), Some(expected.clone()));
        assert_eq!(find_model("ggml-base.en.bin", &folders), Some(expected.clone()));
        assert_eq!((find_model("base", &folders), find_model("ggml-base.en", &folders)), (None, None));
        assert_eq!((model_files(&folders[1]), model_files(&folders[0])), (vec![expected], vec![]));
    }
}
