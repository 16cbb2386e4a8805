//! What kinds of errors and warnings there are.

use schemars::JsonSchema;
use serde::Serialize;
use std::io::ErrorKind;

/// What a reader of the records finds in `code` of an `error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    Request,
    NotFound,
    NotExecutable,
    Failed,
    Crashed,
    Deadline,
    NotReady,
    PortInUse,
    LoadFailed,
    OperationsUnknown,
    Reply,
    /// A limit of memory, of processes, or of what is written.
    Limit,
    /// The disk is full.
    Storage,
    // The system refused something else: no memory, files or processes are left.
    System,
    // A fault of the meter.
    Internal,
}

impl Code {
    /// 2: the request cannot be carried out as it stands; 3: a command failed, or the system
    /// refused something; 5: the meter failed.
    pub fn exit_status(self) -> i32 {
        match self {
            Code::Request | Code::NotFound | Code::NotExecutable | Code::PortInUse => 2,
            Code::Internal => 5,
            _ => 3,
        }
    }
}

impl Code {
    /// What a refusal of the system is: `Storage` where the disk is full, else `other`.
    pub fn of_refusal(error: &std::io::Error, other: Code) -> Code {
        let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
        if full.contains(&error.kind()) {
            Code::Storage
        } else {
            other
        }
    }
}

/// What a reader of the records finds in `code` of a `warning`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WarningCode {
    /// A program or its files run from the original.
    NotCopied,
    /// A process left its tree.
    Escape,
    /// Background processes were ended.
    LeftRunning,
    /// A stop took long: another process had the CPU.
    Overshoot,
    LoadBottleneck,
    /// The variant fills no longer.
    FillerFailed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_written_with_hyphens() {
        let written = |code| serde_json::to_value(code).unwrap();
        assert_eq!(written(Code::NotFound), "not-found");
        assert_eq!(written(Code::OperationsUnknown), "operations-unknown");
        assert_eq!(
            serde_json::to_value(WarningCode::LeftRunning).unwrap(),
            "left-running"
        );
    }
}
