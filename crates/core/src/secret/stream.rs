//! Secrets in a text that comes in pieces.

use super::redact;
use super::user_keys::{partial_key_len, without_keys as hidden_keys};
use crate::limits::HELD_TEXT_BYTES_MAX;

/// A sample value that counts as a secret only if the text before it says so.
const PROBE: &str = "q7Rz9Lw2Xv5Tn8Ks";
/// Possible continuations after which a secret could follow: the rest of a name, a separator, the rest of a private key's
/// title.
const ENDINGS: [&str; 12] =
    ["", "is ", ": ", "=", "\": \"", "key: ", "PRIVATE KEY-----\n", "码是", "令是", "钥是", "是", "为"];
/// Places in the held text at which it is tried to cut, from the end.
const CUTS_MAX: usize = 16;

/// Redacts a text that comes in pieces: the end that could be the beginning of a secret is held back until it is clear.
#[derive(Debug, Default)]
pub struct Redactor {
    held: String,
}

impl Redactor {
    /// Takes the next piece; returns the text that can be shown, without secrets.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        if self.held.len() > HELD_TEXT_BYTES_MAX {
            return self.finish();
        }
        let rest = self.held.split_off(self.cut());
        let shown = redact(&self.held).into_owned();
        self.held = rest;
        shown
    }

    /// The rest, when no piece follows.
    pub fn finish(&mut self) -> String {
        redact(&std::mem::take(&mut self.held)).into_owned()
    }

    /// The last position at which the text can be split without splitting a secret: secrets are words of ASCII letters, and
    /// the words before them say so. The user's own keys may have several words.
    fn cut(&self) -> usize {
        let ends = self.held.char_indices().rev().filter(|(_, letter)| letter.is_whitespace() || !letter.is_ascii());
        let whole = hidden_keys(&self.held);
        let is_clear = |at: &usize| {
            let (before, behind) = self.held.split_at_checked(*at).unwrap_or_default();
            // A key that is cut in two is found in neither half.
            let is_whole = whole == format!("{}{}", hidden_keys(before), hidden_keys(behind));
            is_whole
                && partial_key_len(&self.held) <= behind.len()
                && ENDINGS.iter().all(|ending| redact(&format!("{before}{ending}{PROBE}")).ends_with(PROBE))
        };
        ends.map(|(at, letter)| at + letter.len_utf8()).take(CUTS_MAX).find(is_clear).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn streamed(text: &str, size: usize) -> String {
        let mut redactor = Redactor::default();
        let letters: Vec<char> = text.chars().collect();
        let pieces: String =
            letters.chunks(size).map(|piece| redactor.push(&piece.iter().collect::<String>())).collect();
        pieces + &redactor.finish()
    }

    #[test]
    fn a_secret_in_pieces_is_hidden_as_one_that_comes_whole() {
        let block =
            format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----", "MIIEvQIBADANBgkq\n".repeat(40));
        for text in [
            "the key is sk-ant-0123456789abcdef0123456789abcdef, keep it",
            "password: hunter2hunter2 and more words",
            "api key is Abcd1234Efgh5678 so",
            "密码是hunter2hunter2。然后继续说下去",
            "see https://user:pa55word99@example.org/x and https://a.example/?token=abcdef123456 now",
            "Authorization: Bearer abcdef1234567890abcdef\nnext line",
            &format!("before {block} after"),
            "nothing to hide here, only words; 这里没有秘密。",
        ] {
            for size in [1, 2, 3, 7, 20] {
                assert_eq!(streamed(text, size), redact(text), "{size}: {text}");
            }
        }
    }

    #[test]
    fn every_name_and_link_is_known_in_pieces() {
        for name in crate::secret::NAMES {
            for link in [" is ", ": ", "=", "：", "是", "\": \"", " = "] {
                let text = format!("so, {name}{link}Abcd1234Efgh5678 and on");
                assert_eq!(streamed(&text, 1), redact(&text), "{text}");
            }
        }
    }

    #[test]
    fn a_key_of_our_own_with_blanks_is_hidden_in_pieces() {
        crate::secret::add_key("correct horse 电池 staple\tkey");
        crate::secret::add_key("correct horse 电池 staple\tkey of another");
        for text in [
            "so correct horse 电池 staple\tkey and on",
            "correct horse 电池 staple\tkey of another",
            "the correct horse is no key, correct horse 电池 neither",
            "correct correct horse 电池 staple\tkey",
        ] {
            for size in [1, 2, 3, 7, 20] {
                assert_eq!(streamed(text, size), redact(text), "{size}: {text}");
            }
        }
    }

    #[test]
    fn plain_words_are_shown_at_once_and_nothing_is_held_for_ever() {
        let mut redactor = Redactor::default();
        assert_eq!(redactor.push("Hello wor"), "Hello ");
        assert_eq!(redactor.push("ld, 你好"), "world, 你好");
        let long = "x".repeat(HELD_TEXT_BYTES_MAX);
        assert_eq!((redactor.push(&long).len(), redactor.push("y").len()), (0, HELD_TEXT_BYTES_MAX + 1));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn nothing_but_secrets_is_lost(text in "[a-z 你\n]{0,60}", size in 1_usize..9) {
            prop_assert_eq!(streamed(&text, size), redact(&text).into_owned());
        }
    }
}
