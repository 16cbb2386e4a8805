//! Machine code and debug information of programs that nobody runs: files of strangers.

mod disassemble;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod locate;
mod units;

pub use disassemble::disassembled;
pub use locate::located;
pub use units::units_of;

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
