//! A server of the Redis protocol that answers what a test tells it to.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

pub enum Answer {
    Reply(Vec<u8>),
    /// Then the connection is closed.
    Last(Vec<u8>),
    Nothing,
    /// Some bytes, and then the same ones again and again, with a pause (ms) after each.
    Endless(Vec<u8>, Vec<u8>, u64),
}

pub fn reply(bytes: impl AsRef<[u8]>) -> Answer {
    Answer::Reply(bytes.as_ref().to_vec())
}

/// The first requests of each connection, in the order of connecting.
type Log = Arc<Mutex<Vec<Vec<Vec<String>>>>>;

pub struct FakeServer {
    pub address: SocketAddr,
    log: Log,
    count: Arc<AtomicU64>,
}

impl FakeServer {
    /// `answer` gets the number of the connection and the arguments, which are Latin-1 here so that
    /// no byte is lost.
    pub fn start(
        answer: impl Fn(usize, &[String]) -> Answer + Send + Sync + 'static,
    ) -> FakeServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let log: Log = Arc::default();
        let count: Arc<AtomicU64> = Arc::default();
        let (shared, counter, answer) = (log.clone(), count.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for (number, socket) in listener.incoming().flatten().enumerate() {
                let (shared, counter, answer) = (shared.clone(), counter.clone(), answer.clone());
                shared.lock().unwrap().push(Vec::new());
                std::thread::spawn(move || {
                    serve(&socket, |argv| {
                        counter.fetch_add(1, Ordering::SeqCst);
                        keep(&mut shared.lock().unwrap()[number], argv);
                        answer(number, argv)
                    })
                });
            }
        });
        FakeServer {
            address,
            log,
            count,
        }
    }

    /// One that keeps what it is given: SET and GET, MULTI and EXEC without effect, HELLO.
    pub fn store() -> FakeServer {
        let store = Mutex::new(HashMap::new());
        FakeServer::start(move |_, argv| {
            let mut store = store.lock().unwrap();
            reply(match argv[0].as_str() {
                "SET" => {
                    store.insert(argv[1].clone(), argv[2].clone());
                    b"+OK\r\n".to_vec()
                }
                "GET" => store
                    .get(&argv[1])
                    .map_or(b"$-1\r\n".to_vec(), |value| bulk(value)),
                "HELLO" => b"%1\r\n$5\r\nproto\r\n:3\r\n".to_vec(),
                _ => b"+OK\r\n".to_vec(),
            })
        })
    }

    /// The first requests of each connection.
    pub fn requests(&self) -> Vec<Vec<Vec<String>>> {
        self.log.lock().unwrap().clone()
    }

    pub fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }
}

fn keep(requests: &mut Vec<Vec<String>>, argv: &[String]) {
    const MOST_KEPT: usize = 2000;
    if requests.len() < MOST_KEPT {
        requests.push(argv.to_vec());
    }
}

fn bulk(text: &str) -> Vec<u8> {
    let bytes: Vec<u8> = text.chars().map(|letter| letter as u8).collect();
    [format!("${}\r\n", bytes.len()).as_bytes(), &bytes, b"\r\n"].concat()
}

fn serve(socket: &TcpStream, mut answer: impl FnMut(&[String]) -> Answer) {
    let _ = socket.set_nodelay(true);
    let mut reader = BufReader::new(socket);
    let mut writer = socket;
    let mut settled = false;
    while let Some(argv) = read_request(&mut reader) {
        // What asks whether the connection was looked at belongs to no drive.
        if !settled && argv == ["PING"] {
            settled = true;
            if writer.write_all(b"+PONG\r\n").is_err() {
                return;
            }
            continue;
        }
        let (bytes, last) = match answer(&argv) {
            Answer::Reply(bytes) => (bytes, false),
            Answer::Last(bytes) => (bytes, true),
            Answer::Nothing => continue,
            Answer::Endless(head, again, pause_ms) => {
                return endless(writer, &head, &again, pause_ms);
            }
        };
        if writer.write_all(&bytes).is_err() || last {
            return;
        }
    }
}

fn endless(mut writer: &TcpStream, head: &[u8], again: &[u8], pause_ms: u64) {
    let mut sent = writer.write_all(head);
    while sent.is_ok() {
        sent = writer.write_all(again);
        std::thread::sleep(std::time::Duration::from_millis(pause_ms));
    }
}

fn read_request(reader: &mut impl BufRead) -> Option<Vec<String>> {
    let count = read_number(reader)?;
    (0..count)
        .map(|_| {
            let mut bytes = vec![0; read_number(reader)? + 2];
            reader.read_exact(&mut bytes).ok()?;
            bytes.truncate(bytes.len() - 2);
            Some(bytes.into_iter().map(char::from).collect())
        })
        .collect()
}

fn read_number(reader: &mut impl BufRead) -> Option<usize> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    line.trim_end().get(1..)?.parse().ok()
}
