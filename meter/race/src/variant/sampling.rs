//! Where a variant's tasks stand at the ends of its slices: samples of where it spends its time.

use super::Variant;
use crate::follow::places::{self, Code, Region};
use crate::processes::freezer::Group;
use crate::processes::procfs;
use crate::run_state::RunState;
use ensign_protocol::records::{CodeSamples, Mapped, SampledFile};
use libc::pid_t;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::ErrorKind;

/// Of one execution: beyond these every second look is dropped, so that all its parts stay equal.
const MOST_SAMPLES: usize = 2048;
const MOST_TASKS: usize = 32;
const MOST_KNOWN: usize = 64;

/// Where a task that stands still would go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stand {
    At(u64),
    /// After a system call, in which it may have slept.
    InCall,
}

impl Stand {
    /// `-1 stack place`, or `number arguments… stack place`; None of a task that runs.
    pub(crate) fn parse(text: &str) -> Option<Stand> {
        let (number, rest) = text.trim_end().split_once(' ')?;
        let number: i64 = number.parse().ok()?;
        let place = rest.rsplit(' ').next()?.strip_prefix("0x")?;
        let place = u64::from_str_radix(place, 16).ok()?;
        Some(if number == -1 {
            Stand::At(place)
        } else {
            Stand::InCall
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sample {
    InFile { file: usize, offset: u64 },
    Elsewhere,
    InCall,
    Unknown,
}

/// What a process had mapped when this was last read, for as long as it is the same program.
struct Known {
    program: String,
    regions: Vec<Region>,
}

pub(crate) struct Sampler {
    looks: u64,
    /// Every so many looks count.
    stride: u64,
    samples: Vec<(u64, Sample)>,
    files: Vec<Mapped>,
    known: HashMap<pid_t, Known>,
    /// The meter's executable.
    own: String,
}

impl Default for Sampler {
    fn default() -> Sampler {
        Sampler {
            looks: 0,
            stride: 1,
            samples: Vec::new(),
            files: Vec::new(),
            known: HashMap::new(),
            own: places::program_of(std::process::id() as pid_t),
        }
    }
}

impl Sampler {
    pub(super) fn is_due(&mut self) -> bool {
        self.looks += 1;
        self.looks % self.stride == 0
    }

    fn take(&mut self, sample: Sample) {
        self.samples.push((self.looks, sample));
        while self.samples.len() > MOST_SAMPLES && self.stride <= self.looks {
            self.stride *= 2;
            let stride = self.stride;
            self.samples.retain(|(look, _)| look % stride == 0);
        }
    }

    pub(super) fn look(&mut self, processes: &[pid_t]) {
        let mut tasks: Vec<(pid_t, pid_t)> = Vec::new();
        for &pid in processes {
            tasks.extend(tasks_of(pid).into_iter().map(|task| (pid, task)));
        }
        // Of many each is met as often as any other.
        let most = tasks.len().max(1) as u64;
        tasks.rotate_left((self.looks * MOST_TASKS as u64 % most) as usize);
        for (pid, task) in tasks.into_iter().take(MOST_TASKS) {
            let program = places::program_of(pid);
            // Not a program yet.
            if program == self.own {
                continue;
            }
            let sample = match fs::read_to_string(format!("/proc/{pid}/task/{task}/syscall")) {
                Ok(text) => match Stand::parse(&text) {
                    Some(Stand::At(place)) => self.locate(pid, program, place),
                    Some(Stand::InCall) => Sample::InCall,
                    None => Sample::Unknown,
                },
                // It ended meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => continue,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(_) => Sample::Unknown,
            };
            self.take(sample);
        }
    }

    fn locate(&mut self, pid: pid_t, program: String, place: u64) -> Sample {
        let known = self.known.get(&pid);
        let known = known.filter(|known| known.program == program);
        if known.is_none_or(|known| find(&known.regions, place).is_none()) {
            if self.known.len() >= MOST_KNOWN {
                self.known.clear();
            }
            let regions = places::regions(pid);
            self.known.insert(pid, Known { program, regions });
        }
        let regions = self.known.get(&pid).map(|known| &known.regions[..]);
        let Some(region) = find(regions.unwrap_or_default(), place) else {
            return Sample::Elsewhere;
        };
        let Code::File(mapped) = &region.code else {
            return Sample::Elsewhere;
        };
        let offset = region.offset.saturating_add(place - region.start);
        let there = self.files.iter().position(|file| file == mapped);
        let file = there.unwrap_or_else(|| {
            self.files.push(mapped.clone());
            self.files.len() - 1
        });
        Sample::InFile { file, offset }
    }

    pub(crate) fn counts(&self) -> CodeSamples<'_> {
        let count = |what: Sample| {
            self.samples
                .iter()
                .filter(|(_, each)| *each == what)
                .count()
        };
        let mut found: BTreeMap<usize, BTreeMap<u64, u64>> = BTreeMap::new();
        for (_, sample) in &self.samples {
            if let Sample::InFile { file, offset } = *sample {
                *found.entry(file).or_default().entry(offset).or_default() += 1;
            }
        }
        let files = found.into_iter().map(|(file, places)| SampledFile {
            path: &self.files[file].path,
            deleted: self.files[file].deleted,
            other_root: self.files[file].other_root,
            places: places.into_iter().collect(),
        });
        CodeSamples {
            files: files.collect(),
            elsewhere: count(Sample::Elsewhere) as u64,
            in_calls: count(Sample::InCall) as u64,
            unknown: count(Sample::Unknown) as u64,
        }
    }
}

fn find(regions: &[Region], place: u64) -> Option<&Region> {
    let mut regions = regions.iter();
    regions.find(|region| region.start <= place && place < region.end)
}

fn tasks_of(pid: pid_t) -> Vec<pid_t> {
    let tasks = procfs::tasks(pid);
    let mut numbers: Vec<pid_t> = tasks.filter_map(|task| procfs::number_of(&task)).collect();
    numbers.sort_unstable();
    numbers
}

impl Variant<'_> {
    /// Before a slice, where the last one ended: nobody is measured. A task counts as frozen before
    /// it gives up its CPU, and until then the kernel tells nothing; by now it mostly has. Fillers do
    /// not count.
    pub(crate) fn sample(&mut self, run_state: &mut RunState) {
        if !self.is_finished() && self.slices > 0 && self.sampler.is_due() {
            let members = run_state.process_trees.tree(self.tree).members(Group::Main);
            self.sampler.look(&members);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_stands_in_its_code_or_in_a_call() {
        let code = "-1 0x7ffd5e4b1a30 0x55d2c0401136\n";
        assert_eq!(Stand::parse(code), Some(Stand::At(0x55d2_c040_1136)));
        let call = "0 0x3 0x7f 0x1000 0x0 0x0 0x0 0x7ffd5e4b1a30 0x7f31c8\n";
        assert_eq!(Stand::parse(call), Some(Stand::InCall));
        assert_eq!(Stand::parse("running\n"), None);
        assert_eq!(Stand::parse("-1 0x1 7f"), None);
        assert_eq!(Stand::parse(""), None);
    }

    #[test]
    fn what_is_kept_is_spread_evenly_over_all_looks() {
        let mut sampler = Sampler::default();
        for _ in 0..100_000 {
            if sampler.is_due() {
                sampler.take(Sample::InCall);
            }
        }
        let looks: Vec<u64> = sampler.samples.iter().map(|(look, _)| *look).collect();
        assert!(looks.len() > MOST_SAMPLES / 4 && looks.len() <= MOST_SAMPLES);
        let steps: Vec<u64> = looks.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(steps.iter().all(|&step| step == sampler.stride));
        assert_eq!(sampler.counts().in_calls, looks.len() as u64);
    }

    #[test]
    fn this_process_stands_in_files_that_it_has_mapped() {
        let own = std::process::id() as pid_t;
        let place = find as *const () as u64;
        let mut sampler = Sampler::default();
        let sample = sampler.locate(own, places::program_of(own), place);
        assert!(matches!(sample, Sample::InFile { .. }));
        sampler.take(sample);
        let counts = sampler.counts();
        assert_eq!(counts.files[0].places.len(), 1);
        let program = std::env::current_exe().unwrap();
        assert_eq!(counts.files[0].path, program.to_string_lossy());
        let nowhere = sampler.locate(own, String::new(), 1);
        assert!(matches!(nowhere, Sample::Elsewhere));
    }
}
