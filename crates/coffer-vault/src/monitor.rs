//! The two questions of the reference monitor (Bell and LaPadula: no read up, no write down).

use coffer_label::Label;

use crate::subject::Subject;

/// Whether `subject` may read what is labelled `label`: its high label dominates it.
pub(crate) fn may_read(subject: &Subject, label: &Label) -> bool {
    subject.clearance.high().dominates(label)
}

/// Whether `subject` may write what is labelled `label`: the label dominates its low label, and
/// its high label dominates the label (blind writes upwards are off).
pub(crate) fn may_write(subject: &Subject, label: &Label) -> bool {
    subject.clearance.contains(label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles::Roles;

    fn subject(clearance: &str) -> Subject {
        Subject {
            access_key_id: "AK".into(),
            clearance: clearance.parse().unwrap(),
            roles: Roles::all(),
        }
    }

    #[test]
    fn no_read_up_and_no_write_down() {
        let subject = subject("s1-s3:c1");
        let cases = [
            ("s0", true, false),
            ("s1", true, true),
            ("s3:c1", true, true),
            ("s3:c2", false, false),
            ("s4", false, false),
        ];
        for (label, read, write) in cases {
            let label: Label = label.parse().unwrap();
            assert_eq!(may_read(&subject, &label), read, "read {label}");
            assert_eq!(may_write(&subject, &label), write, "write {label}");
        }
    }
}
