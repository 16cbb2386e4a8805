//! How a process ended, judged and put into words.

use crate::halt::Failure;
use crate::processes::spawn::Child;
use ensign_protocol::records::{Limit, Outcome, Reason, Role};
use ensign_protocol::Code;

/// Whether an outcome is a failure of the run, and how to say so. `most` gives what a limit allows.
pub(crate) fn verdict(
    outcome: &Outcome,
    child: &mut Child,
    ignore_failure: bool,
    most: impl Fn(Limit) -> Option<u64>,
) -> Option<Failure> {
    let ended = match (outcome.reason, outcome.exit, outcome.signal) {
        (Reason::Ended | Reason::Filler, _, _) => return None,
        (Reason::Deadline, _, _) => "met its deadline".to_string(),
        (Reason::Memory, _, _) => beyond(Limit::Memory, most(Limit::Memory)),
        (Reason::Processes, _, _) => beyond(Limit::Processes, most(Limit::Processes)),
        (Reason::Disk, _, _) => beyond(Limit::Disk, most(Limit::Disk)),
        (_, Some(0), _) if outcome.role != Role::Server => return None,
        (_, Some(code), _) => format!("ended with exit status {code}"),
        (_, _, signal) => format!("was ended by signal {}", signal.unwrap_or(0)),
    };
    let trouble = child.trouble();
    let code = match (outcome.reason, outcome.role, outcome.signal) {
        _ if trouble.is_some() => trouble.as_ref().map_or(Code::Failed, |(code, _)| *code),
        (Reason::Deadline, _, _) => Code::Deadline,
        (Reason::Memory | Reason::Processes | Reason::Disk, _, _) => Code::Limit,
        (_, Role::Load, _) => Code::LoadFailed,
        (_, Role::Server, _) | (_, _, Some(_)) => Code::Crashed,
        _ => Code::Failed,
    };
    if ignore_failure
        && matches!(code, Code::Failed | Code::Crashed | Code::LoadFailed)
        && outcome.role != Role::Server
    {
        return None;
    }
    let ended = trouble.map_or(ended, |(_, text)| text);
    Some(Failure {
        code,
        variant: outcome.variant.clone(),
        text: format!("{}{}", describe(outcome, &ended), last_line(outcome)),
        exit: outcome.exit,
        signal: outcome.signal,
    })
}

/// That a limit was met, in words.
pub(crate) fn beyond(limit: Limit, most: Option<u64>) -> String {
    let size = |bytes: u64| format!("{:.2} GiB", bytes as f64 / f64::from(1 << 30));
    let most = most.unwrap_or(0);
    match limit {
        Limit::Memory => format!("met the limit of {} of memory", size(most)),
        Limit::Processes => format!("met the limit of {most} processes and threads"),
        Limit::Disk => format!("wrote more than {} below {{tmp}}", size(most)),
    }
}

fn describe(outcome: &Outcome, what: &str) -> String {
    let role = format!("{:?}", outcome.role).to_lowercase();
    let variant = outcome
        .variant
        .as_ref()
        .map_or_else(String::new, |variant| format!("variant {variant:?}: "));
    format!("{variant}{role} `{}` {what}", outcome.argv.join(" "))
}

/// The last thing that a process said, for the message of its failure.
pub(crate) fn last_line(outcome: &Outcome) -> String {
    let texts = [&outcome.stderr_tail, &outcome.stdout_tail];
    let lines = texts
        .iter()
        .flat_map(|text| text.trim_end().lines().next_back());
    lines
        .map(|line| {
            line.rsplit('\r')
                .find(|part| !part.trim().is_empty())
                .unwrap_or("")
        })
        .find(|line| !line.trim().is_empty())
        .map_or_else(String::new, |line| format!(": {}", line.trim()))
}
