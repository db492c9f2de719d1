//! Quotas, and what is used of them: by ids, for the page has no names.

use coffer_vault::QuotaInfo;

use super::Page;

impl Page {
    pub(super) fn quotas(&mut self, quotas: &[QuotaInfo]) {
        let limit = "What quotas allow, by what they are of and its id.";
        self.quota_figure("coffer_quota_limit", limit, quotas, |(limit, _)| limit);
        let used = "What is used of what quotas limit, with what is being written.";
        self.quota_figure("coffer_quota_used", used, quotas, |(_, used)| used);
    }

    fn quota_figure(
        &mut self,
        name: &str,
        help: &str,
        quotas: &[QuotaInfo],
        value: fn((u64, u64)) -> u64,
    ) {
        self.family(name, "gauge", help);
        for info in quotas {
            let (limits, used) = (info.quota, info.used);
            let figures = [
                ("bytes", limits.bytes, used.bytes),
                ("objects", limits.objects, used.objects),
                ("uploads", limits.uploads, used.uploads),
                ("buckets", limits.buckets, used.buckets),
            ];
            for (what, limit, used) in figures {
                let Some(limit) = limit else { continue };
                let labels = [
                    ("of", info.of.kind()),
                    ("id", &info.of.id_text()),
                    ("what", what),
                ];
                self.sample(name, &labels, value((limit, used)));
            }
        }
    }
}
