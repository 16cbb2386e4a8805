//! What each compile unit says of itself: the first entry of its tree, and nothing below that.

use crate::{bytes_of, Texts};
use gimli::{
    AttributeValue, DebugStrOffsetsBase, Dwarf, DwarfFileType, EndianSlice, Reader, ReaderOffset,
    Relocate, RelocateReader, RunTimeEndian, SectionId, UnitHeader,
};
use object::read::{CompressionFormat, RelocationMap};
use object::{File, Object, ObjectKind, ObjectSection};
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

const MOST_UNITS: usize = 200_000;
const LONGEST_TEXT: usize = 64 << 10;
const MOST_TEXT_BYTES: usize = 256 << 20;
/// Debug information compresses to a fifth or so.
const MOST_PER_COMPRESSED_BYTE: u64 = 100;
const MOST_UNPACKED_BYTES: u64 = 1 << 30;

/// Hexadecimal digits: the path of a file, or its content.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
enum Question {
    Path(String),
    Content(String),
}

/// Units refer to `texts` by their places, so that each stands there once.
#[derive(Default, Serialize)]
pub(crate) struct Answer {
    texts: Vec<String>,
    units: Vec<Unit>,
    damaged: Option<String>,
}

#[derive(Serialize)]
struct Unit {
    producer: usize,
    name: usize,
    folder: usize,
    language: Option<u64>,
    /// The rest of it is in a file of its own, and so is the producer.
    split: bool,
}

/// The compile units of a program, a library or an object; `damaged` says why there are none.
///
/// # Errors
/// What is wrong with the question.
pub fn units_of(question: &str) -> Result<String, String> {
    let asked: Question = serde_json::from_str(question).map_err(|error| error.to_string())?;
    let (Question::Path(digits) | Question::Content(digits)) = &asked;
    let bytes = bytes_of(digits).ok_or("that is no string of hexadecimal digits")?;
    let read = match asked {
        Question::Path(_) => mapped(&bytes).and_then(|data| of_bytes(&data)),
        Question::Content(_) => of_bytes(&bytes),
    };
    let answer = read.unwrap_or_else(|why| Answer {
        damaged: Some(why),
        ..Answer::default()
    });
    serde_json::to_string(&answer).map_err(|error| error.to_string())
}

/// A file that somebody else made, whole.
pub(crate) fn mapped(path: &[u8]) -> Result<memmap2::Mmap, String> {
    // Nobody waits at a pipe.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(OsStr::from_bytes(path), flags, Mode::empty())
        .map_err(|error| error.to_string())?;
    let file = std::fs::File::from(file);
    let about = file.metadata().map_err(|error| error.to_string())?;
    if !about.is_file() || about.len() == 0 {
        return Err("it is no file with anything in it".into());
    }
    // SAFETY: plain bytes are read. Who cuts the file off meanwhile ends this process (SIGBUS),
    // which does nothing else.
    unsafe { memmap2::Mmap::map(&file) }.map_err(|error| error.to_string())
}

/// What the linker would have done with an object's sections; nothing in what was linked.
#[derive(Debug, Default)]
struct Relocations(RelocationMap);

impl Relocate for &Relocations {
    fn relocate_address(&self, offset: usize, value: u64) -> gimli::Result<u64> {
        Ok(self.0.relocate(offset as u64, value))
    }

    fn relocate_offset(&self, offset: usize, value: usize) -> gimli::Result<usize> {
        <usize as ReaderOffset>::from_u64(self.0.relocate(offset as u64, value as u64))
    }
}

#[derive(Default)]
pub(crate) struct Section<'data> {
    pub(crate) data: Cow<'data, [u8]>,
    relocations: Relocations,
}

type Slice<'data> = RelocateReader<EndianSlice<'data, RunTimeEndian>, &'data Relocations>;

pub(crate) fn endian_of(file: &File) -> RunTimeEndian {
    if file.is_little_endian() {
        RunTimeEndian::Little
    } else {
        RunTimeEndian::Big
    }
}

pub(crate) fn of_bytes(data: &[u8]) -> Result<Answer, String> {
    let file = File::parse(data).map_err(|error| error.to_string())?;
    let endian = endian_of(&file);
    let sections = gimli::DwarfSections::load(|id| {
        // The others are none of their business.
        if OF_UNITS.contains(&id) {
            section(&file, id)
        } else {
            Ok(Section::default())
        }
    })?;
    let dwarf = sections.borrow(|section| {
        RelocateReader::new(
            EndianSlice::new(&section.data, endian),
            &section.relocations,
        )
    });
    let is_object = file.kind() == ObjectKind::Relocatable;
    let mut found = Found::default();
    let mut headers = dwarf.units();
    while let Some(header) = headers.next().map_err(damage)? {
        found.read(&dwarf, &header, is_object).map_err(damage)?;
        if found.units.len() > MOST_UNITS {
            return Err(format!("it has more than {MOST_UNITS} compile units"));
        }
        if found.texts.bytes > MOST_TEXT_BYTES {
            return Err("the texts of its units are longer than any that are read".into());
        }
    }
    Ok(Answer {
        texts: found.texts.all,
        units: found.units,
        damaged: None,
    })
}

fn damage(error: gimli::Error) -> String {
    match error {
        gimli::Error::UnknownVersion(version) => {
            format!("its debug information is of version {version}, which is not known")
        }
        other => format!("its debug information is damaged: {other}"),
    }
}

/// Those that first entries refer to.
const OF_UNITS: [SectionId; 5] = [
    SectionId::DebugInfo,
    SectionId::DebugAbbrev,
    SectionId::DebugStr,
    SectionId::DebugLineStr,
    SectionId::DebugStrOffsets,
];

