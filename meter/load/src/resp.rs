//! Replies of the Redis protocol, versions 2 and 3, as they arrive: in pieces of any size, without
//! being kept. Pure. The protocol: <https://redis.io/docs/latest/develop/reference/protocol-spec/>.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Kind {
    Status,
    Error,
    Integer,
    /// A string with a length, a verbatim string too.
    Bulk,
    /// An array, a set or a map.
    Array,
    /// Null of either protocol.
    #[default]
    Nil,
    /// A double, a boolean or a big number.
    Scalar,
}

/// What is known of a whole reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Reply {
    pub kind: Kind,
    /// Bytes of a bulk string; elements of an array or set, pairs of a map.
    pub length: u64,
    /// Its text is the expected one; true where none was expected.
    pub matches: bool,
    /// It is an error, or has one among its elements.
    pub error: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub String);

pub(crate) const MOST_ERROR_BYTES: usize = 200;
const MOST_TEXT_BYTES: u64 = 1 << 32;
const MOST_ELEMENTS: u64 = 1 << 32;
const MOST_NESTED: usize = 64;
const MOST_DIGITS: u8 = 19;
const MOST_LINE_BYTES: u64 = 1 << 20;
/// Pushes and attributes before one reply.
const MOST_ASIDES: u64 = 1 << 20;
const LONG_TEXT_BYTES: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the byte that says what comes.
    Begin,
    Number,
    NumberEnd,
    Line,
    /// Inside a string with a length.
    Text {
        left: u64,
    },
    TextEnd,
    /// Before the line feed that ends an element.
    End,
}

/// An aggregate whose elements are still coming.
struct Open {
    left: u64,
    /// An attribute or a push: no part of the reply.
    aside: bool,
}

pub(crate) struct Parser {
    state: State,
    tag: u8,
    negative: bool,
    digits: u8,
    number: u64,
    line_bytes: u64,
    open: Vec<Open>,
    asides: usize,
    /// Those that are whole, since the last reply.
    asides_read: u64,
    reply: Reply,
    compared: usize,
    error: Vec<u8>,
    /// The element under way is the reply's first error.
    quotes: bool,
}

impl Parser {
    pub(crate) fn new() -> Parser {
        Parser {
            state: State::Begin,
            tag: 0,
            negative: false,
            digits: 0,
            number: 0,
            line_bytes: 0,
            open: Vec::with_capacity(MOST_NESTED),
            asides: 0,
            asides_read: 0,
            reply: Reply::default(),
            compared: 0,
            error: Vec::new(),
            quotes: false,
        }
    }

    /// Reads up to the end of a reply: gives how many bytes were taken, and the reply once it is
    /// whole. Pushes and attributes are skipped. `expected`, the same for all pieces of a reply,
    /// is what the text of a status or bulk string is compared with.
    ///
    /// # Errors
    /// What came is no reply, or one of the streamed kinds.
    pub(crate) fn feed(
        &mut self,
        input: &[u8],
        expected: Option<&[u8]>,
    ) -> Result<(usize, Option<Reply>), Malformed> {
        let mut at = 0;
        while at < input.len() {
            let (taken, whole) = self.step(&input[at..], expected)?;
            at += taken;
            if self.asides_read > MOST_ASIDES {
                return Err(Malformed("pushes without end before it".into()));
            }
            if whole && self.close() {
                let reply = &mut self.reply;
                let text = matches!(reply.kind, Kind::Status | Kind::Bulk);
                let all = expected.is_none_or(|expected| text && self.compared == expected.len());
                reply.matches &= all;
                self.asides_read = 0;
                return Ok((at, Some(*reply)));
            }
        }
        Ok((at, None))
    }

