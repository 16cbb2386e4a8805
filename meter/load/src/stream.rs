//! The operations of a drive, made ready, and the endless stream of them on one connection. Pure.

use crate::data::Data;
use crate::expect::Expectation;
use crate::keys::KeyStream;
use crate::template::{Source, Template, Values};
use ensign_protocol::drive::{self as spec, Drive};
use ensign_protocol::random::Random;
use sha1::{Digest, Sha1};

/// What all connections of a drive share.
pub(crate) struct Plan {
    pub commands: Vec<Command>,
    pub values: Values,
}

pub(crate) struct Command {
    template: Template,
    /// Of the replies to one operation.
    pub replies: Vec<Expectation>,
    share: u64,
    keys: Option<spec::Keys>,
    /// Its replies begin with the cursor that it sends next.
    pub follows: bool,
}

impl Plan {
    /// Of a checked drive.
    pub(crate) fn new(drive: &Drive) -> Plan {
        let hash = |(name, source): (&String, &String)| (name.clone(), sha1_digits(source));
        let values = Values {
            data: drive.data.as_ref().map(Data::new),
            expiry_s: drive.expiry_s.unwrap_or((0, 0)),
            scripts: drive.scripts.iter().map(hash).collect(),
        };
        let make = |command: &spec::Command| {
            let mut requests = command.requests().to_vec();
            if command.is_transaction() {
                requests.insert(0, vec!["MULTI".into()]);
                requests.push(vec!["EXEC".into()]);
            }
            let template = Template::new(&requests, command.keys.as_ref(), &values);
            Command {
                follows: template.follows(),
                template,
                replies: Expectation::of(command),
                share: command.share,
                keys: command.keys.clone(),
            }
        };
        Plan {
            commands: drive.commands.iter().map(make).collect(),
            values,
        }
    }

    pub(crate) fn data_bytes(&self, key: u64) -> u64 {
        let data = self.values.data.as_ref();
        data.map_or(0, |data| data.size(key) as u64)
    }

    pub(crate) fn write_data(&self, key: u64, out: &mut Vec<u8>) {
        if let Some(data) = &self.values.data {
            data.write(key, out);
        }
    }
}

/// In hexadecimal digits, as Redis names scripts.
pub(crate) fn sha1_digits(source: &str) -> String {
    let hash = Sha1::digest(source.as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What one connection sends: depends on the drive and the connection's number alone.
pub(crate) struct Stream {
    keys: Vec<Option<KeyStream>>,
    random: Random,
    /// The command whose turn it is, and how often still.
    command: usize,
    left: u64,
    pub cursor: u64,
    drawn: Vec<u64>,
}

impl Stream {
    /// For connection `index` of `connections`.
    pub(crate) fn new(plan: &Plan, random: Random, index: usize, connections: usize) -> Stream {
        let keys = |command: &Command| {
            let keys = command.keys.as_ref();
            keys.map(|keys| KeyStream::new(keys, index, connections))
        };
        Stream {
            keys: plan.commands.iter().map(keys).collect(),
            random,
            command: 0,
            left: plan.commands[0].share,
            cursor: 0,
            drawn: Vec::new(),
        }
    }

    /// Appends the next operation; gives the index of its command, and the number of its last key.
    pub(crate) fn next(&mut self, plan: &Plan, out: &mut Vec<u8>) -> (usize, u64) {
        if self.left == 0 {
            self.command = (self.command + 1) % plan.commands.len();
            self.left = plan.commands[self.command].share;
        }
        self.left -= 1;
        let index = self.command;
        let mut source = Source {
            values: &plan.values,
            keys: self.keys[index].as_mut(),
            random: &mut self.random,
            cursor: self.cursor,
            drawn: &mut self.drawn,
        };
        let key = plan.commands[index].template.render(&mut source, out);
        (index, key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    fn plan(commands: Value) -> Plan {
        let drive = json!({"operations": 1, "commands": commands, "scripts": {"one": "return 1"}});
        Plan::new(&serde_json::from_value(drive).unwrap())
    }

    fn sent(plan: &Plan, seed: u64, operations: usize) -> String {
        let mut stream = Stream::new(plan, Random::new(seed), 0, 1);
        let mut out = Vec::new();
        for _ in 0..operations {
            stream.next(plan, &mut out);
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn commands_are_dealt_by_their_shares() {
        let plan = plan(json!([{"argv": ["A"], "share": 2}, {"argv": ["B"]}]));
        let names: String = sent(&plan, 1, 8)
            .chars()
            .filter(|letter| letter.is_alphabetic())
            .collect();
        assert_eq!(names, "AABAABAA");
    }

    #[test]
    fn equal_seeds_give_equal_requests_and_others_do_not() {
        let plan = plan(json!([{"argv": ["GET", "{key}"], "keys": {"last": 9999}}]));
        assert_eq!(sent(&plan, 1, 20), sent(&plan, 1, 20));
        assert_ne!(sent(&plan, 1, 20), sent(&plan, 2, 20));
    }

    #[test]
    fn transactions_are_wrapped_and_scripts_hashed() {
        let plan = plan(json!([{"transaction": [["EVALSHA", "{script:one}", "0"]]}]));
        let text = sent(&plan, 1, 1);
        assert!(text.starts_with("*1\r\n$5\r\nMULTI\r\n*3\r\n"));
        assert!(text.ends_with("*1\r\n$4\r\nEXEC\r\n"));
        assert!(text.contains("e0e1f9fabfc9d4800c877a703b823ac0578ff8db"));
        assert_eq!(plan.commands[0].replies.len(), 3);
    }
}
