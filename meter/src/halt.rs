//! Why a run stops before its end.

use std::io;

/// What a reader of the records finds in `code` of an `error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    System,
}

impl Code {
    pub fn name(self) -> &'static str {
        match self {
            Code::Request => "request",
            Code::NotFound => "not-found",
            Code::NotExecutable => "not-executable",
            Code::Failed => "failed",
            Code::Crashed => "crashed",
            Code::Deadline => "deadline",
            Code::NotReady => "not-ready",
            Code::PortInUse => "port-in-use",
            Code::LoadFailed => "load-failed",
            Code::OperationsUnknown => "operations-unknown",
            Code::Reply => "reply",
            Code::System => "system",
        }
    }

    /// 2: the request cannot be carried out as it stands; 3: a command failed; 5: the meter did.
    pub fn exit_status(self) -> i32 {
        match self {
            Code::Request | Code::NotFound | Code::NotExecutable | Code::PortInUse => 2,
            Code::System => 5,
            _ => 3,
        }
    }
}

#[derive(Debug)]
pub struct Failure {
    pub code: Code,
    pub variant: Option<String>,
    pub text: String,
    /// How the process ended that failed, where it was one.
    pub exit: Option<i32>,
    pub signal: Option<i32>,
}

impl Failure {
    /// Whether it is one variant's own, and no mistake of the request or the meter.
    pub fn is_of_an_variant(&self) -> bool {
        let others = [Code::Request, Code::PortInUse, Code::System];
        self.variant.is_some() && !others.contains(&self.code)
    }
}

#[derive(Debug)]
pub enum Halt {
    /// A signal, or the caller is gone.
    Interrupted,
    Failed(Failure),
}

impl Halt {
    pub fn failed(code: Code, variant: &str, text: impl Into<String>) -> Halt {
        Halt::Failed(Failure {
            code,
            variant: (!variant.is_empty()).then(|| variant.to_string()),
            text: text.into(),
            exit: None,
            signal: None,
        })
    }

    pub fn system(text: impl Into<String>) -> Halt {
        Halt::failed(Code::System, "", text)
    }
}

impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Halt {
        Halt::system(error.to_string())
    }
}
