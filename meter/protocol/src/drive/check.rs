//! What must hold for a drive; the text of a refusal names the key.

use super::placeholders::{bytes_of, placeholders, Placeholder};
use super::{Command, Data, Drive, Keys, Pattern, Wanted};

const MOST_CONNECTIONS: usize = 10_000;
const MOST_PIPELINE: u64 = 100_000;
/// What all readers of JSON have exactly.
const MOST_OPERATIONS: u64 = 1 << 53;
const MOST_DATA_BYTES: u64 = 512 << 20;
/// Numbers up to here are exact as floating point, which the patterns compute with.
const MOST_KEYS: u64 = 1 << 53;
const MOST_WIDTH: usize = 64;
const MOST_EXPONENT: f64 = 5.0;

impl Drive {
    /// Says what is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        let within = |name: &str, value: u64, most: u64| {
            let good = (1..=most).contains(&value);
            say(good, || format!("`{name}` must lie between 1 and {most}"))
        };
        say(matches!(self.protocol, 2 | 3), || {
            "`protocol` must be 2 or 3".into()
        })?;
        within(
            "connections",
            self.connections as u64,
            MOST_CONNECTIONS as u64,
        )?;
        within("pipeline", self.pipeline, MOST_PIPELINE)?;
        within("threads", self.threads as u64, self.connections as u64)?;
        if let Some(at_once) = self.at_once {
            within("at_once", at_once as u64, self.connections as u64)?;
            say(self.rate_per_s.is_none(), || {
                "`at_once` is for closed loops, without `rate_per_s`".into()
            })?;
        }
        within("operations", self.operations, MOST_OPERATIONS)?;
        within("deadline_ns", self.deadline_ns, u64::MAX / 2)?;
        let rate = self.rate_per_s.unwrap_or(1.0);
        say(rate.is_finite() && rate > 0.0, || {
            "`rate_per_s` must be above 0".into()
        })?;
        say(self.init.iter().all(|argv| has_name(argv)), || {
            "`init` has a request without a name".into()
        })?;
        if let Some(data) = &self.data {
            data.check()?;
        }
        if let Some((least, most)) = self.expiry_s {
            say(0 < least && least <= most, || {
                "`expiry_s` must be [least, most] with 0 < least <= most".into()
            })?;
        }
        say(!self.commands.is_empty(), || "`commands` is empty".into())?;
        self.commands
            .iter()
            .enumerate()
            .try_for_each(|(index, command)| {
                self.check_command(command)
                    .map_err(|text| format!("`commands[{index}]`: {text}"))
            })
    }

    fn check_command(&self, command: &Command) -> Result<(), String> {
        let named = command.requests().iter().all(|argv| has_name(argv));
        say(named, || "a request has no name".into())?;
        say(command.argv.is_empty() || !command.is_transaction(), || {
            "has both `argv` and `transaction`".into()
        })?;
        say(command.share > 0, || "`share` must be at least 1".into())?;
        if let Some(keys) = &command.keys {
            keys.check()?;
            let senders = self.operations.min(self.connections as u64);
            let enough = keys.pattern != Pattern::Parallel || keys.span() >= senders;
            say(enough, || {
                format!("fewer keys than connections ({senders}) cannot be cut among them")
            })?;
        }
        let keys = self.check_placeholders(command)?;
        self.check_reply(command, keys)
    }

    /// Gives the number of keys in the command.
    fn check_placeholders(&self, command: &Command) -> Result<usize, String> {
        let mut keys = 0;
        for argument in command.requests().iter().flatten() {
            for placeholder in placeholders(argument) {
                match placeholder {
                    Placeholder::Key | Placeholder::Random => {
                        keys += usize::from(placeholder == Placeholder::Key);
                        let known = command.keys.is_some();
                        say(known, || format!("{argument:?} needs `keys`"))?;
                    }
                    Placeholder::Data => {
                        say(self.data.is_some(), || format!("{argument:?} needs `data`"))?;
                        say(keys > 0 || !has_key(command), || {
                            "`{data}` is that of the `{key}` before it; none is".into()
                        })?;
                    }
                    Placeholder::Expiry => say(self.expiry_s.is_some(), || {
                        format!("{argument:?} needs `expiry_s`")
                    })?,
                    Placeholder::Cursor => {
                        say(self.pipeline == 1 && !command.is_transaction(), || {
                            "`{cursor}` is that of the last reply: `pipeline` must be 1".into()
                        })?
                    }
                    Placeholder::Hex(digits) => say(bytes_of(digits).is_some(), || {
                        format!("{argument:?} needs pairs of hexadecimal digits")
                    })?,
                    Placeholder::Script(name) => say(self.scripts.contains_key(name), || {
                        format!("{argument:?}: `scripts` has no {name:?}")
                    })?,
                }
            }
        }
        Ok(keys)
    }

    fn check_reply(&self, command: &Command, keys: usize) -> Result<(), String> {
        let wanted = command.reply.as_ref().map(|demand| demand.wanted());
        say(wanted.is_none_or(|kinds| !kinds.is_empty()), || {
            "`reply` is an empty list".into()
        })?;
        let free = wanted.is_none() && !command.value;
        say(free || !command.is_transaction(), || {
            "`reply` and `value` are not for transactions, whose replies are known".into()
        })?;
        if !command.value {
            return Ok(());
        }
        say(keys == 1 && self.data.is_some(), || {
            "`value` needs `data`, and exactly one `{key}` in `argv`".into()
        })?;
        let string = [Wanted::Bulk, Wanted::Any, Wanted::Nil];
        let possible = |kinds: &[Wanted]| {
            kinds.iter().all(|kind| string.contains(kind)) && kinds != [Wanted::Nil]
        };
        say(wanted.is_none_or(possible), || {
            "a `value` is \"bulk\", or [\"bulk\", \"nil\"] where it may be missing".into()
        })
    }
}

