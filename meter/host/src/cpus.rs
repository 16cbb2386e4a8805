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
    cpus_of(0)
}

/// On how many CPUs at most these tasks can run at a time; of one that ended nothing is known.
pub fn most_at_once(tasks: &[libc::pid_t]) -> usize {
    if tasks.len() < 2 {
        return tasks.len();
    }
    let mut all = cpu_set(&[]);
    for set in tasks.iter().map(|&task| cpus_of(task)) {
        let Some(set) = set else { return tasks.len() };
        // SAFETY: the index is within both sets.
        (0..libc::CPU_SETSIZE as usize)
            .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
            .for_each(|cpu| unsafe { libc::CPU_SET(cpu, &mut all) });
    }
    // SAFETY: a CPU set is plain bits.
    let cpus = unsafe { libc::CPU_COUNT(&all) };
    tasks.len().min(cpus as usize)
}

fn cpus_of(task: libc::pid_t) -> Option<libc::cpu_set_t> {
    let mut set = cpu_set(&[]);
    let size = std::mem::size_of::<libc::cpu_set_t>();
    // SAFETY: the set is as large as said.
    (unsafe { libc::sched_getaffinity(task, size, &mut set) } == 0).then_some(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_run_on_the_cpus_that_they_keep_to() {
        let own = own_cpus().unwrap();
        // SAFETY: the index is within the set.
        let first = (0..)
            .find(|&cpu| unsafe { libc::CPU_ISSET(cpu, &own) })
            .unwrap();
        let keeps = std::thread::spawn(move || {
            keep_to(&[first]).unwrap();
            most_at_once(&[0, 0, 0])
        });
        assert_eq!(keeps.join().unwrap(), 1);
        assert_eq!(most_at_once(&[0]), 1);
        assert_eq!(most_at_once(&[]), 0);
        assert_eq!(most_at_once(&[0, libc::pid_t::MAX]), 2);
    }
}
