//! `scribed add`: files are taken, whatever the patterns say.

use crate::cli::args::Add;
use crate::cli::each::Each;
use crate::cli::entry::Context;
use crate::cli::failure::Failure;
use crate::cli::row::row;
use crate::cli::way::{Way, place, strange};
use crate::control::request::{Added, Answer, Refusal, Request};
use crate::domain::reason::reason;
use crate::domain::stage::StageKind;
use std::io;
use std::path::Path;

/// Each of those that were named.
///
/// # Errors
/// See [`Failure`]; what is refused is said, and the others are taken.
pub async fn run(context: &Context, args: &Add) -> Result<u8, Failure> {
    let way = Way::find(&context.config()?)?;
    let mut each = Each::default();
    for typed in &args.paths {
        let put = match is_url(typed) {
            true => Err(Refusal::Usage(format!("{}: URLs come with manifests in a later build", typed.display()))),
            false => way.put(Request::Add { path: place(typed)? }).await?,
        };
        match put {
            Ok(Answer::Added(added)) => {
                each.done += 1;
                tell(context, &added)?;
            }
            Ok(_) => return Err(strange()),
            Err(refusal) => each.refused(context, typed, refusal)?,
        }
    }
    Ok(each.exit_code())
}

fn is_url(typed: &Path) -> bool {
    typed.to_str().is_some_and(|text| {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|scheme| !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    })
}

fn tell(context: &Context, added: &Added) -> io::Result<()> {
    let job = &added.job;
    let mut object = row(job);
    object["known"] = added.known.into();
    context.emit(&object)?;
    let (id, source, path, kind) = (job.id, &job.key.source, &job.key.path, job.stage.kind());
    if !added.known {
        return context.say(&format!("job {id}: {source}/{path} is taken; it is sent when it has been quiet"));
    }
    let mend = match kind {
        StageKind::Failed | StageKind::Cancelled => format!("; `scribed retry {id}` takes it up again"),
        _ => String::new(),
    };
    context.say(&format!("job {id}: {source}/{path} was taken before and is {}: {}{mend}", kind.name(), reason(job)))
}
