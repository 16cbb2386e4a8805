//! What must hold for a request; every mistake has its code and its place.

use crate::problem::{escaped, Checker, Problem, ProblemCode};
use crate::request::{
    DriveRequest, Load, Mode, Output, Preload, Process, Race, Request, Variant, Verb, COUNTERS,
    LONGEST_SLICE_NS, SCHEMA, SHORTEST_SLICE_NS,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;
use std::collections::BTreeSet;
use ProblemCode::{Conflict, Missing, Range, Shape, Syntax, Unknown};

impl Request {
    /// The request of some JSON, or what is wrong with it.
    pub fn parse(verb: Verb, bytes: &[u8]) -> Result<Request, Vec<Problem>> {
        let value = serde_json::from_slice(bytes).map_err(|error| {
            let text = format!("the request is not as expected: {error}");
            vec![problem(Syntax, String::new(), text)]
        })?;
        Request::read(verb, value)
    }

    /// The same, of JSON that was read already.
    pub fn read(verb: Verb, value: Value) -> Result<Request, Vec<Problem>> {
        let request = match verb {
            Verb::Race => shaped(value).map(Request::Race),
            Verb::Exec => shaped(value).map(Request::Exec),
            Verb::Drive => shaped(value).map(Request::Drive),
        };
        let request = request.map_err(|problem| vec![problem])?;
        let mut checker = Checker::default();
        request.check(&mut checker);
        let found = checker.found();
        match found.is_empty() {
            true => Ok(request),
            false => Err(found),
        }
    }

    fn check(&self, checker: &mut Checker) {
        let schema = match self {
            Request::Race(race) => race.schema,
            Request::Exec(exec) => exec.schema,
            Request::Drive(drive) => drive.schema,
        };
        checker.require(schema == SCHEMA, Range, "schema", || {
            format!("`schema` is {schema}; this meter knows {SCHEMA}")
        });
        let user = self.containment().user;
        let usable = |id: u32| id != 0 && id != u32::MAX;
        let unprivileged = user.is_none_or(|user| usable(user.uid) && usable(user.gid));
        checker.require(unprivileged, Range, "containment", || {
            "`user` must be one other than root".into()
        });
        match self {
            Request::Race(race) => race.check(checker),
            Request::Exec(exec) => checker.at("process", |checker| exec.process.check(checker)),
            Request::Drive(drive) => drive.check(checker),
        }
    }
}

fn problem(code: ProblemCode, path: String, text: String) -> Problem {
    Problem { code, path, text }
}

fn shaped<T: DeserializeOwned>(value: Value) -> Result<T, Problem> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let mut path = String::new();
        for segment in error.path() {
            match segment {
                Segment::Seq { index } => path.push_str(&format!("/{index}")),
                Segment::Map { key } => path.push_str(&format!("/{}", escaped(key))),
                // Beyond these nothing is known of the place.
                Segment::Enum { .. } | Segment::Unknown => break,
            }
        }
        let text = format!("the request is not as expected: {}", error.inner());
        problem(Shape, path, text)
    })
}

impl Race {
    fn check(&self, checker: &mut Checker) {
        checker.require(!self.variants.is_empty(), Missing, "variants", || {
            "`variants` is empty".into()
        });
        let slices = SHORTEST_SLICE_NS..=LONGEST_SLICE_NS;
        checker.require(slices.contains(&self.slice_ns), Range, "slice_ns", || {
            format!("`slice_ns` must lie between {SHORTEST_SLICE_NS} and {LONGEST_SLICE_NS} ns")
        });
        checker.require(self.executions > 0, Range, "executions", || {
            "`executions` must be at least 1".into()
        });
        let (first, last) = self.ports;
        checker.require(0 < first && first <= last, Range, "ports", || {
            "`ports` must be [first, last] with 0 < first <= last".into()
        });
        checker.each("counters", &self.counters, |checker, name| {
            checker.require(COUNTERS.contains(&name.as_str()), Unknown, "", || {
                format!("no counter is called {name:?}; there are {COUNTERS:?}")
            });
        });
        checker.at("variants", |checker| {
            let mut names = BTreeSet::new();
            for (index, variant) in self.variants.iter().enumerate() {
                checker.at(index, |checker| {
                    checker.require(names.insert(&variant.name), Conflict, "name", || {
                        format!("two variants are called {:?}", variant.name)
                    });
                    variant.check(checker);
                    variant.check_mode(self.mode, checker);
                    let inherits = variant.program.output == Output::Inherit;
                    let given = self.inherit_fd.is_some();
                    checker.require(!inherits || given, Missing, "program", || {
                        "`output` \"inherit\" needs `inherit_fd`".into()
                    });
                });
            }
        });
    }
}

impl DriveRequest {
    fn check(&self, checker: &mut Checker) {
        let address = self.address;
        checker.require(address.ip().is_loopback(), Range, "address", || {
            format!("`address` {address} is not of this machine (loopback)")
        });
        check_cpus(&self.cpus, checker);
        checker.at("drive", |checker| self.drive.check(checker));
    }
}

fn check_cpus(cpus: &Option<Vec<usize>>, checker: &mut Checker) {
    let empty = cpus.as_ref().is_some_and(Vec::is_empty);
    checker.require(!empty, Missing, "cpus", || "`cpus` is empty".into());
}

