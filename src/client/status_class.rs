//! What the status of an HTTP answer means before its body is looked at.

/// What a status means for every call alike (design, sections 5 and 7). What 404 means besides is
/// for the call to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusClass {
    /// Taken; the body has the rest.
    Accepted,
    /// This file or these parameters are refused, now and later.
    Refused,
    /// The key or the account is refused.
    Barred,
    /// Slower, please.
    Throttled,
    /// Anything else says nothing about the request: the service, or something before it, is at fault.
    Broken,
}

impl StatusClass {
    /// Whether a create that was answered so, to the answer's end, was certainly not accepted.
    pub fn certainly_not_accepted(self) -> bool {
        matches!(self, Self::Refused | Self::Barred | Self::Throttled)
    }
}

/// The one place where a status gets its meaning. 409 and 425 are among the broken: neither says
/// whether an earlier request was accepted.
pub fn meaning(status: u16) -> StatusClass {
    match status {
        200..=299 => StatusClass::Accepted,
        401..=403 => StatusClass::Barred,
        429 => StatusClass::Throttled,
        400 | 404 | 405 | 413 | 415 | 422 => StatusClass::Refused,
        _ => StatusClass::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSED: [u16; 6] = [400, 404, 405, 413, 415, 422];
    const BARRED: [u16; 3] = [401, 402, 403];

    #[test]
    fn every_status_has_its_meaning() {
        for status in 100..=599 {
            let expected = match status {
                _ if (200..300).contains(&status) => StatusClass::Accepted,
                _ if REFUSED.contains(&status) => StatusClass::Refused,
                _ if BARRED.contains(&status) => StatusClass::Barred,
                429 => StatusClass::Throttled,
                _ => StatusClass::Broken,
            };
            assert_eq!(meaning(status), expected, "{status}");
        }
    }

    #[test]
    fn a_create_is_certainly_not_accepted_by_the_ten_of_the_protocol_only() {
        let ten = [400, 401, 402, 403, 404, 405, 413, 415, 422, 429];
        for status in 100..=599 {
            assert_eq!(meaning(status).certainly_not_accepted(), ten.contains(&status), "{status}");
        }
    }
}
