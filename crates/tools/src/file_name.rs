//! Names of files that come from outside: a page's downloads, a person's attachments.

/// Bytes of a file's name.
const NAME_BYTES_MAX: usize = 120;
/// Files of the same name.
const SAME_NAME_MAX: u32 = 100;

/// A name without folders, control characters or a leading dot.
pub(crate) fn safe_name(name: &str, otherwise: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_fine = |letter: &char| letter.is_alphanumeric() || " -_.()+,".contains(*letter);
    let name: String = last.chars().filter(is_fine).collect();
    let name = name.trim_start_matches(['.', ' ', '-']).trim_end_matches(['.', ' ']);
    let mut cut = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(cut) {
        cut -= 1;
    }
    match name.get(..cut).unwrap_or_default() {
        "" => otherwise.to_owned(),
        name => name.to_owned(),
    }
}

/// The name, and those for further files of that name.
pub(crate) fn kept_names(name: &str) -> impl Iterator<Item = String> {
    let (stem, ending) = name.rsplit_once('.').map_or((name, String::new()), |(stem, end)| (stem, format!(".{end}")));
    (1..=SAME_NAME_MAX).map(move |count| match count {
        1 => name.to_owned(),
        count => format!("{stem}-{count}{ending}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_harmless() {
        let table = [
            ("report.pdf", "report.pdf"),
            ("../../.bashrc", "bashrc"),
            ("a\u{1b}[2J/b\n.txt", "b.txt"),
            ("..\\..\\x.exe", "x.exe"),
            ("报告 1.pdf", "报告 1.pdf"),
            ("", "download"),
            ("...", "download"),
            ("-rf", "rf"),
        ];
        for (name, want) in table {
            assert_eq!(safe_name(name, "download"), want, "{name}");
        }
    }
}
