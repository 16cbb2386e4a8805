//! Requests with placeholders, cut into what is always the same and what is drawn. Pure.

use crate::data::Data;
use crate::keys::KeyStream;
use ensign_protocol::drive::placeholders::{bytes_of, next_placeholder, Placeholder};
use ensign_protocol::drive::Keys;
use ensign_protocol::random::Random;

/// What the requests of all connections share.
pub(crate) struct Values {
    pub data: Option<Data>,
    pub expiry_s: (u64, u64),
    /// Names of scripts with their SHA-1 in hexadecimal digits.
    pub scripts: Vec<(String, String)>,
}

/// One or more requests, ready to be rendered.
pub(crate) struct Template {
    steps: Vec<Step>,
    prefix: Vec<u8>,
    width: usize,
    /// `{random}` is below this.
    bound: usize,
}

enum Step {
    /// Whole arguments, with their lengths.
    Text(Vec<u8>),
    /// An argument that has to be drawn before its length is known.
    Argument(Vec<Part>),
}

enum Part {
    Text(Vec<u8>),
    Key,
    Data,
    Random,
    Expiry,
    Cursor,
}

/// What one connection draws from for one command.
pub(crate) struct Source<'a> {
    pub values: &'a Values,
    pub keys: Option<&'a mut KeyStream>,
    pub random: &'a mut Random,
    pub cursor: u64,
    /// Room for what was drawn for an argument.
    pub drawn: &'a mut Vec<u64>,
}

impl Template {
    pub(crate) fn new(requests: &[Vec<String>], keys: Option<&Keys>, values: &Values) -> Template {
        let mut steps = vec![Step::Text(Vec::new())];
        for argv in requests {
            extend_text(&mut steps, format!("*{}\r\n", argv.len()).as_bytes());
            for argument in argv {
                let parts = parts(argument, values);
                match parts.as_slice() {
                    [] => extend_text(&mut steps, b"$0\r\n\r\n"),
                    [Part::Text(text)] => {
                        let mut whole = Vec::new();
                        push_argument(&mut whole, text);
                        extend_text(&mut steps, &whole);
                    }
                    _ => steps.push(Step::Argument(parts)),
                }
            }
        }
        Template {
            steps,
            prefix: keys.map_or(Vec::new(), |keys| keys.prefix.clone().into_bytes()),
            width: keys.map_or(0, |keys| keys.width),
            bound: keys.map_or(0, |keys| keys.last as usize + 1),
        }
    }

    /// Whether it sends the cursor of the last reply.
    pub(crate) fn follows(&self) -> bool {
        self.steps.iter().any(|step| {
            matches!(step, Step::Argument(parts) if parts.iter().any(|p| matches!(p, Part::Cursor)))
        })
    }

    /// Appends the requests; gives the number of the last key drawn (0 without any).
    pub(crate) fn render(&self, source: &mut Source, out: &mut Vec<u8>) -> u64 {
        let mut key = None;
        for step in &self.steps {
            match step {
                Step::Text(text) => out.extend_from_slice(text),
                Step::Argument(parts) => self.render_argument(parts, source, &mut key, out),
            }
        }
        key.unwrap_or(0)
    }

    fn render_argument(
        &self,
        parts: &[Part],
        source: &mut Source,
        key: &mut Option<u64>,
        out: &mut Vec<u8>,
    ) {
        source.drawn.clear();
        let mut size = 0;
        for part in parts {
            let number = self.draw(part, source, key);
            size += self.size(part, number, source.values);
            source.drawn.push(number);
        }
        out.push(b'$');
        push_number(size as u64, 0, out);
        out.extend_from_slice(b"\r\n");
        for (part, &number) in parts.iter().zip(source.drawn.iter()) {
            match part {
                Part::Text(text) => out.extend_from_slice(text),
                Part::Key => {
                    out.extend_from_slice(&self.prefix);
                    push_number(number, self.width, out);
                }
                Part::Data => {
                    if let Some(data) = &source.values.data {
                        data.write(number, out);
                    }
                }
                Part::Random | Part::Expiry | Part::Cursor => push_number(number, 0, out),
            }
        }
        out.extend_from_slice(b"\r\n");
    }

