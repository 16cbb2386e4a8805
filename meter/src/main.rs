//! `ensign-meter`: races programs slice by slice and accounts for what each of them used.
//!
//! It reads one request from standard input and writes records to standard output; both are
//! described in docs/reference/meter-protocol.md.

#![forbid(unsafe_code)]

use clap::{Parser, Subcommand};
use ensign_protocol::records::{last_words, Status};
use ensign_protocol::request::{Request, Verb};
use ensign_protocol::schema::{Answer, Question};
use ensign_protocol::{Code, Problem};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Races programs slice by slice and accounts for what each of them used.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Races the variants of the request on standard input.
    Race,
    /// Runs the one command of the request on standard input.
    Exec,
    /// Drives the server of the request on standard input.
    Drive,
    /// Says what is wrong with each request on standard input; nothing is started.
    Check,
    /// Says what each command line of a compiler on standard input does.
    Parse,
    /// Writes each piece of machine code on standard input in words.
    Disassemble,
    /// Says what compile units each file on standard input has.
    Units,
    /// Says which functions hold places of each file on standard input.
    Locate,
    /// Says in one line what is possible here.
    Probe,
    /// Says in one line what the processor has, as it says itself.
    Processor,
    /// Runs a program and says what it and its children executed, mapped and wrote.
    Follow(Followed),
    /// Runs several programs that work together, each when the one before it is ready.
    Ends(Ends),
    /// Runs a program as another user, without groups, capabilities or a way to get them.
    AsUser(AsUser),
}

#[derive(clap::Args)]
struct AsUser {
    /// The numbers of the user and of its group, `UID:GID`.
    user: String,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Options that are there once for each end come in the order of the ends.
#[derive(clap::Args)]
struct Ends {
    /// How many words of the command are this end's.
    #[arg(long, required = true)]
    words: Vec<usize>,
    /// CPUs of this end, such as `0,1`; empty: any.
    #[arg(long)]
    cpus: Vec<String>,
    /// The port on which this end listens before the next one begins; 0: the next does not wait.
    #[arg(long)]
    port: Vec<u16>,
    /// Whether this end is ended when the others have ended.
    #[arg(long)]
    serves: Vec<bool>,
    /// Puts each of two ends into a network namespace of its own, joined at that rate: bits per
    /// second, 0 for as fast as it goes.
    #[arg(long)]
    rate: Option<u64>,
    /// The largest packet of that network.
    #[arg(long, default_value_t = 1500, value_parser = clap::value_parser!(u32).range(68..=65_535))]
    mtu: u32,
    /// The programs and their arguments, one after the other.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl Ends {
    /// None where the words are not as many as was said, or CPUs are none.
    fn each(&self) -> Option<Vec<ensign_race::End>> {
        let mut rest = &self.command[..];
        let mut found = Vec::new();
        for (index, &count) in self.words.iter().enumerate() {
            let (words, later) = rest.split_at_checked(count)?;
            rest = later;
            let cpus = self.cpus.get(index).map_or("", String::as_str);
            let cpus = cpus.split(',').filter(|cpu| !cpu.is_empty());
            found.push(ensign_race::End {
                words: (!words.is_empty()).then(|| words.to_vec())?,
                cpus: cpus.map(|cpu| cpu.parse().ok()).collect::<Option<_>>()?,
                port: self.port.get(index).copied().unwrap_or(0),
                serves: self.serves.get(index).copied().unwrap_or(false),
            });
        }
        rest.is_empty().then_some(found)
    }
}

#[derive(clap::Args)]
struct Followed {
    /// Where the document goes.
    #[arg(long)]
    log: PathBuf,
    /// How many times as fast clocks of CPU time are to seem.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    cpu_clock_rate: u64,
    /// Every how many microseconds to look where running tasks are; 0 is never.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    sample_us: u64,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

fn main() {
    if let Some(name) = ensign_record::called_as() {
        std::process::exit(ensign_record::record(&name));
    }
    let arguments = Arguments::parse();
    // These make no control groups.
    let groupless = !matches!(
        arguments.command,
        Action::Race | Action::Exec | Action::Probe
    );
    let in_scope = !groupless && ensign_race::enter_scope();
    let status = match arguments.command {
        Action::Race => serve(Verb::Race),
        Action::Exec => serve(Verb::Exec),
        Action::Drive => serve(Verb::Drive),
        Action::Check => answer(check),
        Action::Parse => answer(ensign_record::parsed),
        Action::Disassemble => answer(ensign_code::disassembled),
        Action::Units => answer(ensign_code::units_of),
        Action::Locate => answer(ensign_code::located),
        Action::Probe => {
            println!("{}", ensign_race::probe(in_scope));
            0
        }
        Action::Processor => {
            println!("{}", ensign_race::processor());
            0
        }
        Action::Ends(asked) => {
            let network = asked.rate.map(|rate_bits| ensign_race::Network {
                rate_bits,
                mtu: asked.mtu,
            });
            match asked.each() {
                Some(ends) => ensign_race::ends(&ends, network),
                None => {
                    eprintln!("ensign-meter ends: the words or CPUs are not what was said");
                    125
                }
            }
        }
        Action::AsUser(asked) => ensign_race::as_user(&asked.user, &asked.command),
        Action::Follow(asked) => {
            let sample_every = Duration::from_micros(asked.sample_us);
            let sample_every = (!sample_every.is_zero()).then_some(sample_every);
            ensign_race::follow(
                asked.command,
                &asked.log,
                asked.cpu_clock_rate,
                sample_every,
            )
        }
    };
    std::process::exit(status);
}

fn serve(verb: Verb) -> i32 {
    let request = ensign_race::read_request()
        .map_err(|error| format!("cannot read the request: {error}"))
        .and_then(|bytes| Request::parse(verb, &bytes).map_err(|found| Problem::listed(&found)));
    let request = match request {
        Ok(request) => request,
        Err(text) => return refuse(Code::Request, &text),
    };
    ensign_race::guard(&request).unwrap_or_else(|refusal| refuse(refusal.code, &refusal.text))
}

fn check(question: &str) -> Result<String, String> {
    let asked: Question = serde_json::from_str(question).map_err(|error| error.to_string())?;
    let problems = Request::read(asked.verb, asked.request).err();
    let answer = Answer {
        problems: problems.unwrap_or_default(),
    };
    serde_json::to_string(&answer).map_err(|error| error.to_string())
}

/// Answers line by line; nothing is started, whatever the questions say.
fn answer(answer: impl Fn(&str) -> Result<String, String>) -> i32 {
    for question in std::io::stdin().lines() {
        let said = question
            .map_err(|error| error.to_string())
            .and_then(|question| answer(&question));
        match said {
            Ok(said) => println!("{said}"),
            Err(text) => return refuse(Code::Request, &text),
        }
    }
    0
}

fn refuse(code: Code, text: &str) -> i32 {
    let mut words = Vec::new();
    last_words(&mut words, Some((code, text)), Status::Failed);
    // Where nobody reads, nobody can be told.
    let _ = std::io::stdout().write_all(&words);
    code.exit_status()
}
