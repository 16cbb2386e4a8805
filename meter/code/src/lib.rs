//! Machine code and debug information of programs that nobody runs: files of strangers.

use std::collections::HashMap;

mod disassemble;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod locate;
mod units;

pub use disassemble::disassembled;
pub use locate::located;
pub use units::units_of;

/// Texts of an answer, each once; the rest of it refers to their places.
#[derive(Default)]
pub(crate) struct Texts {
    pub(crate) all: Vec<String>,
    pub(crate) bytes: usize,
    places: HashMap<String, usize>,
}

impl Texts {
    pub(crate) fn place(&mut self, text: &str) -> usize {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = self.all.len();
        self.bytes += text.len();
        self.all.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        place
    }
}

/// Bytes that were sent as hexadecimal digits; None where they are none.
pub(crate) fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    pairs
        .map(|pair| Some(value(pair[0])? << 4 | value(pair[1])?))
        .collect()
}