    fn draw(&self, part: &Part, source: &mut Source, key: &mut Option<u64>) -> u64 {
        match part {
            Part::Text(_) => 0,
            Part::Key => {
                let keys = source.keys.as_mut();
                let number = keys.map_or(0, |keys| keys.next(source.random));
                *key = Some(number);
                number
            }
            Part::Data => key.unwrap_or_else(|| source.random.next_u64()),
            Part::Cursor => source.cursor,
            Part::Random => source.random.below(self.bound) as u64,
            Part::Expiry => {
                let (least, most) = source.values.expiry_s;
                least + source.random.below((most - least) as usize + 1) as u64
            }
        }
    }

    fn size(&self, part: &Part, number: u64, values: &Values) -> usize {
        match part {
            Part::Text(text) => text.len(),
            Part::Key => self.prefix.len() + digits(number).max(self.width),
            Part::Data => values.data.as_ref().map_or(0, |data| data.size(number)),
            Part::Random | Part::Expiry | Part::Cursor => digits(number),
        }
    }
}

fn parts(argument: &str, values: &Values) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = argument;
    while let Some((before, placeholder, after)) = next_placeholder(rest) {
        add_text(&mut parts, before.as_bytes());
        match placeholder {
            Placeholder::Key => parts.push(Part::Key),
            Placeholder::Data => parts.push(Part::Data),
            Placeholder::Random => parts.push(Part::Random),
            Placeholder::Expiry => parts.push(Part::Expiry),
            Placeholder::Cursor => parts.push(Part::Cursor),
            Placeholder::Hex(digits) => add_text(&mut parts, &bytes_of(digits).unwrap_or_default()),
            Placeholder::Script(name) => {
                let known = values.scripts.iter().find(|(known, _)| known == name);
                add_text(&mut parts, known.map_or(&[], |(_, sha1)| sha1.as_bytes()));
            }
        }
        rest = after;
    }
    add_text(&mut parts, rest.as_bytes());
    parts
}

fn add_text(parts: &mut Vec<Part>, text: &[u8]) {
    match parts.last_mut() {
        _ if text.is_empty() => {}
        Some(Part::Text(before)) => before.extend_from_slice(text),
        _ => parts.push(Part::Text(text.to_vec())),
    }
}

fn extend_text(steps: &mut Vec<Step>, text: &[u8]) {
    match steps.last_mut() {
        Some(Step::Text(before)) => before.extend_from_slice(text),
        _ => steps.push(Step::Text(text.to_vec())),
    }
}

/// A request without placeholders.
pub(crate) fn request<T: AsRef<[u8]>>(argv: &[T]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", argv.len()).into_bytes();
    for argument in argv {
        push_argument(&mut out, argument.as_ref());
    }
    out
}

fn push_argument(out: &mut Vec<u8>, argument: &[u8]) {
    out.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
    out.extend_from_slice(argument);
    out.extend_from_slice(b"\r\n");
}