/// A section of debug information, unpacked; empty where there is none.
pub(crate) fn section<'data>(file: &File<'data>, id: SectionId) -> Result<Section<'data>, String> {
    let Some(section) = file.section_by_name(id.name()) else {
        return Ok(Section::default());
    };
    let told = |error: object::Error| format!("{} of it: {error}", id.name());
    let packed = section.compressed_data().map_err(told)?;
    let most = MOST_UNPACKED_BYTES.min(packed.data.len() as u64 * MOST_PER_COMPRESSED_BYTE);
    if packed.format != CompressionFormat::None && packed.uncompressed_size > most {
        return Err(format!(
            "{} of it is larger than any that is read",
            id.name()
        ));
    }
    Ok(Section {
        data: packed.decompress().map_err(told)?,
        relocations: Relocations(section.relocation_map().map_err(told)?),
    })
}

#[derive(Default)]
struct Found {
    texts: Texts,
    units: Vec<Unit>,
}

impl Found {
    /// Takes a unit; nothing of what is no compile unit, as types and what several units share.
    fn read(
        &mut self,
        dwarf: &Dwarf<Slice>,
        header: &UnitHeader<Slice>,
        is_object: bool,
    ) -> gimli::Result<()> {
        let abbreviations = dwarf.abbreviations(header)?;
        let mut entries = header.entries_raw(&abbreviations, None)?;
        let Some(entry) = entries.read_abbreviation()? else {
            return Ok(());
        };
        let skeleton = entry.tag() == gimli::DW_TAG_skeleton_unit && !is_object;
        if entry.tag() != gimli::DW_TAG_compile_unit && !skeleton {
            return Ok(());
        }
        let encoding = header.encoding();
        let mut base =
            DebugStrOffsetsBase::default_for_encoding_and_file(encoding, DwarfFileType::Main);
        let (mut producer, mut name, mut folder, mut split) = (None, None, None, None);
        let mut language = None;
        for specification in entry.attributes() {
            let value = entries.read_attribute(*specification)?.value();
            match specification.name() {
                gimli::DW_AT_producer => producer = Some(value),
                gimli::DW_AT_name => name = Some(value),
                gimli::DW_AT_comp_dir => folder = Some(value),
                gimli::DW_AT_dwo_name | gimli::DW_AT_GNU_dwo_name => split = Some(value),
                gimli::DW_AT_language => {
                    language = match value {
                        AttributeValue::Language(language) => Some(language.0.into()),
                        other => other.udata_value(),
                    }
                }
                gimli::DW_AT_str_offsets_base => {
                    if let AttributeValue::DebugStrOffsetsBase(at) = value {
                        base = at;
                    }
                }
                _ => {}
            }
        }
        // The base may stand behind what it is of.
        let mut text = |value: Option<AttributeValue<Slice>>| {
            let said = value.and_then(|value| text_of(dwarf, encoding, base, value));
            self.texts.place(&said.unwrap_or_default())
        };
        let (producer, folder) = (text(producer), text(folder));
        let (own, named) = (text(name), text(split.clone()));
        let empty = |place: usize| self.texts.all[place].is_empty();
        let (name, split) = (
            if empty(own) { named } else { own },
            split.is_some() && empty(producer),
        );
        self.units.push(Unit {
            producer,
            name,
            folder,
            language,
            split,
        });
        Ok(())
    }
}

/// None for what is no text, leads nowhere, or has no end.
fn text_of(
    dwarf: &Dwarf<Slice>,
    encoding: gimli::Encoding,
    base: DebugStrOffsetsBase,
    value: AttributeValue<Slice>,
) -> Option<String> {
    let found = match value {
        AttributeValue::String(text) => text,
        AttributeValue::DebugStrRef(at) => dwarf.debug_str.get_str(at).ok()?,
        AttributeValue::DebugLineStrRef(at) => dwarf.debug_line_str.get_str(at).ok()?,
        AttributeValue::DebugStrOffsetsIndex(index) => {
            let offsets = &dwarf.debug_str_offsets;
            let at = offsets.get_str_offset(encoding.format, base, index).ok()?;
            dwarf.debug_str.get_str(at).ok()?
        }
        _ => return None,
    };
    if found.len() > LONGEST_TEXT {
        return None;
    }
    Some(found.to_string_lossy().ok()?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn damaged(question: &str) -> String {
        let said = units_of(question).unwrap();
        serde_json::from_str::<serde_json::Value>(&said).unwrap()["damaged"].to_string()
    }

    #[test]
    fn what_is_no_file_or_no_program_says_why() {
        // "/" and "/dev/null", which have no content, and four bytes that begin an ELF file.
        assert!(damaged(r#"{"path": "2f"}"#).contains("no file"));
        assert!(damaged(r#"{"path": "2f6465762f6e756c6c"}"#).contains("no file"));
        assert!(damaged(r#"{"path": "2f6e6f6e65"}"#).contains("No such file"));
        assert!(damaged(r#"{"content": "7f454c46"}"#).contains("Could not read"));
    }

    #[test]
    fn what_is_no_question_is_refused() {
        for question in [r#"{"content": "0"}"#, r#"{"other": ""}"#, "{}", "["] {
            assert!(units_of(question).is_err(), "{question}");
        }
    }

    #[test]
    fn this_program_has_units() {
        let path = std::env::current_exe().unwrap();
        let digits: String = path
            .as_os_str()
            .as_bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let said = units_of(&format!(r#"{{"path": "{digits}"}}"#)).unwrap();
        assert!(
            said.contains("rustc version") && said.contains(r#""damaged":null"#),
            "{said}"
        );
    }
}
