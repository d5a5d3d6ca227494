//! JUnit XML, which pytest, node, ctest, Maven and Gradle write.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::TestCounts;

/// Adds the test cases of a report. `None` if it is not well-formed: a report that was cut short counts nothing.
pub(super) fn counts(text: &str) -> Option<TestCounts> {
    let mut reader = Reader::from_str(text);
    let mut counts = TestCounts::default();
    let mut case: Option<TestCase> = None;
    let mut is_report = false;
    loop {
        match reader.read_event().ok()? {
            Event::Start(tag) if tag.local_name().as_ref() == "testcase" => case = Some(TestCase::new(&tag)),
            Event::Empty(tag) if tag.local_name().as_ref() == "testcase" => TestCase::new(&tag).add_to(&mut counts),
            Event::End(tag) if tag.local_name().as_ref() == "testcase" => {
                case.take().into_iter().for_each(|case| case.add_to(&mut counts));
            }
            Event::Start(tag) | Event::Empty(tag) => {
                is_report |= tag.local_name().as_ref().starts_with("testsuite");
                if let Some(case) = &mut case {
                    case.is_failed |= matches!(tag.local_name().as_ref(), "failure" | "error");
                    case.is_skipped |= tag.local_name().as_ref() == "skipped";
                }
            }
            Event::Eof => return (is_report && case.is_none()).then_some(counts),
            _ => {}
        }
    }
}

struct TestCase {
    name: String,
    is_failed: bool,
    is_skipped: bool,
}

impl TestCase {
    fn new(tag: &BytesStart<'_>) -> Self {
        let attribute = |name: &str| {
            let found = tag.try_get_attribute(name).ok().flatten();
            found.map(|found| found.value.to_string()).unwrap_or_default()
        };
        let (class, name) = (attribute("classname"), attribute("name"));
        // Node has one class for all tests.
        let name = if class.is_empty() || class == "test" { name } else { format!("{class}.{name}") };
        let name = quick_xml::escape::unescape(&name).map_or_else(|_| name.clone(), std::borrow::Cow::into_owned);
        Self { name, is_failed: false, is_skipped: false }
    }

    fn add_to(self, counts: &mut TestCounts) {
        if self.is_failed {
            counts.failed += 1;
            counts.name(&self.name);
        } else if self.is_skipped {
            counts.skipped += 1;
        } else {
            counts.passed += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reports_of_several_runners_are_counted() {
        let pytest = r#"<?xml version="1.0"?><testsuites><testsuite name="pytest" errors="1" failures="1" skipped="1" tests="4">
            <testcase classname="tests.test_a" name="test_ok" time="0.1" />
            <testcase classname="tests.test_a" name="test_many[&lt;2&gt;]"><failure message="assert">text</failure></testcase>
            <testcase classname="tests.test_a" name="test_fixture"><error message="failed on setup">text</error></testcase>
            <testcase classname="tests.test_a" name="test_later"><skipped type="pytest.skip">why</skipped></testcase>
            </testsuite></testsuites>"#;
        let node = r#"<testsuites><testcase name="adds" classname="test"/><testsuite name="suite" tests="1">
            <testcase name="inner" classname="test"><failure>x</failure></testcase></testsuite></testsuites>"#;
        let table = [
            (pytest, (1, 2, 1), vec!["tests.test_a.test_many[<2>]", "tests.test_a.test_fixture"]),
            (node, (1, 1, 0), vec!["inner"]),
            ("<testsuite name=\"none\"/>", (0, 0, 0), vec![]),
        ];
        for (text, (passed, failed, skipped), names) in table {
            let failures = names.into_iter().map(str::to_owned).collect();
            assert_eq!(counts(text), Some(TestCounts { passed, failed, skipped, failures }), "{text}");
        }
        for bad in
            ["", "1 passed in 0.1s", "<html></html>", "<testsuites><testcase name=\"a\">", "<testsuites><testcase"]
        {
            assert_eq!(counts(bad), None, "{bad}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_is_read_or_refused(text in "(<testsuite>|</testsuite>|<testcase name=\"|\"|/>|<failure>|&|é|<!\\[CDATA\\[){0,12}") {
            let _ = counts(&text);
        }
    }
}
