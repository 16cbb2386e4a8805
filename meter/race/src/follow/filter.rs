//! The kernel's filter: which system calls stop for the tracer.

use super::calls::{Abi, Row, When};
use libc::{sock_filter, sock_fprog};
use std::io;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const TRACE: u32 = libc::SECCOMP_RET_TRACE;
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ARGUMENTS: u32 = 16;
/// CPU-time clocks of the caller; those of others are negative.
const PROCESS_CPU: u32 = libc::CLOCK_PROCESS_CPUTIME_ID as u32;
const THREAD_CPU: u32 = libc::CLOCK_THREAD_CPUTIME_ID as u32;
const NEGATIVE: u32 = 0x8000_0000;
/// Calls of x32 have this bit, and the architecture of x86-64.
const X32: u32 = 0x4000_0000;

fn load(offset: u32) -> sock_filter {
    statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset)
}

fn give(value: u32) -> sock_filter {
    statement(libc::BPF_RET | libc::BPF_K, value)
}

fn statement(code: u32, k: u32) -> sock_filter {
    jump(code, k, 0, 0)
}

fn jump(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}

fn when(test: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    jump(libc::BPF_JMP | test | libc::BPF_K, k, jt, jf)
}

/// The low half of an argument: every value that is asked for fits into it.
fn low(argument: usize) -> sock_filter {
    load(ARGUMENTS + 8 * argument as u32 + if cfg!(target_endian = "big") { 4 } else { 0 })
}

fn high(argument: usize) -> sock_filter {
    load(ARGUMENTS + 8 * argument as u32 + if cfg!(target_endian = "big") { 0 } else { 4 })
}

/// Ends with a verdict in any case.
fn body(condition: When) -> Vec<sock_filter> {
    match condition {
        When::Always => vec![give(TRACE)],
        When::Bits(argument, mask) => vec![
            low(argument),
            when(libc::BPF_JSET, mask, 1, 0),
            give(ALLOW),
            give(TRACE),
        ],
        When::Some(argument) => vec![
            low(argument),
            when(libc::BPF_JEQ, 0, 0, 2),
            high(argument),
            when(libc::BPF_JEQ, 0, 1, 0),
            give(TRACE),
            give(ALLOW),
        ],
        When::OneOf(argument, values) => {
            let mut program = vec![low(argument)];
            for (index, &value) in values.iter().enumerate() {
                let left = (values.len() - index) as u8;
                program.push(when(libc::BPF_JEQ, value, left, 0));
            }
            program.extend([give(ALLOW), give(TRACE)]);
            program
        }
        When::CpuClock => vec![
            low(0),
            when(libc::BPF_JGE, NEGATIVE, 3, 0),
            when(libc::BPF_JEQ, PROCESS_CPU, 2, 0),
            when(libc::BPF_JEQ, THREAD_CPU, 1, 0),
            give(ALLOW),
            give(TRACE),
        ],
    }
}

fn program(abis: &[Abi]) -> Vec<sock_filter> {
    let mut program = Vec::new();
    for (index, abi) in abis.iter().enumerate() {
        let mut part = vec![load(NUMBER)];
        if index == 0 && cfg!(target_arch = "x86_64") {
            part.extend([when(libc::BPF_JGE, X32, 0, 1), give(TRACE)]);
        }
        for Row {
            number,
            when: condition,
            ..
        } in &abi.rows
        {
            let body = body(*condition);
            part.push(when(libc::BPF_JEQ, *number, 0, body.len() as u8));
            part.extend(body);
        }
        part.push(give(ALLOW));
        // A jump on a condition reaches 255 instructions only.
        program.push(load(ARCH));
        program.push(when(libc::BPF_JEQ, abi.arch, 1, 0));
        program.push(statement(libc::BPF_JMP | libc::BPF_JA, part.len() as u32));
        program.extend(part);
    }
    program.push(give(TRACE));
    program
}

/// For this process and all that it starts. Without the right to, it also gives up gaining
/// privileges by set-user-id programs, which a traced process does not gain anyway.
pub(super) fn install(abis: &[Abi]) -> io::Result<()> {
    let mut program = program(abis);
    let filter = sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    let set = || {
        // SAFETY: the program lives until the kernel has copied it.
        let result = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                0,
                &raw const filter,
            )
        };
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    };
    set().or_else(|_| {
        // SAFETY: no memory is involved.
        unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        set()
    })
}
