//! How a process ended, judged and put into words.

use crate::commands::launch::Process;
use crate::halt::Failure;
use ensign_protocol::records::{Outcome, Reason, Role};
use ensign_protocol::Code;

/// Whether an outcome is a failure of the run, and how to say so.
pub(crate) fn verdict(outcome: &Outcome, process: &mut Process) -> Option<Failure> {
    let ended = match (outcome.reason, outcome.exit, outcome.signal) {
        (Reason::Ended | Reason::Filler, _, _) => return None,
        (Reason::Deadline, _, _) => "met its deadline".to_string(),
        (_, Some(0), _) if outcome.role != Role::Server => return None,
        (_, Some(code), _) => format!("ended with exit status {code}"),
        (_, _, signal) => format!("was ended by signal {}", signal.unwrap_or(0)),
    };
    let trouble = process.child.trouble();
    let code = match (outcome.reason, outcome.role, outcome.signal) {
        _ if trouble.is_some() => trouble.as_ref().map_or(Code::Failed, |(code, _)| *code),
        (Reason::Deadline, _, _) => Code::Deadline,
        (_, Role::Load, _) => Code::LoadFailed,
        (_, Role::Server, _) | (_, _, Some(_)) => Code::Crashed,
        _ => Code::Failed,
    };
    if process.ignore_failure
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
