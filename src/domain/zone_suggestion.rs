//! Suggests a time zone for a name that is not one.

use crate::domain::did_you_mean::nearest;
use chrono_tz::TZ_VARIANTS;

/// Common names that the IANA database does not have.
const KNOWN_AS: [(&str, &str); 60] = [
    ("germany", "Europe/Berlin"),
    ("deutschland", "Europe/Berlin"),
    ("munich", "Europe/Berlin"),
    ("hamburg", "Europe/Berlin"),
    ("frankfurt", "Europe/Berlin"),
    ("cologne", "Europe/Berlin"),
    ("france", "Europe/Paris"),
    ("lyon", "Europe/Paris"),
    ("spain", "Europe/Madrid"),
    ("barcelona", "Europe/Madrid"),
    ("italy", "Europe/Rome"),
    ("milan", "Europe/Rome"),
    ("austria", "Europe/Vienna"),
    ("switzerland", "Europe/Zurich"),
    ("geneva", "Europe/Zurich"),
    ("netherlands", "Europe/Amsterdam"),
    ("belgium", "Europe/Brussels"),
    ("sweden", "Europe/Stockholm"),
    ("norway", "Europe/Oslo"),
    ("denmark", "Europe/Copenhagen"),
    ("finland", "Europe/Helsinki"),
    ("england", "Europe/London"),
    ("uk", "Europe/London"),
    ("manchester", "Europe/London"),
    ("ireland", "Europe/Dublin"),
    ("greece", "Europe/Athens"),
    ("ukraine", "Europe/Kyiv"),
    ("india", "Asia/Kolkata"),
    ("delhi", "Asia/Kolkata"),
    ("mumbai", "Asia/Kolkata"),
    ("bangalore", "Asia/Kolkata"),
    ("china", "Asia/Shanghai"),
    ("beijing", "Asia/Shanghai"),
    ("osaka", "Asia/Tokyo"),
    ("korea", "Asia/Seoul"),
    ("melbourne", "Australia/Melbourne"),
    ("canberra", "Australia/Sydney"),
    ("san_francisco", "America/Los_Angeles"),
    ("california", "America/Los_Angeles"),
    ("seattle", "America/Los_Angeles"),
    ("washington", "America/New_York"),
    ("boston", "America/New_York"),
    ("atlanta", "America/New_York"),
    ("texas", "America/Chicago"),
    ("dallas", "America/Chicago"),
    ("montreal", "America/Toronto"),
    ("brazil", "America/Sao_Paulo"),
    ("cest", "Europe/Paris"),
    ("mez", "Europe/Berlin"),
    ("mesz", "Europe/Berlin"),
    ("eest", "Europe/Athens"),
    ("bst", "Europe/London"),
    ("edt", "America/New_York"),
    ("cst", "America/Chicago"),
    ("cdt", "America/Chicago"),
    ("mdt", "America/Denver"),
    ("pst", "America/Los_Angeles"),
    ("pdt", "America/Los_Angeles"),
    ("jst", "Asia/Tokyo"),
    ("aest", "Australia/Sydney"),
];

/// Returns the most likely zone, if there is one: by the same name in other letter case, a fixed offset, the place
/// without its region, a common name, or a name that differs by a few letters.
pub fn suggested(written: &str) -> Option<&'static str> {
    let name = written.trim().replace([' ', '-'], "_").to_lowercase();
    let zones = || TZ_VARIANTS.iter().map(|zone| zone.name());
    let place_of = |zone: &'static str| zone.rsplit_once('/').map_or(zone, |(_, place)| place);
    let last = name.rsplit_once('/').map_or(name.as_str(), |(_, last)| last);
    let same = || zones().find(|zone| zone.to_lowercase() == name);
    let of_place = || zones().find(|zone| zone.contains('/') && place_of(zone).to_lowercase() == last);
    let usual = || KNOWN_AS.iter().find(|(known, _)| *known == last).map(|(_, zone)| *zone);
    let near = || nearest(&name, zones().filter(|zone| zone.contains('/')));
    let near_place = || {
        // Short words resemble too many places.
        if last.len() <= 5 {
            return None;
        }
        let places = zones().filter(|zone| zone.contains('/')).map(place_of);
        let nearest_place = nearest(last, places.filter(|place| place.len() > 3))?;
        zones().find(|zone| zone.contains('/') && place_of(zone) == nearest_place)
    };
    same().or_else(|| offset(written)).or_else(of_place).or_else(usual).or_else(near).or_else(near_place)
}

/// Parses `UTC+1`, `GMT-5` or `+01:00`. The names in the database have the opposite sign.
fn offset(written: &str) -> Option<&'static str> {
    let written = written.trim();
    let sign_position = written.find(['+', '-', '\u{2212}'])?;
    let (before, signed) = written.split_at(sign_position);
    if !["", "utc", "gmt"].contains(&before.trim().to_lowercase().as_str()) {
        return None;
    }
    let (sign, digits) = if let Some(digits) = signed.strip_prefix('+') {
        ('-', digits)
    } else {
        ('+', signed.trim_start_matches(['-', '\u{2212}']))
    };
    let hours = digits.strip_suffix(":00").or_else(|| digits.strip_suffix("00").filter(|rest| rest.len() == 2));
    let hours: u32 = hours.unwrap_or(digits).trim().parse().ok()?;
    let name = if hours == 0 { "UTC".to_owned() } else { format!("Etc/GMT{sign}{hours}") };
    TZ_VARIANTS.iter().map(|zone| zone.name()).find(|zone| *zone == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_people_write_lead_to_a_zone() {
        for (written, zone) in [
            ("Berlin", "Europe/Berlin"),
            ("europe/berlin", "Europe/Berlin"),
            ("Europe/Pariss", "Europe/Paris"),
            ("Pariss", "Europe/Paris"),
            ("New York", "America/New_York"),
            ("US/New York", "America/New_York"),
            ("Europe/Frankfurt", "Europe/Berlin"),
            ("Germany", "Europe/Berlin"),
            ("CEST", "Europe/Paris"),
            ("UTC+1", "Etc/GMT-1"),
            ("GMT-5", "Etc/GMT+5"),
            ("+02:00", "Etc/GMT-2"),
            ("+0100", "Etc/GMT-1"),
            ("utc", "UTC"),
        ] {
            assert_eq!(suggested(written), Some(zone), "{written}");
        }
        for none in ["the office", "", "UTC+99", "+", "local"] {
            assert_eq!(suggested(none), None, "{none}");
        }
    }

    #[test]
    fn every_usual_name_leads_to_a_zone_that_is_there() {
        for (_, zone) in KNOWN_AS {
            assert!(TZ_VARIANTS.iter().any(|known| known.name() == zone), "{zone}");
        }
    }
}
