//! The protocol as JSON Schema, made from the types themselves. It is kept as `schema.json`, which
//! other languages check their types against: in the program it would be a fifth of its size.

use crate::followed::Followed;
use crate::records::{Probe, Processor, Record};
use crate::request::{DriveRequest, Exec, Race, Verb};
use crate::Problem;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One request to be checked.
#[derive(Deserialize, JsonSchema)]
pub struct Question {
    pub verb: Verb,
    pub request: Value,
}

/// What is wrong with one request; nothing where it can be carried out.
#[derive(Serialize, JsonSchema)]
pub struct Answer {
    pub problems: Vec<Problem>,
}

/// Everything that is read and written, by what it is for.
#[derive(Serialize)]
struct Protocol {
    race: Schema,
    exec: Schema,
    drive: Schema,
    record: Schema,
    probe: Schema,
    processor: Schema,
    followed: Schema,
    question: Schema,
    answer: Schema,
}

/// The schemas of requests (as they are read) and of records (as they are written).
pub fn text() -> String {
    let protocol = Protocol {
        race: read::<Race>(),
        exec: read::<Exec>(),
        drive: read::<DriveRequest>(),
        record: written::<Record>(),
        probe: written::<Probe>(),
        processor: written::<Processor>(),
        followed: written::<Followed>(),
        question: read::<Question>(),
        answer: written::<Answer>(),
    };
    format!("{:#}", serde_json::json!(protocol))
}

fn read<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    settings.into_generator().into_root_schema_for::<T>()
}

fn written<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<T>()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_file_is_that_of_the_types() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/schema.json");
        let kept = std::fs::read_to_string(file).unwrap_or_default();
        assert!(
            kept.trim_end() == super::text(),
            "`make schema` writes protocol/schema.json anew, when the types have changed"
        );
    }
}
