//! Values behind the name of a secret that are code: a type, a call, a variable, a word of a schema.

/// Words that stand where a value would: types, values and words of schemas in common languages, and words behind "is".
const WORDS: [&str; 68] = [
    "a",
    "any",
    "bool",
    "boolean",
    "bytes",
    "char",
    "const",
    "default",
    "empty",
    "env",
    "expired",
    "false",
    "float",
    "for",
    "from",
    "function",
    "given",
    "here",
    "i32",
    "i64",
    "in",
    "input",
    "int",
    "integer",
    "invalid",
    "kept",
    "known",
    "let",
    "missing",
    "mut",
    "needed",
    "new",
    "nil",
    "none",
    "not",
    "null",
    "number",
    "object",
    "option",
    "optional",
    "read",
    "required",
    "secret",
    "secretstring",
    "self",
    "set",
    "stored",
    "str",
    "string",
    "text",
    "the",
    "there",
    "this",
    "too",
    "true",
    "type",
    "u32",
    "u64",
    "u8",
    "undefined",
    "unknown",
    "unset",
    "used",
    "usize",
    "valid",
    "varchar",
    "void",
    "wrong",
];

/// Whether an unquoted value is code, by its letters and by how it is linked to the name.
pub(super) fn is_code(name: &str, link: &str, value: &str) -> bool {
    let bare = value.trim_end_matches([')', ']', '}', ',', ';', '?', '.']);
    // Signs of calls, types, places and comparisons.
    let has_signs =
        value.contains(['(', '<', '&', '[', '{', '|']) || value.contains("::") || value.starts_with(['=', '>', '!']);
    let is_word = WORDS.contains(&bare.to_ascii_lowercase().as_str());
    let is_ident =
        !bare.is_empty() && bare.chars().all(|letter| letter.is_ascii_alphabetic() || matches!(letter, '_' | '.'));
    let is_lower = name.contains(|letter: char| letter.is_ascii_lowercase());
    let is_same = bare.eq_ignore_ascii_case(name);
    // `a = b.c` between spaces is an assignment, `a: Type` is a declaration, `a=b.c` is an argument.
    let is_assignment = link == " = " && is_ident;
    let is_type = link == ": " && is_ident && bare.starts_with(|letter: char| letter.is_ascii_uppercase());
    let is_argument = link == "=" && is_ident && (is_same || bare.contains('.'));
    has_signs || is_word || link.contains("==") || (is_lower && (is_assignment || is_type || is_argument))
}
