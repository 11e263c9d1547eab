//! How text stands in a page: escaped as HTML, and with nothing in it that hides or reverses the text around it.

use crate::domain::escape;
use askama::filters::{Escaper, Html};
use std::fmt;

#[derive(Debug, Clone, Copy)]
pub struct VisibleText;

impl Escaper for VisibleText {
    fn write_escaped_str<W: fmt::Write>(&self, dest: W, string: &str) -> fmt::Result {
        Html.write_escaped_str(dest, &escape::lines(string))
    }
}
