//! The CPUs that a process or a thread may use.

use std::io;

pub fn cpu_set(cpus: &[usize]) -> libc::cpu_set_t {
    // SAFETY: a CPU set is plain bits.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus.iter().filter(|&&cpu| cpu < libc::CPU_SETSIZE as usize) {
        // SAFETY: the index was checked.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    set
}

/// Keeps the calling thread, and those that it starts, to these CPUs.
pub fn keep_to(cpus: &[usize]) -> io::Result<()> {
    keep_to_set(&cpu_set(cpus))
}

/// The same, for CPUs that were asked for.
pub fn keep_to_set(set: &libc::cpu_set_t) -> io::Result<()> {
    // SAFETY: the set is as large as said.
    let status = unsafe { libc::sched_setaffinity(0, std::mem::size_of_val(set), set) };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The CPUs that this process may use now.
pub fn own_cpus() -> Option<libc::cpu_set_t> {
    let mut set = cpu_set(&[]);
    let size = std::mem::size_of::<libc::cpu_set_t>();
    // SAFETY: the set is as large as said.
    (unsafe { libc::sched_getaffinity(0, size, &mut set) } == 0).then_some(set)
}
