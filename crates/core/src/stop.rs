//! The words that stop a turn: a rule, so that nobody waits for a model to understand them.

/// All of them, in small letters.
const WORDS: [&str; 5] = ["stop", "/stop", "打断", "停", "停止"];

/// Whether a whole message says nothing but that. While nothing runs it is a message like any other.
pub fn is_stop(message: &str) -> bool {
    let message = message.trim();
    WORDS.iter().any(|word| message.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_messages_stop() {
        let table = [
            ("stop", true),
            ("STOP", true),
            (" Stop\n", true),
            ("/stop", true),
            ("/Stop ", true),
            ("打断", true),
            ("　停　", true),
            ("停止", true),
            ("", false),
            ("stop it", false),
            ("stop!", false),
            ("please stop", false),
            ("/stop build", false),
            ("不要停", false),
            ("停止服务", false),
            ("stopp", false),
            ("//stop", false),
        ];
        for (message, want) in table {
            assert_eq!(is_stop(message), want, "{message:?}");
        }
    }
}
