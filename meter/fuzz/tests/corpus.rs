//! Each target gets its corpus, and then damaged inputs, the same each time.

use ensign_fuzz::TARGETS;
use ensign_protocol::random::Random;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const MUTATIONS: usize = 3000;
/// Of one input; even a busy machine without optimization is faster.
const MOST: Duration = Duration::from_secs(10);
const PIECES: [&[u8]; 12] = [
    b"\0",
    b"\r\n",
    b"$-1\r\n",
    b"*1\r\n",
    b"999999999999999999999",
    b"-1",
    b"{",
    b"[[[[[[[[[[",
    b"\"",
    b"{key}",
    b"\xff",
    b"1e999",
];

fn inputs(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let read = |path: PathBuf| (path.clone(), fs::read(path).unwrap());
    paths.into_iter().map(read).collect()
}

fn give(name: &str, what: &str, run: fn(&[u8]), data: &[u8]) {
    let began = Instant::now();
    let ended = std::panic::catch_unwind(|| run(data));
    let shown = data[..data.len().min(400)].escape_ascii();
    assert!(ended.is_ok(), "{name}: {what} panics: {shown}");
    assert!(began.elapsed() < MOST, "{name}: {what} hangs: {shown}");
}

fn damaged(data: &[u8], random: &mut Random) -> Vec<u8> {
    let mut data = data.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(data.len() + 1);
        match random.below(5) {
            0 if at < data.len() => data[at] = random.below(256) as u8,
            1 => data.truncate(at),
            2 if at < data.len() => {
                data.drain(at..(at + 1 + random.below(8)).min(data.len()));
            }
            3 if at < data.len() => {
                let end = (at + 1 + random.below(16)).min(data.len());
                let part = data[at..end].repeat(2);
                data.splice(at..end, part);
            }
            _ => {
                let piece = PIECES[random.below(PIECES.len())];
                data.splice(at..at, piece.iter().copied());
            }
        }
    }
    data
}

#[test]
fn the_corpus_and_damage_of_it_are_read_or_refused() {
    for (name, run) in TARGETS {
        let inputs = inputs(name);
        assert!(!inputs.is_empty());
        for (path, data) in &inputs {
            give(name, &path.display().to_string(), run, data);
        }
        let mut random = Random::new(1);
        for number in 0..MUTATIONS {
            let (_, seed) = &inputs[number % inputs.len()];
            let data = damaged(seed, &mut random);
            give(name, &format!("mutation {number}"), run, &data);
        }
    }
}
