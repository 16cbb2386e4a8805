//! Which functions hold places of a program's file: by its symbols, its table for unwinding, and its
//! debug information, also where that is a file of its own.

use crate::units::{endian_of, mapped, section};
use crate::{bytes_of, Texts};
use addr2line::{demangle_auto, Context};
use gimli::{BaseAddresses, EhFrame, EhFrameHdr, EndianSlice, RunTimeEndian, UnwindSection};
use object::read::{File, Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const LONGEST_NAME: usize = 4 << 10;
const MOST_FRAMES: usize = 64;
/// Where distributions put debug information.
const DEBUG_ROOT: &str = "/usr/lib/debug";

type Slice<'data> = EndianSlice<'data, RunTimeEndian>;

/// `path` in hexadecimal digits; `places` are offsets in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    path: String,
    places: Vec<u64>,
}

/// Names stand once in `texts`, and are referred to by their places there.
#[derive(Default, Serialize)]
pub(crate) struct Answer {
    texts: Vec<String>,
    places: Vec<Place>,
    damaged: Option<String>,
}

/// What lies at a place: the function that has a symbol, where it begins (as an address), how far
/// into it the place is and how large it is, and the functions that were inlined there, the innermost
/// first, with the line of that; and the source whose compilation made it.
#[derive(Default, Serialize)]
struct Place {
    function: Option<usize>,
    start: Option<u64>,
    within: Option<u64>,
    size: Option<u64>,
    inlined: Vec<usize>,
    file: Option<usize>,
    line: Option<u32>,
    unit: Option<usize>,
}

/// The functions at places of a file; `damaged` says why there are none.
///
/// # Errors
/// What is wrong with the question.
pub fn located(question: &str) -> Result<String, String> {
    let asked: Question = serde_json::from_str(question).map_err(|error| error.to_string())?;
    let path = bytes_of(&asked.path).ok_or("that is no string of hexadecimal digits")?;
    let answer = of_path(&path, &asked.places).unwrap_or_else(|why| Answer {
        damaged: Some(why),
        ..Answer::default()
    });
    serde_json::to_string(&answer).map_err(|error| error.to_string())
}

fn of_path(path: &[u8], places: &[u64]) -> Result<Answer, String> {
    let data = mapped(path)?;
    let file = File::parse(&*data).map_err(|error| error.to_string())?;
    let apart = debug_file(Path::new(OsStr::from_bytes(path)), &file);
    let apart = apart.and_then(|path| mapped(path.as_os_str().as_bytes()).ok());
    let debug = apart.as_deref().and_then(|data| File::parse(data).ok());
    of_files(&file, debug.as_ref(), places)
}

/// Where the file says that its debug information is, if it is there: by its build, or by a name.
fn debug_file(path: &Path, file: &File) -> Option<PathBuf> {
    if file.section_by_name(".debug_info").is_some() {
        return None;
    }
    let by_build = file.build_id().ok().flatten().filter(|id| id.len() > 1);
    let by_build = by_build.map(|id| {
        let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        Path::new(DEBUG_ROOT).join(format!(".build-id/{}/{}.debug", &digits[..2], &digits[2..]))
    });
    let (named, _) = file.gnu_debuglink().ok().flatten().unwrap_or_default();
    let name = Path::new(OsStr::from_bytes(named)).file_name();
    let real = path.canonicalize().ok()?;
    let folder = real.parent()?;
    let below = folder.strip_prefix("/").unwrap_or(folder);
    let by_name = name.map(|name| {
        [
            folder.join(name),
            folder.join(".debug").join(name),
            Path::new(DEBUG_ROOT).join(below).join(name),
        ]
    });
    let mut found = by_build.into_iter().chain(by_name.into_iter().flatten());
    found.find(|path| path.is_file() && *path != real)
}

