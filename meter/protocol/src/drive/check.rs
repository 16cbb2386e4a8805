//! What must hold for a drive; every mistake has its code and its place.

use super::placeholders::{bytes_of, placeholders, Placeholder};
use super::{
    Command, Data, Drive, Keys, Pattern, Wanted, MOST_CONNECTIONS, MOST_DATA_BYTES,
    MOST_DEADLINE_NS, MOST_EXPONENT, MOST_KEY, MOST_OPERATIONS, MOST_PIPELINE, MOST_THREADS,
    MOST_WIDTH,
};
use crate::problem::{Checker, Problem, ProblemCode};
use ProblemCode::{Conflict, Missing, Range, Unknown};

impl Drive {
    /// Everything that is wrong with it, by itself.
    pub fn problems(&self) -> Vec<Problem> {
        let mut checker = Checker::default();
        self.check(&mut checker);
        checker.found()
    }

    pub(crate) fn check(&self, checker: &mut Checker) {
        self.check_numbers(checker);
        checker.each("init", &self.init, |checker, argv| {
            checker.require(has_name(argv), Missing, "", || {
                "`init` has a request without a name".into()
            });
        });
        if let Some(data) = &self.data {
            checker.at("data", |checker| data.check(checker));
        }
        if let Some((least, most)) = self.expiry_s {
            checker.require(0 < least && least <= most, Range, "expiry_s", || {
                "`expiry_s` must be [least, most] with 0 < least <= most".into()
            });
        }
        checker.require(!self.commands.is_empty(), Missing, "commands", || {
            "`commands` is empty".into()
        });
        checker.each("commands", &self.commands, |checker, command| {
            self.check_command(command, checker)
        });
    }

    fn check_numbers(&self, checker: &mut Checker) {
        let mut within = |name: &str, value: u64, most: u64| {
            checker.require((1..=most).contains(&value), Range, name, || {
                format!("`{name}` must lie between 1 and {most}")
            });
        };
        let connections = self.connections as u64;
        within("connections", connections, MOST_CONNECTIONS as u64);
        within("pipeline", self.pipeline, MOST_PIPELINE);
        let threads = connections.clamp(1, MOST_THREADS as u64);
        within("threads", self.threads as u64, threads);
        if let Some(at_once) = self.at_once {
            within("at_once", at_once as u64, connections.max(1));
        }
        within("operations", self.operations, MOST_OPERATIONS);
        within("deadline_ns", self.deadline_ns, MOST_DEADLINE_NS);
        within("within_ns", self.within_ns, MOST_DEADLINE_NS);
        checker.require(matches!(self.protocol, 2 | 3), Range, "protocol", || {
            "`protocol` must be 2 or 3".into()
        });
        let closed = self.at_once.is_none() || self.rate_per_s.is_none();
        checker.require(closed, Conflict, "at_once", || {
            "`at_once` is for closed loops, without `rate_per_s`".into()
        });
        let rate = self.rate_per_s.unwrap_or(1.0);
        checker.require(rate.is_finite() && rate > 0.0, Range, "rate_per_s", || {
            "`rate_per_s` must be above 0".into()
        });
    }

    fn check_command(&self, command: &Command, checker: &mut Checker) {
        let named = command.requests().iter().all(|argv| has_name(argv));
        checker.require(named, Missing, "", || "a request has no name".into());
        let both = !command.argv.is_empty() && command.is_transaction();
        checker.require(!both, Conflict, "", || {
            "has both `argv` and `transaction`".into()
        });
        checker.require(command.share > 0, Range, "share", || {
            "`share` must be at least 1".into()
        });
        if let Some(keys) = &command.keys {
            checker.at("keys", |checker| {
                keys.check(checker);
                let senders = self.operations.min(self.connections as u64);
                let enough = keys.pattern != Pattern::Parallel || keys.span() >= senders;
                checker.require(enough, Range, "last", || {
                    format!("fewer keys than connections ({senders}) cannot be cut among them")
                });
            });
        }
        let keys = self.check_placeholders(command, checker);
        self.check_reply(command, keys, checker);
    }

    /// Gives the number of keys in the command.
    fn check_placeholders(&self, command: &Command, checker: &mut Checker) -> usize {
        let mut keys = 0;
        let key = match command.is_transaction() {
            true => "transaction",
            false => "argv",
        };
        for argument in command.requests().iter().flatten() {
            for placeholder in placeholders(argument) {
                keys += usize::from(placeholder == Placeholder::Key);
                if let Some((code, text)) = self.refusal(argument, &placeholder, command, keys) {
                    checker.require(false, code, key, || text);
                }
            }
        }
        keys
    }

    /// What is wrong with a placeholder behind so many keys.
    fn refusal(
        &self,
        argument: &str,
        placeholder: &Placeholder,
        command: &Command,
        keys: usize,
    ) -> Option<(ProblemCode, String)> {
        let needs = |what: &str| Some((Missing, format!("{argument:?} needs {what}")));
        match placeholder {
            Placeholder::Key | Placeholder::Random if command.keys.is_none() => needs("`keys`"),
            Placeholder::Data if self.data.is_none() => needs("`data`"),
            Placeholder::Data if keys == 0 && has_key(command) => Some((
                Conflict,
                "`{data}` is that of the `{key}` before it; none is".into(),
            )),
            Placeholder::Expiry if self.expiry_s.is_none() => needs("`expiry_s`"),
            Placeholder::Cursor if self.pipeline != 1 => Some((
                Conflict,
                "`{cursor}` is that of the last reply: `pipeline` must be 1".into(),
            )),
            Placeholder::Cursor if command.is_transaction() => Some((
                Conflict,
                "`{cursor}` is that of the last reply, which a transaction has not".into(),
            )),
            Placeholder::Hex(digits) if bytes_of(digits).is_none() => Some((
                Range,
                format!("{argument:?} needs pairs of hexadecimal digits"),
            )),
            Placeholder::Script(name) if !self.scripts.contains_key(*name) => {
                Some((Unknown, format!("{argument:?}: `scripts` has no {name:?}")))
            }
            _ => None,
        }
    }

