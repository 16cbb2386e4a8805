//! What is wrong with a request, as data: programs read code and path, people the text.

use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::{self, Display, Write};

/// What kind of mistake it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemCode {
    /// No JSON at all.
    Syntax,
    /// A value of another type, a key that is missing or that nobody knows.
    Shape,
    /// A value beyond what is possible.
    Range,
    /// What another value needs is not there.
    Missing,
    /// Values that exclude each other.
    Conflict,
    /// A name that stands for nothing.
    Unknown,
}

/// One mistake in a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    pub code: ProblemCode,
    /// JSON pointer (RFC 6901) to the value, or to what holds it where it is missing.
    pub path: String,
    pub text: String,
}

impl Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self.path.as_str() {
            "" => out.write_str(&self.text),
            path => write!(out, "{path}: {}", self.text),
        }
    }
}

impl Problem {
    /// All of them in one line.
    pub fn listed(problems: &[Problem]) -> String {
        let said: Vec<String> = problems.iter().map(Problem::to_string).collect();
        said.join("; ")
    }
}

/// Collects what is wrong on the way through a request.
#[derive(Default)]
pub(crate) struct Checker {
    path: String,
    found: Vec<Problem>,
}

impl Checker {
    pub(crate) fn found(self) -> Vec<Problem> {
        self.found
    }

    /// Checks what stands under a key or an index.
    pub(crate) fn at(&mut self, step: impl Display, check: impl FnOnce(&mut Checker)) {
        let length = self.path.len();
        let _ = write!(self.path, "/{}", escaped(&step.to_string()));
        check(self);
        self.path.truncate(length);
    }

    /// Checks each of a list that stands under a key.
    pub(crate) fn each<'a, T: 'a>(
        &mut self,
        key: &str,
        all: impl IntoIterator<Item = &'a T>,
        check: impl Fn(&mut Checker, &'a T),
    ) {
        self.at(key, |checker| {
            for (index, one) in all.into_iter().enumerate() {
                checker.at(index, |checker| check(checker, one));
            }
        });
    }

    /// A problem with the value of a key; with `""` one with all that is checked just now.
    pub(crate) fn require(
        &mut self,
        good: bool,
        code: ProblemCode,
        key: &str,
        text: impl FnOnce() -> String,
    ) {
        if good {
            return;
        }
        let path = match key {
            "" => self.path.clone(),
            key => format!("{}/{}", self.path, escaped(key)),
        };
        let text = text();
        self.found.push(Problem { code, path, text });
    }
}

pub(crate) fn escaped(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_have_the_path_of_the_value() {
        let mut checker = Checker::default();
        checker.at("a/b", |checker| {
            checker.each("list", &[1, 2], |checker, number| {
                checker.require(*number == 1, ProblemCode::Range, "x~y", || "no".to_string());
            });
        });
        checker.require(false, ProblemCode::Missing, "", || "none".into());
        let said: Vec<String> = checker.found().iter().map(Problem::to_string).collect();
        assert_eq!(said, ["/a~1b/list/1/x~0y: no", "none"]);
    }
}
