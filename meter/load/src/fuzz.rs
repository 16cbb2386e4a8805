//! What is fuzzed here: replies of a server, and what checked drives send.

use crate::resp::Parser;
use crate::stream::{Plan, Stream};
use ensign_protocol::drive::Drive;
use ensign_protocol::random::Random;

const OPERATIONS: usize = 50;
const MOST_SENT_BYTES: usize = 1 << 20;

/// Replies; the first byte says in how large pieces they come. However they come, they are the same.
pub fn replies(data: &[u8]) {
    let Some((&size, data)) = data.split_first() else {
        return;
    };
    let whole = read([data].into_iter());
    let pieces = read(data.chunks(usize::from(size).max(1)));
    assert_eq!(whole, pieces);
}

fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<String>, bool) {
    let mut parser = Parser::new();
    let mut said = Vec::new();
    for mut piece in pieces {
        while !piece.is_empty() {
            match parser.feed(piece, Some(b"OK")) {
                Ok((taken, reply)) => {
                    piece = &piece[taken..];
                    said.extend(reply.map(|reply| format!("{reply:?}")));
                }
                // What is quoted of it depends on the piece.
                Err(_) => return (said, false),
            }
        }
    }
    said.push(parser.error().escape_ascii().to_string());
    said.push(parser.is_inside().to_string());
    (said, true)
}

/// A drive as JSON: where nothing is wrong with it, it can be sent.
pub fn sent(data: &[u8]) {
    let Ok(drive) = serde_json::from_slice::<Drive>(data) else {
        return;
    };
    if !drive.problems().is_empty() {
        return;
    }
    let plan = Plan::new(&drive);
    if plan.data_bytes(0) > MOST_SENT_BYTES as u64 {
        return;
    }
    let mut seeds = Random::new(drive.seed);
    for index in [0, drive.connections - 1] {
        let mut stream = Stream::new(&plan, seeds.fork(), index, drive.connections);
        let mut out = Vec::new();
        for _ in 0..OPERATIONS {
            let (command, _) = stream.next(&plan, &mut out);
            assert!(command < plan.commands.len());
            if out.len() > MOST_SENT_BYTES {
                break;
            }
        }
    }
}
