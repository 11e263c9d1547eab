//! What is drawn, and what the keys do.

use super::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;

fn page() -> Page {
    let status = serde_json::from_value(json!({
        "jobs": {}, "total": 0, "running": 0, "waiting_for_a_person": 0, "pauses": { "all": null, "sources": {} }, "daemon": null,
        "frozen": (0..40).map(|n| json!({ "source": format!("s{n}"), "reason": "away" })).collect::<Vec<_>>(),
    }));
    let mut page = Page { title: "/etc/scribed/jobs.toml".to_owned(), ..Page::default() };
    page.renew((status.unwrap(), Waiting::default()));
    page
}

fn drawn(page: &mut Page, (width, height): (u16, u16)) -> Vec<String> {
    let mut screen = Terminal::new(TestBackend::new(width, height)).unwrap();
    screen.draw(|frame| page.draw(frame)).unwrap();
    let cells = screen.backend().buffer().content.chunks(usize::from(width));
    cells.map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>().trim_end().to_owned()).collect()
}

fn press(page: &mut Page, code: KeyCode) -> bool {
    page.follow(KeyEvent::new(code, KeyModifiers::NONE))
}

#[test]
fn keys_scroll_within_what_is_there_and_end_it() {
    let mut page = page();
    let rows = drawn(&mut page, (80, 24));
    assert!(rows[0].starts_with("scribed top  ") && rows[0].ends_with("/etc/scribed/jobs.toml"), "{rows:?}");
    assert_eq!((rows[1].as_str(), rows[23].as_str()), ("jobs      0 jobs", "q ends  ↑ ↓ scroll (1 to 22 of 41)"));
    for (code, first) in [
        (KeyCode::Up, "jobs      0 jobs"),
        (KeyCode::Down, "sources   source s0 is not available: away"),
        (KeyCode::End, "          source s18 is not available: away"),
        (KeyCode::PageDown, "          source s18 is not available: away"),
        (KeyCode::Home, "jobs      0 jobs"),
    ] {
        assert!(!press(&mut page, code));
        assert_eq!(drawn(&mut page, (80, 24))[1], first, "{code:?}");
    }
    assert!(press(&mut page, KeyCode::Char('q')) && press(&mut page, KeyCode::Esc));
    assert!(page.follow(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
    assert!(!press(&mut page, KeyCode::Char('c')));
}

#[test]
fn a_daemon_that_does_not_answer_is_said_and_the_last_state_stays() {
    let mut page = page();
    page.trouble = Some("no daemon runs\u{1b}[2J".to_owned());
    let rows = drawn(&mut page, (80, 10));
    assert_eq!(rows[1], "jobs      0 jobs");
    assert!(
        rows[9].starts_with("no daemon runs") && rows[9].ends_with("; trying again") && !rows[9].contains('\u{1b}'),
        "{rows:?}"
    );
}

#[test]
fn no_screen_is_too_small() {
    let mut page = page();
    for size in [(1, 1), (2, 2), (12, 3), (300, 100)] {
        drawn(&mut page, size);
    }
}