fn digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// In decimal, with zeros in front up to the width.
fn push_number(mut number: u64, width: usize, out: &mut Vec<u8>) {
    let size = digits(number).max(width);
    let start = out.len();
    out.resize(start + size, b'0');
    for digit in out[start..].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    fn values() -> Values {
        let data = serde_json::from_value(json!({"sizes": [1, 40]})).unwrap();
        Values {
            data: Some(Data::new(&data)),
            expiry_s: (60, 70),
            scripts: vec![("add".into(), "0123abc".into())],
        }
    }

    fn render(requests: Value, keys: Value, times: usize) -> (String, u64) {
        let requests: Vec<Vec<String>> = serde_json::from_value(requests).unwrap();
        let keys: Option<Keys> = serde_json::from_value(keys).unwrap();
        let values = values();
        let template = Template::new(&requests, keys.as_ref(), &values);
        let mut stream = keys.as_ref().map(|keys| KeyStream::new(keys, 0, 1));
        let mut source = Source {
            values: &values,
            keys: stream.as_mut(),
            random: &mut Random::new(8),
            cursor: 17,
            drawn: &mut Vec::new(),
        };
        let mut out = Vec::new();
        let mut key = 0;
        for _ in 0..times {
            key = template.render(&mut source, &mut out);
        }
        (String::from_utf8(out).unwrap(), key)
    }

    #[test]
    fn requests_without_placeholders_stay_as_they_are() {
        let argv = json!([["SET", "a{b}{keys}", ""], ["PING"]]);
        let (text, _) = render(argv, json!(null), 1);
        let wanted = "*3\r\n$3\r\nSET\r\n$10\r\na{b}{keys}\r\n$0\r\n\r\n*1\r\n$4\r\nPING\r\n";
        assert_eq!(text, wanted);
        assert_eq!(request(&["PING", ""]), b"*2\r\n$4\r\nPING\r\n$0\r\n\r\n");
    }

    #[test]
    fn bytes_that_json_cannot_hold_are_written_in_digits() {
        let argv = vec![vec!["a{hex:00ff}b".to_string()]];
        let template = Template::new(&argv, None, &values());
        let [Step::Text(text)] = template.steps.as_slice() else {
            panic!("one text")
        };
        assert_eq!(text, b"*1\r\n$4\r\na\x00\xffb\r\n");
        assert_eq!(bytes_of("0"), None);
        assert_eq!(bytes_of("zz"), None);
        assert_eq!(bytes_of(""), Some(vec![]));
    }

    #[test]
    fn a_cursor_is_that_of_the_connection() {
        let (text, _) = render(json!([["SCAN", "{cursor}"]]), json!(null), 1);
        assert_eq!(text, "*2\r\n$4\r\nSCAN\r\n$2\r\n17\r\n");
    }

    #[test]
    fn keys_are_drawn_one_after_the_other() {
        let keys = json!({"prefix": "k:", "first": 9, "last": 20, "pattern": "sequential"});
        let (text, key) = render(json!([["MGET", "{key}", "x{key}-{key}"]]), keys, 1);
        let wanted = "*3\r\n$4\r\nMGET\r\n$3\r\nk:9\r\n$10\r\nxk:10-k:11\r\n";
        assert_eq!((text.as_str(), key), (wanted, 11));
    }

    #[test]
    fn widths_pad_keys_with_zeros() {
        for (first, width, wanted) in [(0, 0, "0"), (7, 3, "007"), (1234, 3, "1234"), (0, 2, "00")]
        {
            let keys = json!({"first": first, "last": first, "width": width});
            let (text, _) = render(json!([["{key}"]]), keys, 1);
            let size = wanted.len();
            assert_eq!(text, format!("*1\r\n${size}\r\n{wanted}\r\n"));
        }
    }

    #[test]
    fn data_is_that_of_the_key_before_it() {
        let keys = json!({"first": 3, "last": 20, "pattern": "sequential"});
        let argv = json!([["MSET", "{key}", "{data}", "{key}", "{data}"]]);
        let (text, _) = render(argv, keys, 1);
        let lines: Vec<&str> = text.split("\r\n").collect();
        for (key, line) in [(3, 6), (4, 10)] {
            let mut wanted = Vec::new();
            values().data.unwrap().write(key, &mut wanted);
            assert_eq!(lines[line].as_bytes(), wanted);
            assert_eq!(lines[line - 1], format!("${}", wanted.len()));
        }
    }

    #[test]
    fn data_without_a_key_vary() {
        let (text, _) = render(json!([["{data}"]]), json!(null), 50);
        let mut lines: Vec<&str> = text.split("\r\n").skip(2).step_by(3).collect();
        lines.sort_unstable();
        lines.dedup();
        assert!(lines.len() > 40);
    }

    #[test]
    fn numbers_and_expiries_stay_in_their_ranges() {
        let argv = json!([["{random}", "{expiry}"]]);
        let (text, _) = render(argv, json!({"first": 2, "last": 4}), 2000);
        let lines: Vec<&str> = text.split("\r\n").collect();
        let mut seen = [vec![], vec![]];
        for request in lines[..lines.len() - 1].chunks(5) {
            seen[0].push(request[2].parse::<u64>().unwrap());
            seen[1].push(request[4].parse::<u64>().unwrap());
        }
        for (numbers, wanted) in seen.iter_mut().zip([0..=4, 60..=70]) {
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(*numbers, wanted.collect::<Vec<u64>>());
        }
    }

    #[test]
    fn scripts_are_named_by_their_hash() {
        let (text, _) = render(json!([["EVALSHA", "{script:add}", "0"]]), json!(null), 1);
        assert_eq!(text, "*3\r\n$7\r\nEVALSHA\r\n$7\r\n0123abc\r\n$1\r\n0\r\n");
    }
}
