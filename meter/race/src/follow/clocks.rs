//! What the clocks of CPU time return, and making them run faster than they do.

use super::ptrace;
use libc::pid_t;

/// Where a call leaves its times: `count` values, or pairs of seconds and a part of a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub address: u64,
    pub word: usize,
    pub pairs: Option<u64>,
    pub count: usize,
}

pub(super) const NANOSECONDS: u64 = 1_000_000_000;
pub(super) const MICROSECONDS: u64 = 1_000_000;

/// Multiplies them. Where they cannot be read or written, they stay as they are.
pub(super) fn multiply(pid: pid_t, times: Times, rate: u64) {
    if let Some((_, after)) = changed(pid, times, |total| total * u128::from(rate)) {
        ptrace::write(pid, times.address, &after);
    }
}

/// Divides what the program asks for, which never becomes nothing: that would stop a timer. Gives
/// what stood there, to be put back: the program does not expect it to change.
pub(super) fn divide(pid: pid_t, times: Times, rate: u64) -> Option<Vec<u8>> {
    let less = |total: u128| (total / u128::from(rate)).max(u128::from(total > 0));
    let (before, after) = changed(pid, times, less)?;
    ptrace::write(pid, times.address, &after).then_some(before)
}

fn changed(pid: pid_t, times: Times, to: impl Fn(u128) -> u128) -> Option<(Vec<u8>, Vec<u8>)> {
    let width = times.word * if times.pairs.is_some() { 2 } else { 1 };
    let mut bytes = vec![0; width * times.count];
    if times.address == 0 || ptrace::read(pid, times.address, &mut bytes) != Some(bytes.len()) {
        return None;
    }
    let before = bytes.clone();
    for value in bytes.chunks_exact_mut(width) {
        let (first, second) = value.split_at_mut(times.word);
        match times.pairs {
            Some(parts) => {
                let total = u128::from(get(first)) * u128::from(parts) + u128::from(get(second));
                let total = to(total);
                put(first, (total / u128::from(parts)) as u64);
                put(second, (total % u128::from(parts)) as u64);
            }
            None => put(first, to(u128::from(get(first))) as u64),
        }
    }
    Some((before, bytes))
}

fn get(bytes: &[u8]) -> u64 {
    match bytes.try_into() {
        Ok(wide) => u64::from_ne_bytes(wide),
        Err(_) => u64::from(u32::from_ne_bytes(bytes.try_into().expect("4 or 8 bytes"))),
    }
}

fn put(bytes: &mut [u8], value: u64) {
    match bytes.len() {
        8 => bytes.copy_from_slice(&value.to_ne_bytes()),
        _ => bytes.copy_from_slice(&(value as u32).to_ne_bytes()),
    }
}
