//! Machine code of x86 in words, as people read it.

use crate::bytes_of;
use iced_x86::{
    Decoder, DecoderOptions, FormatMnemonicOptions, Formatter, Instruction, IntelFormatter,
    MemorySizeOptions,
};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    bits: u32,
    address: u64,
    /// Hexadecimal digits.
    code: String,
}

#[derive(Serialize)]
struct Answer {
    /// Address, bytes, mnemonic with its prefixes, operands.
    instructions: Vec<(u64, usize, String, String)>,
}

/// The instructions of code, one after the other; a byte that begins none is `.byte`.
///
/// # Errors
/// What is wrong with the question.
pub fn disassembled(question: &str) -> Result<String, String> {
    let asked: Question = serde_json::from_str(question).map_err(|error| error.to_string())?;
    if !matches!(asked.bits, 32 | 64) {
        return Err(format!("there is no code of {} bits", asked.bits));
    }
    let code = bytes_of(&asked.code).ok_or("the code is no string of hexadecimal digits")?;
    let instructions = words(asked.bits, asked.address, &code);
    serde_json::to_string(&Answer { instructions }).map_err(|error| error.to_string())
}

pub(crate) fn words(bits: u32, address: u64, code: &[u8]) -> Vec<(u64, usize, String, String)> {
    let mut decoder = Decoder::with_ip(bits, code, address, DecoderOptions::NONE);
    let mut formatter = formatter();
    let mut instruction = Instruction::default();
    let mut found = Vec::new();
    while decoder.can_decode() {
        let (at, ip) = (decoder.position(), decoder.ip());
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            found.push((ip, 1, ".byte".into(), String::new()));
            decoder.set_ip(ip.wrapping_add(1));
            if decoder.set_position(at + 1).is_err() {
                break;
            }
            continue;
        }
        let (mut mnemonic, mut operands) = (String::new(), String::new());
        formatter.format_mnemonic_options(&instruction, &mut mnemonic, FormatMnemonicOptions::NONE);
        formatter.format_all_operands(&instruction, &mut operands);
        found.push((ip, instruction.len(), mnemonic, operands));
    }
    found
}

/// `mov eax, dword ptr [rbp - 0x14]`
fn formatter() -> IntelFormatter {
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_memory_size_options(MemorySizeOptions::Always);
    options.set_space_after_operand_separator(true);
    options.set_space_between_memory_add_operators(true);
    options.set_show_branch_size(false);
    options.set_branch_leading_zeros(false);
    options.set_rip_relative_addresses(true);
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_small_hex_numbers_in_decimal(true);
    formatter
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: &str) -> Vec<String> {
        words(64, 0x1000, &bytes_of(code).unwrap())
            .into_iter()
            .map(|(at, size, mnemonic, operands)| format!("{at:x} {size} {mnemonic} {operands}"))
            .collect()
    }

    #[test]
    fn instructions_are_written_as_rules_read_them() {
        let code = "554889e5 897dec 8b45ec 48830c2400 7ff4 f348ab c4e2f1b8c2 06 c3";
        assert_eq!(
            said(&code.replace(' ', "")),
            [
                "1000 1 push rbp",
                "1001 3 mov rbp, rsp",
                "1004 3 mov dword ptr [rbp - 0x14], edi",
                "1007 3 mov eax, dword ptr [rbp - 0x14]",
                "100a 5 or qword ptr [rsp], 0",
                "100f 2 jg 0x1005",
                "1011 3 rep stosq qword ptr [rdi]",
                "1014 5 vfmadd231pd xmm0, xmm1, xmm2",
                "1019 1 .byte ",
                "101a 1 ret ",
            ]
        );
    }

    #[test]
    fn what_is_cut_off_or_no_code_is_said() {
        assert_eq!(said("e8"), ["1000 1 .byte "]);
        assert!(said("").is_empty());
        for question in [
            r#"{"bits": 16, "address": 0, "code": ""}"#,
            r#"{"bits": 64, "address": 0, "code": "0"}"#,
            r#"{"bits": 64, "address": 0, "code": "zz"}"#,
            r#"{"bits": 64, "address": 0, "code": "", "more": 1}"#,
            "[",
        ] {
            assert!(disassembled(question).is_err(), "{question}");
        }
    }
}
