//! Messages as HTML: one page that loads nothing from elsewhere and runs nothing. All text is escaped. Styles are in a
//! style sheet and beside that at the elements themselves, because some mail programs remove the sheet.

use super::view::DigestView;
use crate::domain::escape;
use crate::notifications::message::Message;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, escape_formatter};
use serde::Serialize;

/// What both pages begin with, up to the body.
const HEAD: &str = include_str!("head.html");
const DIGEST: &str = include_str!("digest.html");
const MESSAGE: &str = include_str!("message.html");

/// Returns the page of a digest.
pub fn digest_page(view: &DigestView) -> String {
    render(DIGEST, view)
}

/// Returns the page of any other message.
pub fn html_page(message: &Message) -> String {
    #[derive(Serialize)]
    struct MessageView<'m> {
        title: &'m str,
        lines: Vec<&'m str>,
    }
    render(MESSAGE, &MessageView { title: &message.title, lines: message.text.lines().collect() })
}

fn render(template: &str, view: &impl Serialize) -> String {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    // Text of others may contain characters that make it look like another text.
    environment.set_formatter(|out, state, value| match value.as_str() {
        Some(text) if !value.is_safe() => escape_formatter(out, state, &escape::lines(text).into_owned().into()),
        _ => escape_formatter(out, state, value),
    });
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let rendered =
        environment.add_template("head.html", HEAD).and_then(|()| environment.render_str(template, Serde(view)));
    rendered.unwrap_or_else(|error| {
        // A fault of this program; the plain text is sent all the same.
        tracing::error!(error = format!("{error:#}"), "cannot render a message as HTML");
        String::new()
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::domain::names::Timestamp;
    use crate::domain::notification::NotificationEvent;

    #[test]
    fn a_message_is_a_page_with_the_head_of_all_pages() {
        let words = vec!["a <b> & c".to_owned()];
        let message = Message::worded(NotificationEvent::Outage, ("msg_1", Timestamp(0)), Vec::new(), words, 0);
        let page = html_page(&message);
        let head = HEAD.replace("{{ title }}", "scribed: a &lt;b&gt; &amp; c");
        let body = page.strip_prefix(&head).unwrap_or_else(|| panic!("{page}"));
        assert!(body.starts_with("\n<body") && body.contains("a &lt;b&gt; &amp; c\n"), "{body}");
    }
}
