//! Why a run stops before its end.

use ensign_host::wait;
use ensign_load::DriveError;
use ensign_protocol::Code;
use std::io;

#[derive(Debug)]
pub(crate) struct Failure {
    pub code: Code,
    pub variant: Option<String>,
    pub text: String,
    /// How the process ended that failed, where it was one.
    pub exit: Option<i32>,
    pub signal: Option<i32>,
}

impl Failure {
    /// Whether it is one variant's own, and no mistake of the request or the meter.
    pub(crate) fn is_of_a_variant(&self) -> bool {
        let others = [
            Code::Request,
            Code::PortInUse,
            Code::Storage,
            Code::System,
            Code::Internal,
        ];
        self.variant.is_some() && !others.contains(&self.code)
    }
}

#[derive(Debug)]
pub(crate) enum Halt {
    /// A signal, or the caller is gone.
    Interrupted,
    Failed(Failure),
}

impl Halt {
    pub(crate) fn failed(code: Code, variant: &str, text: impl Into<String>) -> Halt {
        Halt::Failed(Failure {
            code,
            variant: (!variant.is_empty()).then(|| variant.to_string()),
            text: text.into(),
            exit: None,
            signal: None,
        })
    }

    /// Of a drive, with the variant named (none where that is empty).
    pub(crate) fn of_drive(error: DriveError, variant: &str) -> Halt {
        match error {
            DriveError::Interrupted => Halt::Interrupted,
            DriveError::Failed { code, text } if variant.is_empty() => {
                Halt::failed(code, variant, text)
            }
            DriveError::Failed { code, text } => {
                Halt::failed(code, variant, format!("variant {variant:?}: {text}"))
            }
        }
    }

    pub(crate) fn system(text: impl Into<String>) -> Halt {
        Halt::failed(Code::System, "", text)
    }

    /// A fault of the meter.
    pub(crate) fn internal(text: impl Into<String>) -> Halt {
        Halt::failed(Code::Internal, "", text)
    }
}

impl From<wait::Error> for Halt {
    fn from(error: wait::Error) -> Halt {
        match error {
            wait::Error::Interrupted => Halt::Interrupted,
            wait::Error::System(error) => error.into(),
        }
    }
}

impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Halt {
        Halt::failed(
            Code::of_refusal(&error, Code::System),
            "",
            error.to_string(),
        )
    }
}
