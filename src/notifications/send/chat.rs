//! The forms of chat services, by their public documentation: ntfy (publish as JSON), Slack (incoming webhooks), Discord
//! (execute webhook), Matrix (client-server API, send a message event).

use super::sender::SendError;
use crate::domain::notification::NotificationEvent;
use crate::notifications::message::{Message, shortened};
use reqwest::Url;
use serde_json::{Value, json};

/// The most bytes of a message that ntfy does not turn into an attachment.
const NTFY_BYTES: usize = 4_000;

/// The most characters that Slack shows without cutting.
const SLACK_CHARACTERS: usize = 4_000;

/// The most characters that Discord accepts.
const DISCORD_CHARACTERS: usize = 2_000;

/// Far below the 64 KiB of an event.
const MATRIX_CHARACTERS: usize = 8_000;

/// Divides the address of a topic into that of the server, which takes JSON, and the topic.
pub fn ntfy_server(topic: &Url) -> (Url, String) {
    let mut server = topic.clone();
    let path = topic.path().trim_end_matches('/');
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    server.set_path(&format!("{folder}/"));
    (server, name.to_owned())
}

pub fn ntfy_body(topic: &str, message: &Message) -> Value {
    let mut text = message.text.clone();
    while text.len() > NTFY_BYTES {
        let characters = text.chars().count();
        text = shortened(&text, characters - characters.div_ceil(10));
    }
    // 3 is the default, 4 is high.
    let priority =
        if message.event == NotificationEvent::Failed || message.event == NotificationEvent::Outage { 4 } else { 3 };
    json!({ "topic": topic, "title": message.title, "message": text, "priority": priority })
}

pub fn slack_body(message: &Message) -> Value {
    let text = format!("{}\n{}", message.title, message.text);
    let escaped = shortened(&text, SLACK_CHARACTERS).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    json!({ "text": escaped, "mrkdwn": false })
}

pub fn discord_body(message: &Message) -> Value {
    let text = format!("{}\n{}", message.title, message.text);
    // A name must mention nobody.
    json!({ "content": shortened(&text, DISCORD_CHARACTERS), "allowed_mentions": { "parse": [] } })
}

/// Returns the address below which a message is put into a room, under its id.
pub fn matrix_room(homeserver: &Url, room: &str) -> Result<Url, SendError> {
    let mut url = homeserver.clone();
    url.path_segments_mut()
        .map_err(|()| SendError::new("the address of the homeserver can have no path"))?
        .pop_if_empty()
        .extend(["_matrix", "client", "v3", "rooms", room, "send", "m.room.message"]);
    Ok(url)
}

pub fn matrix_body(message: &Message) -> Value {
    let text = format!("{}\n{}", message.title, message.text);
    json!({ "msgtype": "m.notice", "body": shortened(&text, MATRIX_CHARACTERS) })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::domain::names::Timestamp;

    fn message(text: &str) -> Message {
        let words = vec![text.to_owned()];
        Message::worded(NotificationEvent::Outage, ("msg_1", Timestamp(0)), Vec::new(), words, 0)
    }

    #[test]
    fn a_topic_is_below_its_server() {
        let divided = |url: &str| {
            let (server, topic) = ntfy_server(&Url::parse(url).unwrap());
            (server.to_string(), topic)
        };
        assert_eq!(divided("https://ntfy.sh/tapes"), ("https://ntfy.sh/".to_owned(), "tapes".to_owned()));
        assert_eq!(
            divided("https://a.example/push/tapes/"),
            ("https://a.example/push/".to_owned(), "tapes".to_owned())
        );
    }

    #[test]
    fn a_room_and_an_id_are_parts_of_the_path() {
        let room = matrix_room(&Url::parse("https://matrix.example.org/").unwrap(), "!a/b:example.org").unwrap();
        let wanted = "https://matrix.example.org/_matrix/client/v3/rooms/!a%2Fb:example.org/send/m.room.message";
        assert_eq!(room.as_str(), wanted);
    }

    #[test]
    fn long_texts_are_shortened_and_names_are_no_markup() {
        let long = message(&"ä<@everyone>".repeat(1_000));
        let text = |value: &Value, key: &str| value[key].as_str().unwrap().to_owned();
        assert!(text(&ntfy_body("t", &long), "message").len() <= NTFY_BYTES);
        assert!(text(&discord_body(&long), "content").chars().count() <= DISCORD_CHARACTERS);
        assert_eq!(discord_body(&long)["allowed_mentions"], json!({ "parse": [] }));
        assert!(!text(&slack_body(&long), "text").contains('<'));
    }
}
