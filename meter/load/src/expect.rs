//! What a reply must be, and the words for one that is not. Pure.

use crate::resp::{Kind, Reply};
use ensign_protocol::drive::{Command, Wanted};

const QUEUED: &[u8] = b"QUEUED";
const MOST_SHOWN_BYTES: usize = 200;

/// Of one reply.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expectation {
    /// Any of these; none: anything.
    wanted: Vec<Wanted>,
    pub text: Option<&'static [u8]>,
    elements: Option<u64>,
    /// It is the data of the key.
    pub value: bool,
}

impl Expectation {
    /// Of all replies to one operation, in their order.
    pub(crate) fn of(command: &Command) -> Vec<Expectation> {
        if !command.is_transaction() {
            let demanded = command.reply.as_ref().map(|demand| demand.wanted());
            let default = if command.value {
                vec![Wanted::Bulk]
            } else {
                Vec::new()
            };
            let wanted = demanded.map_or(default, <[Wanted]>::to_vec);
            let anything = wanted.contains(&Wanted::Any) && !command.value;
            return vec![Expectation {
                wanted: if anything { Vec::new() } else { wanted },
                value: command.value,
                ..Expectation::default()
            }];
        }
        let queued = Expectation {
            text: Some(QUEUED),
            ..Expectation::any_of(&[Wanted::Status])
        };
        let results = Expectation {
            elements: Some(command.transaction.len() as u64),
            ..Expectation::any_of(&[Wanted::Array])
        };
        let mut replies = vec![Expectation::any_of(&[Wanted::Status])];
        replies.extend(std::iter::repeat_n(queued, command.transaction.len()));
        replies.push(results);
        replies
    }

    pub(crate) fn any_of(wanted: &[Wanted]) -> Expectation {
        Expectation {
            wanted: wanted.to_vec(),
            ..Expectation::default()
        }
    }

    /// Whether the reply is as it must be; `data_bytes` is the size of the key's data.
    #[inline]
    pub(crate) fn is_met(&self, reply: &Reply, data_bytes: impl FnOnce() -> u64) -> bool {
        let kind = self.wanted.is_empty() || self.wanted.iter().any(|&w| is(w, reply.kind));
        let length = !self.value || reply.kind == Kind::Nil || reply.length == data_bytes();
        let elements = self
            .elements
            .is_none_or(|elements| reply.length == elements);
        !reply.error && kind && length && elements && (reply.matches || reply.kind == Kind::Nil)
    }

    /// What is wrong with a reply that does not meet it.
    pub(crate) fn complaint(&self, reply: &Reply, error: &[u8], data_bytes: u64) -> String {
        if reply.error {
            let within = if reply.kind == Kind::Error {
                "an error"
            } else {
                "an error inside its reply"
            };
            return format!("got {within}: {}", shown(error));
        }
        if !self.wanted.is_empty() && !self.wanted.iter().any(|&w| is(w, reply.kind)) {
            let wanted: Vec<&str> = self.wanted.iter().map(|&w| wanted_name(w)).collect();
            let wanted = wanted.join(" or ");
            return format!("got {}; wanted {wanted}", kind_name(reply.kind));
        }
        if let Some(elements) = self.elements.filter(|&n| n != reply.length) {
            return format!("got {} results; wanted {elements}", reply.length);
        }
        if self.value && reply.length != data_bytes {
            let length = reply.length;
            return format!("got {length} bytes; the data of its key has {data_bytes}");
        }
        match self.text {
            Some(text) => format!("got another status than {}", shown(text)),
            None => "got other bytes than the data of its key".into(),
        }
    }
}

fn is(wanted: Wanted, kind: Kind) -> bool {
    match wanted {
        Wanted::Status => kind == Kind::Status,
        Wanted::Integer => kind == Kind::Integer,
        Wanted::Bulk => kind == Kind::Bulk,
        Wanted::Array => kind == Kind::Array,
        Wanted::Nil => kind == Kind::Nil,
        Wanted::Any => true,
    }
}

fn wanted_name(wanted: Wanted) -> &'static str {
    match wanted {
        Wanted::Status => "a status",
        Wanted::Integer => "an integer",
        Wanted::Bulk => "a string",
        Wanted::Array => "an array",
        Wanted::Nil => "nil",
        Wanted::Any => "anything",
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Status => "a status",
        Kind::Error => "an error",
        Kind::Integer => "an integer",
        Kind::Bulk => "a string",
        Kind::Array => "an array",
        Kind::Nil => "nil",
        Kind::Scalar => "a double, boolean or big number",
    }
}