    /// Takes something of what has come; true when an element is whole with that.
    #[inline]
    fn step(&mut self, input: &[u8], expected: Option<&[u8]>) -> Result<(usize, bool), Malformed> {
        match self.state {
            State::Begin => {
                self.begin(input[0])?;
                Ok((1, false))
            }
            State::Number => Ok((self.read_number(input)?, false)),
            State::NumberEnd => {
                newline(input[0])?;
                Ok((1, self.number_is_read()?))
            }
            State::Line => Ok((self.read_line(input, expected)?, false)),
            State::Text { left } => {
                let length = left.min(input.len() as u64);
                self.take(&input[..length as usize], expected);
                self.state = match left - length {
                    0 => State::TextEnd,
                    left => State::Text { left },
                };
                Ok((length as usize, false))
            }
            State::TextEnd if input[0] == b'\r' => {
                self.state = State::End;
                Ok((1, false))
            }
            State::TextEnd => Err(Malformed("a string is longer than its length".into())),
            State::End => {
                newline(input[0])?;
                Ok((1, true))
            }
        }
    }

    /// Whether a reply has begun and not ended.
    pub(crate) fn is_inside(&self) -> bool {
        self.state != State::Begin || !self.open.is_empty()
    }

    /// Whether it is a long string of a reply that comes now.
    pub(crate) fn is_inside_long_text(&self) -> bool {
        let text = matches!(self.state, State::Text { .. });
        text && self.asides == 0 && self.number >= LONG_TEXT_BYTES
    }

    /// The beginning of the error in the last reply that had one.
    pub(crate) fn error(&self) -> &[u8] {
        &self.error
    }

    fn begin(&mut self, tag: u8) -> Result<(), Malformed> {
        self.tag = tag;
        self.digits = 0;
        self.number = 0;
        self.negative = false;
        self.line_bytes = 0;
        let (kind, state) = match tag {
            b'+' => (Kind::Status, State::Line),
            b'-' => (Kind::Error, State::Line),
            b':' => (Kind::Integer, State::Number),
            b'$' | b'=' => (Kind::Bulk, State::Number),
            b'!' => (Kind::Error, State::Number),
            b'*' | b'~' | b'%' | b'>' | b'|' => (Kind::Array, State::Number),
            b',' | b'#' | b'(' => (Kind::Scalar, State::Line),
            b'_' => (Kind::Nil, State::Line),
            _ => {
                let text = format!("a reply begins with \"{}\"", tag.escape_ascii());
                return Err(Malformed(text));
            }
        };
        self.state = state;
        let aside = matches!(tag, b'>' | b'|');
        if self.open.is_empty() && !aside {
            self.reply = Reply {
                kind,
                matches: true,
                ..Reply::default()
            };
            self.compared = 0;
        }
        self.quotes = kind == Kind::Error && self.asides == 0 && !self.reply.error;
        if self.quotes {
            self.reply.error = true;
            self.error.clear();
        }
        Ok(())
    }

    fn read_number(&mut self, input: &[u8]) -> Result<usize, Malformed> {
        for (index, &byte) in input.iter().enumerate() {
            match byte {
                b'0'..=b'9' if self.digits < MOST_DIGITS => {
                    self.number = self.number * 10 + u64::from(byte - b'0');
                    self.digits += 1;
                }
                b'\r' if self.digits > 0 => {
                    self.state = State::NumberEnd;
                    return Ok(index + 1);
                }
                b'-' | b'+' if self.digits == 0 && !self.negative => self.negative = byte == b'-',
                b'?' if self.digits == 0 && self.tag != b':' => {
                    let text = "streamed strings and aggregates (RESP3 `?`) are not supported";
                    return Err(Malformed(text.into()));
                }
                _ => {
                    let text = "a number has \"{}\" in it, or too many digits";
                    let byte = byte.escape_ascii().to_string();
                    return Err(Malformed(text.replace("{}", &byte)));
                }
            }
        }
        Ok(input.len())
    }