pub(crate) fn of_files<'data>(
    file: &File<'data>,
    debug: Option<&File<'data>>,
    places: &[u64],
) -> Result<Answer, String> {
    let endian = endian_of(file);
    let told = debug.unwrap_or(file);
    let sections = gimli::DwarfSections::load(|id| section(told, id))?;
    let dwarf = sections.borrow(|section| EndianSlice::new(&section.data, endian));
    // What is damaged has no lines; its symbols are told all the same.
    let lines = Context::from_dwarf(dwarf).ok();
    let symbols = Symbols::of(file, debug);
    let unwinding = Unwinding::of(file, endian);
    let mut texts = Texts::default();
    let places = places.iter().map(|&offset| {
        let Some(address) = address_of(file, offset) else {
            return Place::default();
        };
        let bounds = unwinding.as_ref().and_then(|table| table.bounds(address));
        let symbol = symbols.at(address, bounds);
        let sized = symbol.filter(|symbol| symbol.1 > 0);
        let bounds = sized
            .map(|(start, size, _)| (start, start.saturating_add(size)))
            .or(bounds);
        let start = bounds.map(|it| it.0).or(symbol.map(|symbol| symbol.0));
        let mut place = Place {
            function: symbol.map(|symbol| demangled(&mut texts, symbol.2)),
            start,
            within: start.map(|start| address.saturating_sub(start)),
            size: bounds.map(|(start, end)| end.saturating_sub(start)),
            ..Place::default()
        };
        if let Some(lines) = &lines {
            // Whoever walks into damaged information has seen as much as there is.
            let _ = add_lines(lines, address, &mut texts, &mut place);
        }
        place
    });
    let places = places.collect();
    Ok(Answer {
        texts: texts.all,
        places,
        damaged: None,
    })
}

fn address_of(file: &File, offset: u64) -> Option<u64> {
    file.segments().find_map(|segment| {
        let (at, size) = segment.file_range();
        let within = offset.checked_sub(at).filter(|within| *within < size)?;
        segment.address().checked_add(within)
    })
}

fn add_lines(
    lines: &Context<Slice>,
    address: u64,
    texts: &mut Texts,
    place: &mut Place,
) -> Result<(), gimli::Error> {
    let mut frames = lines.find_frames(address).skip_all_loads()?;
    while let Some(frame) = frames.next()? {
        if let Some(name) = frame
            .function
            .and_then(|function| function.raw_name().ok().map(Cow::into_owned))
        {
            place.inlined.push(demangled(texts, &name));
        }
        if let Some(location) = frame.location.filter(|_| place.line.is_none()) {
            place.file = location.file.map(|file| texts.place(file));
            place.line = location.line;
        }
        if place.inlined.len() >= MOST_FRAMES {
            break;
        }
    }
    let unit = lines.find_dwarf_and_unit(address).skip_all_loads();
    place.unit = unit.and_then(|unit| Some(texts.place(&source_of(unit.unit)?)));
    Ok(())
}

/// The path of a compile unit; none of what a link generated (`<artificial>`).
fn source_of(unit: &gimli::Unit<Slice>) -> Option<String> {
    let name = unit.name?.to_string_lossy().into_owned();
    let folder = unit
        .comp_dir
        .map(|folder| folder.to_string_lossy().into_owned());
    let path = Path::new(folder.as_deref().unwrap_or("")).join(&name);
    (!name.starts_with('<')).then(|| path.to_string_lossy().into_owned())
}

fn function<'data>(symbol: &impl ObjectSymbol<'data>) -> Option<(u64, u64, &'data str)> {
    let is_code = symbol.kind() == SymbolKind::Text && symbol.is_definition();
    let name = symbol
        .name()
        .ok()
        .filter(|name| is_code && !name.is_empty());
    name.map(|name| (symbol.address(), symbol.size(), name))
}

/// Functions by their start, with their sizes (0: not told) and names.
struct Symbols<'data>(Vec<(u64, u64, &'data str)>);