/// Request `index` of rendered ones, in words: its arguments, cut where they are long.
pub(crate) fn describe(rendered: &[u8], index: usize) -> String {
    const MOST_ARGUMENT_BYTES: usize = 60;
    let mut words = String::new();
    let mut rest = rendered;
    for request in 0..=index {
        words.clear();
        let Some(arguments) = take_number(&mut rest) else {
            break;
        };
        for _ in 0..arguments {
            let Some(size) = take_number(&mut rest).filter(|&size| size + 2 <= rest.len()) else {
                break;
            };
            if request == index && words.len() < MOST_SHOWN_BYTES {
                let text = shown(&rest[..size.min(MOST_ARGUMENT_BYTES)]);
                let more = if size > MOST_ARGUMENT_BYTES {
                    "…"
                } else {
                    ""
                };
                words.push_str(&format!("{text}{more} "));
            }
            rest = &rest[size + 2..];
        }
    }
    let words = words.trim_end();
    match words.char_indices().nth(MOST_SHOWN_BYTES) {
        Some((end, _)) => format!("`{}…`", &words[..end]),
        None => format!("`{words}`"),
    }
}

/// Bytes of others in a message: on one line, whatever they are.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let letters = text.chars().map(|letter| match letter {
        letter if letter.is_control() => letter.escape_default().to_string(),
        letter => letter.to_string(),
    });
    letters.collect()
}

/// The number of a line like `*3` or `$10`, which is taken off.
fn take_number(rest: &mut &[u8]) -> Option<usize> {
    let end = rest.iter().position(|&byte| byte == b'\r')?;
    let number = std::str::from_utf8(rest.get(1..end)?).ok()?.parse().ok()?;
    *rest = rest.get(end + 2..)?;
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::request;
    use serde_json::json;

    fn expectations(command: serde_json::Value) -> Vec<Expectation> {
        Expectation::of(&serde_json::from_value(command).unwrap())
    }

    fn reply(kind: Kind, length: u64) -> Reply {
        Reply {
            kind,
            length,
            matches: true,
            error: kind == Kind::Error,
        }
    }

    #[test]
    fn replies_are_judged_by_kind() {
        let all = [
            Kind::Status,
            Kind::Integer,
            Kind::Bulk,
            Kind::Array,
            Kind::Nil,
            Kind::Scalar,
        ];
        for (demand, met) in [
            (json!(null), &all[..]),
            (json!("any"), &all),
            (json!("status"), &[Kind::Status]),
            (json!("integer"), &[Kind::Integer]),
            (json!("array"), &[Kind::Array]),
            (json!(["bulk", "nil"]), &[Kind::Bulk, Kind::Nil]),
        ] {
            let expectation = &expectations(json!({"argv": ["A"], "reply": demand}))[0];
            for kind in all {
                let is_met = expectation.is_met(&reply(kind, 0), || 0);
                assert_eq!(is_met, met.contains(&kind), "{demand}: {kind:?}");
            }
            assert!(!expectation.is_met(&reply(Kind::Error, 0), || 0));
        }
    }

    #[test]
    fn values_have_the_length_and_bytes_of_the_data() {
        let strict = &expectations(json!({"argv": ["A"], "value": true}))[0];
        let lenient =
            &expectations(json!({"argv": ["A"], "value": true, "reply": ["bulk", "nil"]}))[0];
        for (reply, met, met_leniently, part) in [
            (reply(Kind::Bulk, 5), true, true, ""),
            (
                reply(Kind::Bulk, 4),
                false,
                false,
                "4 bytes; the data of its key has 5",
            ),
            (reply(Kind::Nil, 0), false, true, "got nil; wanted a string"),
            (
                Reply {
                    matches: false,
                    ..reply(Kind::Bulk, 5)
                },
                false,
                false,
                "other bytes",
            ),
        ] {
            assert_eq!(strict.is_met(&reply, || 5), met);
            assert_eq!(lenient.is_met(&reply, || 5), met_leniently);
            let text = strict.complaint(&reply, b"", 5);
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn transactions_have_their_own_replies() {
        let replies = expectations(json!({"transaction": [["A"], ["B"]]}));
        assert_eq!(replies.len(), 4);
        let other = Reply {
            matches: false,
            ..reply(Kind::Status, 0)
        };
        let complaint = replies[1].complaint(&other, b"", 0);
        assert!(complaint.contains("than QUEUED"), "{complaint}");
        for (last, part) in [
            (reply(Kind::Nil, 0), "got nil; wanted an array"),
            (reply(Kind::Array, 1), "got 1 results; wanted 2"),
        ] {
            assert!(!replies[3].is_met(&last, || 0));
            assert!(replies[3].complaint(&last, b"", 0).contains(part));
        }
    }

    #[test]
    fn requests_are_described_in_their_own_words() {
        let mut rendered = request(&["MULTI"]);
        rendered.extend(request(&["SET", "a b", "\u{1}"]));
        rendered.extend(request(&["SET", "k", &"x".repeat(100)]));
        assert_eq!(describe(&rendered, 0), "`MULTI`");
        assert_eq!(describe(&rendered, 1), "`SET a b \\u{1}`");
        assert_eq!(
            describe(&rendered, 2),
            format!("`SET k {}…`", "x".repeat(60))
        );
        let long = describe(&request(&vec!["y".repeat(50); 20]), 0);
        assert!(long.chars().count() <= 203 && long.ends_with("…`"));
    }
}
