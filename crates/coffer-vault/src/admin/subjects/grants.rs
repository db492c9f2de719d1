//! What a subject's grants say to those who look after it.

use crate::access::{BucketName, Rights, Subject, may_use_by_label};
use crate::vault::Inner;

type Named = Vec<(BucketName, Rights)>;

impl Inner {
    /// A subject's grants by the names of their buckets, and what of them is out of its reach: a
    /// grant widens no clearance. None: every right in every bucket that the clearance allows.
    pub(super) fn grants_told(&self, subject: &Subject) -> (Option<Named>, Named) {
        let Some(grants) = &subject.grants else {
            return (None, Vec::new());
        };
        let (mut named, mut unreachable) = (Vec::new(), Vec::new());
        for (id, rights) in grants.iter() {
            let Some(row) = self.system.bucket_of_id(*id) else {
                continue;
            };
            named.push((row.name.clone(), *rights));
            // Of a level that is just being erased there is no label.
            if let Ok(label) = self.label(&row) {
                let is_out = |right| !may_use_by_label(subject, label, right);
                let out: Rights = rights.iter().filter(|right| is_out(*right)).collect();
                if out != Rights::default() {
                    unreachable.push((row.name.clone(), out));
                }
            }
        }
        named.sort_by(|(one, _), (other, _)| one.cmp(other));
        unreachable.sort_by(|(one, _), (other, _)| one.cmp(other));
        (Some(named), unreachable)
    }
}