impl<'data> Symbols<'data> {
    fn of(file: &File<'data>, debug: Option<&File<'data>>) -> Symbols<'data> {
        let mut found: Vec<(u64, u64, &str)> = Vec::new();
        for file in debug.into_iter().chain([file]) {
            found.extend(file.symbols().filter_map(|symbol| function(&symbol)));
        }
        found.extend(
            file.dynamic_symbols()
                .filter_map(|symbol| function(&symbol)),
        );
        for section in file.sections() {
            let name = section.name().unwrap_or_default();
            if name.starts_with(".plt") {
                found.push((section.address(), section.size(), "(calls of libraries)"));
            }
        }
        // Of several names the first in its table, which is the same in each file.
        found.sort_by_key(|symbol| symbol.0);
        Symbols(found)
    }

    /// The function that holds an address; `bounds` are those by the other table.
    fn at(&self, address: u64, bounds: Option<(u64, u64)>) -> Option<(u64, u64, &'data str)> {
        let end = self.0.partition_point(|symbol| symbol.0 <= address);
        let last = self.0[..end].last()?.0;
        let first = self.0.partition_point(|symbol| symbol.0 < last);
        let holds = |symbol: &&(u64, u64, &str)| symbol.1 == 0 || address - symbol.0 < symbol.1;
        let found = self.0[first..end].iter().find(holds)?;
        let within = bounds.is_none_or(|(start, _)| start <= found.0 || found.1 > 0);
        within.then_some(*found)
    }
}

/// The table by which a stack is unwound: where functions begin and end, also where no name is left.
struct Unwinding<'data> {
    header: gimli::ParsedEhFrameHdr<Slice<'data>>,
    frames: EhFrame<Slice<'data>>,
    bases: BaseAddresses,
}

impl<'data> Unwinding<'data> {
    fn of(file: &File<'data>, endian: RunTimeEndian) -> Option<Unwinding<'data>> {
        let (header, frames) = (
            file.section_by_name(".eh_frame_hdr")?,
            file.section_by_name(".eh_frame")?,
        );
        let bases = BaseAddresses::default()
            .set_eh_frame_hdr(header.address())
            .set_eh_frame(frames.address());
        let size = if file.is_64() { 8 } else { 4 };
        let header = EhFrameHdr::new(header.data().ok()?, endian);
        Some(Unwinding {
            header: header.parse(&bases, size).ok()?,
            frames: EhFrame::new(frames.data().ok()?, endian),
            bases,
        })
    }

    fn bounds(&self, address: u64) -> Option<(u64, u64)> {
        let table = self.header.table()?;
        let entry = table
            .fde_for_address(&self.frames, &self.bases, address, EhFrame::cie_from_offset)
            .ok()?;
        Some((entry.initial_address(), entry.end_address()))
    }
}

fn demangled(texts: &mut Texts, name: &str) -> usize {
    let short = name.len() <= LONGEST_NAME;
    let plain = if short {
        demangle_auto(Cow::Borrowed(name), None)
    } else {
        Cow::Borrowed("(a long name)")
    };
    texts.place(&plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_question_is_refused() {
        for question in [r#"{"path": "0", "places": []}"#, r#"{"path": "00"}"#, "["] {
            assert!(located(question).is_err(), "{question}");
        }
    }

    #[test]
    fn what_is_no_program_says_why() {
        // "/dev/null"
        let said = located(r#"{"path": "2f6465762f6e756c6c", "places": [1]}"#).unwrap();
        assert!(said.contains("no file"), "{said}");
    }

    #[test]
    fn a_function_of_this_program_is_found_by_its_place() {
        let path = std::env::current_exe().unwrap();
        let data = mapped(path.as_os_str().as_bytes()).unwrap();
        let file = File::parse(&*data).unwrap();
        let own = file
            .symbols()
            .find(|it| it.name().is_ok_and(|name| name.contains("locate7located")));
        let address = own.unwrap().address();
        let segment = file
            .segments()
            .find(|it| it.address() <= address && address - it.address() < it.file_range().1);
        let segment = segment.unwrap();
        let offset = address - segment.address() + segment.file_range().0;
        let answer = of_files(&file, None, &[offset, u64::MAX]).unwrap();
        let place = &answer.places[0];
        assert!(answer.texts[place.function.unwrap()].contains("locate::located"));
        assert_eq!(place.start, Some(address));
        assert!(answer.texts[place.file.unwrap()].ends_with("locate.rs") && place.line.is_some());
        assert!(answer.places[1].function.is_none());
    }
}
