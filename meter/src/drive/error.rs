//! Why a drive stops before its end.

use crate::halt::{Code, Halt};
use std::io;

#[derive(Debug)]
pub enum DriveError {
    /// A signal, or the caller is gone.
    Interrupted,
    Failed {
        code: Code,
        text: String,
    },
}

impl DriveError {
    pub fn reply(text: impl Into<String>) -> DriveError {
        DriveError::failed(Code::Reply, text)
    }

    pub fn failed(code: Code, text: impl Into<String>) -> DriveError {
        let text = text.into();
        DriveError::Failed { code, text }
    }

    /// With the variant named (none where that is empty).
    pub fn halt(self, variant: &str) -> Halt {
        match self {
            DriveError::Interrupted => Halt::Interrupted,
            DriveError::Failed { code, text } if variant.is_empty() => {
                Halt::failed(code, variant, text)
            }
            DriveError::Failed { code, text } => {
                Halt::failed(code, variant, format!("variant {variant:?}: {text}"))
            }
        }
    }
}

impl From<io::Error> for DriveError {
    fn from(error: io::Error) -> DriveError {
        DriveError::failed(Code::System, error.to_string())
    }
}

impl From<Halt> for DriveError {
    fn from(halt: Halt) -> DriveError {
        match halt {
            Halt::Interrupted => DriveError::Interrupted,
            Halt::Failed(failure) => DriveError::failed(failure.code, failure.text),
        }
    }
}
