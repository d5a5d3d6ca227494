//! Fills in the texts for models; the texts themselves are files under `prompts/`.

/// Fills a text's `{names}` in, in one pass, so that what is filled in is never read again.
pub(crate) fn fill(text: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (before, after) = rest.split_at(open);
        filled.push_str(before);
        let found = values.iter().find(|(name, _)| {
            after.get(1..).is_some_and(|after| after.strip_prefix(name).is_some_and(|after| after.starts_with('}')))
        });
        match found {
            Some((name, value)) => {
                filled.push_str(value);
                rest = after.get(name.len() + 2..).unwrap_or_default();
            }
            None => {
                filled.push('{');
                rest = after.get(1..).unwrap_or_default();
            }
        }
    }
    filled.push_str(rest);
    filled
}