impl Keys {
    fn check(&self) -> Result<(), String> {
        let ordered = self.first <= self.last && self.last < MOST_KEYS;
        say(ordered, || {
            format!("`keys` needs first <= last < {MOST_KEYS}")
        })?;
        say(self.width <= MOST_WIDTH, || {
            format!("`width` must be at most {MOST_WIDTH}")
        })?;
        let gaussian = self.pattern == Pattern::Gaussian;
        let bent = self.center.is_some() || self.deviation.is_some();
        say(gaussian || !bent, || {
            "`center` and `deviation` are for \"gaussian\"".into()
        })?;
        let zipf = self.pattern == Pattern::Zipf;
        say(zipf || self.exponent.is_none(), || {
            "`exponent` is for \"zipf\"".into()
        })?;
        let (first, last) = (self.first as f64, self.last as f64);
        say((first..=last).contains(&self.center()), || {
            "`center` must lie in the range of keys".into()
        })?;
        // Wider ones would be redrawn for ever, and are uniform anyway.
        let deviation = self.deviation();
        say(deviation > 0.0 && deviation <= self.span() as f64, || {
            "`deviation` must be above 0 and at most the number of keys".into()
        })?;
        let exponent = self.exponent();
        say(exponent > 0.0 && exponent <= MOST_EXPONENT, || {
            format!("`exponent` must be above 0 and at most {MOST_EXPONENT}")
        })
    }
}

impl Data {
    fn check(&self) -> Result<(), String> {
        let given = [
            self.size.is_some(),
            self.sizes.is_some(),
            self.weighted.is_some(),
        ];
        say(given.iter().filter(|&&is| is).count() == 1, || {
            "`data` needs one of `size`, `sizes`, `weighted`".into()
        })?;
        let most = || format!("`data` is larger than {MOST_DATA_BYTES} bytes");
        say(self.size.is_none_or(|size| size <= MOST_DATA_BYTES), most)?;
        if let Some((least, largest)) = self.sizes {
            say(least <= largest, || {
                "`sizes` must be [least, most] with least <= most".into()
            })?;
            say(largest <= MOST_DATA_BYTES, most)?;
        }
        let Some(weighted) = &self.weighted else {
            return Ok(());
        };
        let total = weighted
            .iter()
            .try_fold(0u64, |sum, (_, weight)| sum.checked_add(*weight));
        say(total.is_some_and(|total| total > 0), || {
            "`weighted` needs weights with a sum above 0".into()
        })?;
        let sizes = weighted.iter().map(|(size, _)| *size);
        say(sizes.max().is_none_or(|size| size <= MOST_DATA_BYTES), most)
    }
}

