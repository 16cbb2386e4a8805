//! What must hold for a request; the text of a refusal names the key.

use crate::request::{
    DriveRequest, Mode, Output, Process, Race, Request, Variant, Verb, COUNTERS, SCHEMA,
};
use std::collections::BTreeSet;

impl Request {
    pub fn parse(verb: Verb, bytes: &[u8]) -> Result<Request, String> {
        let wrong = |error: serde_json::Error| format!("the request is not as expected: {error}");
        let request = match verb {
            Verb::Race => Request::Race(serde_json::from_slice(bytes).map_err(wrong)?),
            Verb::Exec => Request::Exec(serde_json::from_slice(bytes).map_err(wrong)?),
            Verb::Drive => Request::Drive(serde_json::from_slice(bytes).map_err(wrong)?),
        };
        request.check()?;
        Ok(request)
    }

    fn check(&self) -> Result<(), String> {
        let schema = match self {
            Request::Race(race) => race.schema,
            Request::Exec(exec) => exec.schema,
            Request::Drive(drive) => drive.schema,
        };
        if schema != SCHEMA {
            return Err(format!("`schema` is {schema}; this meter knows {SCHEMA}"));
        }
        match self {
            Request::Race(race) => race.check(),
            Request::Exec(exec) => exec.process.check("`process`"),
            Request::Drive(drive) => drive.check(),
        }
    }
}

impl Race {
    fn check(&self) -> Result<(), String> {
        if self.variants.is_empty() {
            return Err("`variants` is empty".into());
        }
        if !(100_000..=60_000_000_000).contains(&self.slice_ns) {
            return Err("`slice_ns` must lie between 100000 and 60000000000".into());
        }
        if self.executions == 0 {
            return Err("`executions` must be at least 1".into());
        }
        if self.ports.0 == 0 || self.ports.0 > self.ports.1 {
            return Err("`ports` must be [first, last] with 0 < first <= last".into());
        }
        let known = COUNTERS;
        if let Some(name) = self
            .counters
            .iter()
            .find(|name| !known.contains(&name.as_str()))
        {
            return Err(format!(
                "no counter is called {name:?}; there are {known:?}"
            ));
        }
        let mut names = BTreeSet::new();
        for variant in &self.variants {
            if !names.insert(&variant.name) {
                return Err(format!("two variants are called {:?}", variant.name));
            }
            variant.check()?;
            variant.check_mode(self.mode)?;
            if variant.program.output == Output::Inherit && self.inherit_fd.is_none() {
                let name = &variant.name;
                return Err(format!(
                    "variant {name:?}: `output` \"inherit\" needs `inherit_fd`"
                ));
            }
        }
        Ok(())
    }
}

impl DriveRequest {
    fn check(&self) -> Result<(), String> {
        if !self.address.ip().is_loopback() {
            let address = self.address;
            return Err(format!(
                "`address` {address} is not of this machine (loopback)"
            ));
        }
        if self.cpus.as_ref().is_some_and(Vec::is_empty) {
            return Err("`cpus` is empty".into());
        }
        self.drive
            .check()
            .map_err(|text| format!("`drive`: {text}"))
    }
}

impl Variant {
    fn check(&self) -> Result<(), String> {
        let name = &self.name;
        let of = |what: &str| format!("variant {name:?}: {what}");
        self.program.check(&of("`program`"))?;
        for process in self.set_up() {
            process.check(&of("a set-up command"))?;
        }
        for drive in self
            .preload
            .iter()
            .filter_map(|preload| preload.drive.as_ref())
        {
            drive
                .check()
                .map_err(|text| of(&format!("`preload`: `drive`: {text}")))?;
        }
        for pattern in [&self.score_pattern, &self.operations_pattern]
            .into_iter()
            .flatten()
        {
            regex_lite::Regex::new(pattern).map_err(|e| of(&format!("{pattern:?}: {e}")))?;
        }
        let Some(load) = &self.load else {
            return if self.ready.is_some() || !self.preload.is_empty() {
                Err(of(
                    "`ready` and `preload` are for servers, which have a `load`",
                ))
            } else {
                Ok(())
            };
        };
        match (&load.process, &load.drive) {
            (Some(process), None) => process.check(&of("`load`"))?,
            (None, Some(drive)) => drive
                .check()
                .map_err(|text| of(&format!("`load`: `drive`: {text}")))?,
            _ => return Err(of("`load` must have either `process` or `drive`")),
        }
        for pattern in [&load.operations_pattern, &self.ready_output()]
            .into_iter()
            .flatten()
        {
            regex_lite::Regex::new(pattern).map_err(|e| of(&format!("{pattern:?}: {e}")))?;
        }
        if self.operations.is_some() || self.operations_pattern.is_some() {
            return Err(of("the operations of a server are those of its `load`"));
        }
        if self.score_pattern.is_some() && load.process.is_none() {
            return Err(of("`score_pattern` is for programs and load generators"));
        }
        let driven = load.drive.is_some() || self.preload.iter().any(|each| each.drive.is_some());
        if driven && !self.program.mentions("{port}") {
            return Err(of("a server that is driven needs `{port}` in its command"));
        }
        if self.ready_output().is_none() && !self.program.mentions("{port}") {
            return Err(of("a server without `{port}` needs `ready` with `output`"));
        }
        Ok(())
    }

    fn check_mode(&self, mode: Mode) -> Result<(), String> {
        let name = &self.name;
        match (mode, self.drive()) {
            (Mode::Driven, None) => Err(format!(
                "variant {name:?}: mode \"driven\" needs a `load` with a `drive`"
            )),
            (Mode::Interleaved, Some(_)) => Err(format!(
                "variant {name:?}: a `drive` is for mode \"driven\" or \"alternating\""
            )),
            _ => Ok(()),
        }
    }
}

impl Process {
    fn check(&self, what: &str) -> Result<(), String> {
        if self.argv.is_empty() || self.argv[0].is_empty() {
            return Err(format!("{what} has no `argv`"));
        }
        let env = self.env.iter().flat_map(|(key, value)| [key, value]);
        let paths = [&self.cwd, &self.stdin, &self.stdout, &self.stderr];
        let mut texts = self
            .argv
            .iter()
            .chain(env)
            .chain(paths.into_iter().flatten());
        if texts.any(|text| text.contains('\0')) {
            return Err(format!("{what} holds a NUL byte"));
        }
        if self
            .env
            .keys()
            .any(|key| key.is_empty() || key.contains('='))
        {
            return Err(format!("{what} has an impossible name in `env`"));
        }
        if self.cpus.as_ref().is_some_and(|cpus| cpus.is_empty()) {
            return Err(format!("{what} has an empty `cpus`"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