    fn check_reply(&self, command: &Command, keys: usize, checker: &mut Checker) {
        let wanted = command.reply.as_ref().map(|demand| demand.wanted());
        let empty = wanted.is_some_and(|kinds| kinds.is_empty());
        checker.require(!empty, Missing, "reply", || {
            "`reply` is an empty list".into()
        });
        let free = wanted.is_none() && !command.value;
        checker.require(free || !command.is_transaction(), Conflict, "", || {
            "`reply` and `value` are not for transactions, whose replies are known".into()
        });
        if !command.value || command.is_transaction() {
            return;
        }
        checker.require(keys == 1 && self.data.is_some(), Missing, "value", || {
            "`value` needs `data`, and exactly one `{key}` in `argv`".into()
        });
        let string = [Wanted::Bulk, Wanted::Any, Wanted::Nil];
        let possible = |kinds: &[Wanted]| {
            kinds.iter().all(|kind| string.contains(kind)) && kinds != [Wanted::Nil]
        };
        checker.require(wanted.is_none_or(possible), Conflict, "reply", || {
            "a `value` is \"bulk\", or [\"bulk\", \"nil\"] where it may be missing".into()
        });
    }
}

impl Keys {
    fn check(&self, checker: &mut Checker) {
        let ordered = self.first <= self.last && self.last <= MOST_KEY;
        checker.require(ordered, Range, "last", || {
            format!("`keys` needs first <= last <= {MOST_KEY}")
        });
        checker.require(self.width <= MOST_WIDTH, Range, "width", || {
            format!("`width` must be at most {MOST_WIDTH}")
        });
        let gaussian = self.pattern == Pattern::Gaussian;
        let zipf = self.pattern == Pattern::Zipf;
        for (key, fits, pattern) in [
            ("center", gaussian || self.center.is_none(), "gaussian"),
            (
                "deviation",
                gaussian || self.deviation.is_none(),
                "gaussian",
            ),
            ("exponent", zipf || self.exponent.is_none(), "zipf"),
        ] {
            checker.require(fits, Conflict, key, || {
                format!("`{key}` is for the pattern {pattern:?}")
            });
        }
        if !ordered {
            return;
        }
        let range = self.first as f64..=self.last as f64;
        checker.require(range.contains(&self.center()), Range, "center", || {
            "`center` must lie in the range of keys".into()
        });
        // Wider ones would be redrawn for ever, and are uniform anyway.
        let deviation = self.deviation();
        let narrow = deviation > 0.0 && deviation <= self.span() as f64;
        checker.require(narrow, Range, "deviation", || {
            "`deviation` must be above 0 and at most the number of keys".into()
        });
        let exponent = self.exponent();
        let possible = exponent > 0.0 && exponent <= MOST_EXPONENT;
        checker.require(possible, Range, "exponent", || {
            format!("`exponent` must be above 0 and at most {MOST_EXPONENT}")
        });
    }
}

impl Data {
    fn check(&self, checker: &mut Checker) {
        let given = [
            self.size.is_some(),
            self.sizes.is_some(),
            self.weighted.is_some(),
        ];
        let one = given.iter().filter(|&&is| is).count() == 1;
        checker.require(one, Conflict, "", || {
            "`data` needs one of `size`, `sizes`, `weighted`".into()
        });
        let mut bounded = |key: &str, bytes: u64| {
            checker.require(bytes <= MOST_DATA_BYTES, Range, key, || {
                format!("`data` is larger than {MOST_DATA_BYTES} bytes")
            });
        };
        let sizes = self.weighted.iter().flatten().map(|(size, _)| *size);
        bounded("size", self.size.unwrap_or(0));
        bounded("sizes", self.sizes.map_or(0, |(_, largest)| largest));
        bounded("weighted", sizes.max().unwrap_or(0));
        if let Some((least, largest)) = self.sizes {
            checker.require(least <= largest, Range, "sizes", || {
                "`sizes` must be [least, most] with least <= most".into()
            });
        }
        let Some(weighted) = &self.weighted else {
            return;
        };
        let total = weighted
            .iter()
            .try_fold(0u64, |sum, (_, weight)| sum.checked_add(*weight));
        checker.require(
            total.is_some_and(|total| total > 0),
            Range,
            "weighted",
            || "`weighted` needs weights with a sum above 0".into(),
        );
    }
}

fn has_name(argv: &[String]) -> bool {
    argv.first().is_some_and(|name| !name.is_empty())
}

fn has_key(command: &Command) -> bool {
    let mut arguments = command.requests().iter().flatten();
    arguments.any(|argument| argument.contains("{key}"))
}

#[cfg(test)]
mod tests;