/// A regular expression, where there is one.
fn check_pattern(checker: &mut Checker, key: &str, pattern: &Option<String>) {
    let Some(pattern) = pattern else { return };
    if let Err(error) = regex_lite::Regex::new(pattern) {
        checker.require(false, Range, key, || {
            format!("`{key}`: {pattern:?} is not a usable regular expression: {error}")
        });
    }
}

impl Variant {
    fn check(&self, checker: &mut Checker) {
        checker.at("program", |checker| self.program.check(checker));
        checker.each("prepare", &self.prepare, |checker, each| {
            each.check(checker)
        });
        checker.each("cleanup", &self.cleanup, |checker, each| {
            each.check(checker)
        });
        checker.each("preload", &self.preload, |checker, each| {
            each.check(checker)
        });
        check_pattern(checker, "score_pattern", &self.score_pattern);
        check_pattern(checker, "operations_pattern", &self.operations_pattern);
        checker.each("scores", &self.scores, |checker, each| {
            check_pattern(checker, "pattern", &Some(each.pattern.clone()));
        });
        let twice = self.report_output && self.report_file.is_some();
        checker.require(!twice, Conflict, "report_output", || {
            "`report_output` is told instead of a `report_file`".into()
        });
        match &self.load {
            None => {
                for (key, there) in [
                    ("ready", self.ready.is_some()),
                    ("preload", !self.preload.is_empty()),
                ] {
                    checker.require(!there, Conflict, key, || {
                        format!("`{key}` is for servers, which have a `load`")
                    });
                }
            }
            Some(load) => {
                checker.at("load", |checker| load.check(checker));
                self.check_server(load, checker);
            }
        }
    }

    fn check_server(&self, load: &Load, checker: &mut Checker) {
        let ready = self.ready_output();
        checker.at("ready", |checker| check_pattern(checker, "output", &ready));
        for (key, there) in [
            ("operations", self.operations.is_some()),
            ("operations_pattern", self.operations_pattern.is_some()),
        ] {
            checker.require(!there, Conflict, key, || {
                "the operations of a server are those of its `load`".into()
            });
        }
        let scored = self.score_pattern.is_some() && load.process.is_none();
        checker.require(!scored, Conflict, "score_pattern", || {
            "`score_pattern` is for programs and load generators".into()
        });
        let listens = self.program.mentions("{port}");
        let driven = load.drive.is_some() || self.preload.iter().any(|each| each.drive.is_some());
        checker.require(listens || !driven, Missing, "program", || {
            "a server that is driven needs `{port}` in its command".into()
        });
        let known = listens || driven || ready.is_some();
        checker.require(known, Missing, "program", || {
            "a server without `{port}` needs `ready` with `output`".into()
        });
    }

    fn check_mode(&self, mode: Mode, checker: &mut Checker) {
        match (mode, self.drive()) {
            (Mode::Driven, None) => checker.require(false, Missing, "load", || {
                "mode \"driven\" needs a `load` with a `drive`".into()
            }),
            (Mode::Interleaved, Some(_)) => checker.require(false, Conflict, "load", || {
                "a `drive` is for mode \"driven\" or \"alternating\"".into()
            }),
            _ => {}
        }
    }
}

impl Load {
    fn check(&self, checker: &mut Checker) {
        match (&self.process, &self.drive) {
            (Some(process), None) => checker.at("process", |checker| process.check(checker)),
            (None, Some(drive)) => checker.at("drive", |checker| drive.check(checker)),
            _ => checker.require(false, Conflict, "", || {
                "`load` must have either `process` or `drive`".into()
            }),
        }
        check_cpus(&self.cpus, checker);
        check_pattern(checker, "operations_pattern", &self.operations_pattern);
    }
}

impl Preload {
    fn check(&self, checker: &mut Checker) {
        match &self.drive {
            Some(drive) => checker.at("drive", |checker| drive.check(checker)),
            None => self.process.check(checker),
        }
    }
}

impl Process {
    fn check(&self, checker: &mut Checker) {
        let named = self.argv.first().is_some_and(|name| !name.is_empty());
        checker.require(named, Missing, "argv", || "`argv` names no program".into());
        let env = self.env.iter().flat_map(|(key, value)| [key, value]);
        let paths = [&self.cwd, &self.stdin, &self.stdout, &self.stderr];
        let mut texts = self
            .argv
            .iter()
            .chain(env)
            .chain(paths.into_iter().flatten());
        let nul = texts.any(|text| text.contains('\0'));
        checker.require(!nul, Range, "", || "holds a NUL byte".into());
        let mut names = self.env.keys();
        let impossible = names.any(|key| key.is_empty() || key.contains('='));
        checker.require(!impossible, Range, "env", || {
            "`env` has an impossible name".into()
        });
        let absolute = |path: &String| path.starts_with('/') && !path.contains('\0');
        checker.require(
            self.root.as_ref().is_none_or(absolute),
            Range,
            "root",
            || "`root` must be an absolute path".into(),
        );
        check_cpus(&self.cpus, checker);
    }
}

#[cfg(test)]
mod tests;
