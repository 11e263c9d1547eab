//! Classifies the status of an HTTP answer, before its body is read.

/// The meaning of a status that is the same for all requests. A request may give 404 a further meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusClass {
    /// Accepted; the body says more.
    Accepted,
    /// This file or these parameters are refused, and will be again.
    Refused,
    /// The key or the account is refused.
    Barred,
    /// The service asks for fewer requests.
    Throttled,
    /// Any other status: the fault is in the service or in front of it, not in the request.
    Broken,
}

impl StatusClass {
    /// Whether a create with this complete answer was certainly not accepted.
    pub fn certainly_not_accepted(self) -> bool {
        matches!(self, Self::Refused | Self::Barred | Self::Throttled)
    }
}

/// Returns the class of a status; the only place that decides it. 409 and 425 count as broken: they do not say whether
/// an earlier request was accepted.
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