    /// True when the element is whole with that.
    fn number_is_read(&mut self) -> Result<bool, Malformed> {
        if self.tag == b':' {
            return Ok(true);
        }
        let top = self.open.is_empty();
        if self.negative {
            if self.number != 1 || !matches!(self.tag, b'$' | b'*') {
                return Err(Malformed(format!("a length is -{}", self.number)));
            }
            if top {
                self.reply.kind = Kind::Nil;
            }
            return Ok(true);
        }
        let aside = matches!(self.tag, b'>' | b'|');
        if top && !aside {
            self.reply.length = self.number;
        }
        if matches!(self.tag, b'$' | b'=' | b'!') {
            if self.number > MOST_TEXT_BYTES {
                return Err(Malformed(format!("a string of {} bytes", self.number)));
            }
            self.state = match self.number {
                0 => State::TextEnd,
                left => State::Text { left },
            };
            return Ok(false);
        }
        self.open_aggregate(aside)
    }

    fn open_aggregate(&mut self, aside: bool) -> Result<bool, Malformed> {
        if self.number > MOST_ELEMENTS || self.open.len() == MOST_NESTED {
            return Err(Malformed("an array too large or too deep".into()));
        }
        if self.tag == b'>' && !self.open.is_empty() {
            return Err(Malformed("a push inside of a reply".into()));
        }
        let pairs = matches!(self.tag, b'%' | b'|');
        let left = self.number * if pairs { 2 } else { 1 };
        self.state = State::Begin;
        if left > 0 {
            self.open.push(Open { left, aside });
            self.asides += usize::from(aside);
        } else {
            self.asides_read += u64::from(aside);
        }
        Ok(left == 0 && !aside)
    }

    fn read_line(&mut self, input: &[u8], expected: Option<&[u8]>) -> Result<usize, Malformed> {
        let end = input.iter().position(|&byte| byte == b'\r');
        let text = &input[..end.unwrap_or(input.len())];
        self.line_bytes += text.len() as u64;
        if self.line_bytes > MOST_LINE_BYTES {
            return Err(Malformed("a line without end".into()));
        }
        let good = match self.tag {
            b'_' => self.line_bytes == 0,
            b'#' => self.line_bytes <= 1 && text.iter().all(|byte| b"tf".contains(byte)),
            b'+' | b'-' => true,
            _ => text
                .iter()
                .all(|byte| b"+-.0123456789abcdefinABCDEFIN".contains(byte)),
        };
        if !good
            || (end.is_some() && self.line_bytes == 0 && matches!(self.tag, b'#' | b',' | b'('))
        {
            let text = format!(
                "a line \"{}{}\"",
                self.tag.escape_ascii(),
                text[..text.len().min(MOST_ERROR_BYTES)].escape_ascii()
            );
            return Err(Malformed(text));
        }
        self.take(text, expected);
        if end.is_some() {
            self.state = State::End;
        }
        Ok(text.len() + usize::from(end.is_some()))
    }

    /// A piece of a text.
    fn take(&mut self, text: &[u8], expected: Option<&[u8]>) {
        if matches!(self.tag, b'-' | b'!') {
            if self.quotes {
                let room = MOST_ERROR_BYTES - self.error.len();
                self.error.extend_from_slice(&text[..text.len().min(room)]);
            }
        } else if let Some(expected) = expected.filter(|_| self.open.is_empty()) {
            let end = self.compared + text.len();
            self.reply.matches &= expected.get(self.compared..end) == Some(text);
            self.compared = end;
        }
    }

    /// An element is whole; true when the reply is.
    fn close(&mut self) -> bool {
        self.state = State::Begin;
        while let Some(last) = self.open.last_mut() {
            last.left -= 1;
            if last.left > 0 {
                return false;
            }
            let aside = last.aside;
            self.open.pop();
            if aside {
                self.asides -= 1;
                self.asides_read += 1;
                return false;
            }
        }
        true
    }
}

fn newline(byte: u8) -> Result<(), Malformed> {
    if byte == b'\n' {
        Ok(())
    } else {
        Err(Malformed("a line ends without a line feed".into()))
    }
}

#[cfg(test)]
mod tests;