fn say(good: bool, text: impl FnOnce() -> String) -> Result<(), String> {
    if good {
        Ok(())
    } else {
        Err(text())
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
mod tests {
    use super::*;
    use serde_json::{json, Value};

    fn refusal(mut change: Value) -> String {
        let mut drive = json!({
            "operations": 10,
            "commands": [{"argv": ["GET", "{key}"], "keys": {"last": 99}}],
            "data": {"size": 32},
        });
        for (key, value) in change.as_object_mut().unwrap() {
            drive[key] = value.take();
        }
        match serde_json::from_value::<Drive>(drive) {
            Ok(drive) => drive.check().err().unwrap_or_default(),
            Err(error) => error.to_string(),
        }
    }

    fn command(command: Value) -> String {
        refusal(json!({ "commands": [command] }))
    }

    #[test]
    fn a_plain_drive_is_good() {
        assert_eq!(refusal(json!({})), "");
        assert_eq!(
            refusal(json!({"data": {"weighted": [[10, 1], [20, 0]]}})),
            ""
        );
    }

    #[test]
    fn wrong_drives_say_what_is_wrong() {
        for (change, part) in [
            (json!({"protocol": 4}), "`protocol`"),
            (json!({"connections": 0}), "`connections`"),
            (json!({"pipeline": 0}), "`pipeline`"),
            (
                json!({"threads": 51}),
                "`threads` must lie between 1 and 50",
            ),
            (
                json!({"at_once": 51}),
                "`at_once` must lie between 1 and 50",
            ),
            (json!({"at_once": 2, "rate_per_s": 9}), "for closed loops"),
            (json!({"operations": 0}), "`operations`"),
            (json!({"rate_per_s": -1}), "`rate_per_s`"),
            (json!({"deadline_ns": 0}), "`deadline_ns`"),
            (json!({"init": [[]]}), "`init`"),
            (json!({"commands": []}), "`commands` is empty"),
            (json!({"expiry_s": [3, 2]}), "`expiry_s`"),
            (json!({"data": {}}), "one of `size`"),
            (
                json!({"data": {"size": 1, "sizes": [1, 2]}}),
                "one of `size`",
            ),
            (json!({"data": {"sizes": [2, 1]}}), "`sizes`"),
            (json!({"data": {"weighted": []}}), "`weighted`"),
            (json!({"data": {"size": 1u64 << 40}}), "larger"),
            (json!({"pipline": 3}), "pipline"),
        ] {
            let text = refusal(change);
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn wrong_commands_say_what_is_wrong() {
        let keyed = |keys: Value| json!({"argv": ["GET", "{key}"], "keys": keys});
        for (spec, part) in [
            (json!({"argv": []}), "no name"),
            (json!({"argv": ["A"], "transaction": [["B"]]}), "both"),
            (json!({"argv": ["A"], "share": 0}), "`share`"),
            (json!({"argv": ["GET", "{key}"]}), "needs `keys`"),
            (json!({"argv": ["A", "{random}"]}), "needs `keys`"),
            (json!({"argv": ["A", "{expiry}"]}), "needs `expiry_s`"),
            (json!({"argv": ["A", "{script:x}"]}), "has no \"x\""),
            (
                json!({"argv": ["A", "{data}", "{key}"], "keys": {"last": 5}}),
                "before it",
            ),
            (keyed(json!({"first": 5, "last": 4})), "first <= last"),
            (keyed(json!({"last": 4, "center": 2})), "gaussian"),
            (keyed(json!({"last": 4, "exponent": 2})), "zipf"),
            (
                keyed(json!({"last": 4, "pattern": "zipf", "exponent": 5.5})),
                "`exponent`",
            ),
            (
                keyed(json!({"last": 4, "pattern": "gaussian", "center": 9})),
                "`center`",
            ),
            (
                keyed(json!({"last": 4, "pattern": "gaussian", "deviation": 0})),
                "`deviation`",
            ),
            (
                keyed(json!({"last": 4, "pattern": "parallel"})),
                "fewer keys",
            ),
            (json!({"argv": ["A"], "reply": []}), "empty list"),
            (json!({"argv": ["A"], "value": true}), "`value` needs"),
            (
                json!({"transaction": [["A"]], "reply": "status"}),
                "not for transactions",
            ),
            (
                json!({"argv": ["GET", "{key}"], "keys": {"last": 5}, "value": true, "reply": "array"}),
                "a `value` is",
            ),
        ] {
            let text = command(spec);
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
