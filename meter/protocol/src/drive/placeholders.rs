//! Placeholders in the arguments of a drive's requests.

#[derive(Debug, PartialEq, Eq)]
pub enum Placeholder<'a> {
    Key,
    Data,
    Random,
    Expiry,
    Cursor,
    Script(&'a str),
    Hex(&'a str),
}

/// The placeholders of an argument, in their order.
pub(crate) fn placeholders(argument: &str) -> Vec<Placeholder<'_>> {
    let mut found = Vec::new();
    let mut rest = argument;
    while let Some((_, placeholder, after)) = next_placeholder(rest) {
        found.push(placeholder);
        rest = after;
    }
    found
}

/// What stands before the first placeholder, that, and what stands after it.
pub fn next_placeholder(text: &str) -> Option<(&str, Placeholder<'_>, &str)> {
    const WORDS: [(&str, Placeholder); 5] = [
        ("{key}", Placeholder::Key),
        ("{data}", Placeholder::Data),
        ("{random}", Placeholder::Random),
        ("{expiry}", Placeholder::Expiry),
        ("{cursor}", Placeholder::Cursor),
    ];
    for (at, _) in text.match_indices('{') {
        let (before, from) = text.split_at(at);
        for (word, placeholder) in WORDS {
            if let Some(after) = from.strip_prefix(word) {
                return Some((before, placeholder, after));
            }
        }
        let script = from.strip_prefix("{script:");
        if let Some((name, after)) = script.and_then(|rest| rest.split_once('}')) {
            return Some((before, Placeholder::Script(name), after));
        }
        let hex = from.strip_prefix("{hex:");
        if let Some((digits, after)) = hex.and_then(|rest| rest.split_once('}')) {
            return Some((before, Placeholder::Hex(digits), after));
        }
    }
    None
}

/// Of pairs of hexadecimal digits; None where they are none.
pub fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| {
            let text = std::str::from_utf8(pair)
                .ok()
                .filter(|text| text.len() == 2)?;
            u8::from_str_radix(text, 16).ok()
        })
        .collect()
}
