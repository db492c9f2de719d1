//! The steps between two kernels, one nearly as distributions build theirs, and a tuned one: what
//! A's follow-up (2008) changed, one group of options at a time.

/// A group of options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    /// What the step does, for people.
    pub(super) name: &'static str,
    /// Lines of a configuration before it.
    pub(super) stock: &'static [&'static str],
    /// The same after it.
    pub(super) tuned: &'static [&'static str],
    /// What A's follow-up says of it.
    pub(super) published: &'static str,
}

/// What all kernels have.
const BASE: &str = include_str!("base.config");

/// From the nearly stock kernel to the tuned one.
pub(super) const STEPS: [Step; 10] = [
    Step {
        name: "-O2 for -Os",
        stock: &["CONFIG_CC_OPTIMIZE_FOR_SIZE=y"],
        tuned: &["CONFIG_CC_OPTIMIZE_FOR_PERFORMANCE=y"],
        published: "the same",
    },
    Step {
        name: "no KPROBES",
        stock: &["CONFIG_KPROBES=y"],
        tuned: &["# CONFIG_KPROBES is not set"],
        published: "the same",
    },
    Step {
        name: "no function tracer",
        stock: &[
            "CONFIG_FTRACE=y",
            "CONFIG_FUNCTION_TRACER=y",
            "CONFIG_DYNAMIC_FTRACE=y",
        ],
        tuned: &["# CONFIG_FTRACE is not set"],
        published: "not named; distributions build it in today",
    },
    Step {
        name: "no KALLSYMS_ALL",
        stock: &["CONFIG_KALLSYMS_ALL=y"],
        tuned: &["# CONFIG_KALLSYMS_ALL is not set"],
        published: "the same",
    },
    Step {
        name: "no detectors of lockups",
        stock: &["CONFIG_SOFTLOCKUP_DETECTOR=y", "CONFIG_DETECT_HUNG_TASK=y"],
        tuned: &[
            "# CONFIG_SOFTLOCKUP_DETECTOR is not set",
            "# CONFIG_DETECT_HUNG_TASK is not set",
        ],
        published: "DETECT_SOFTLOCKUP",
    },
    Step {
        name: "no statistics of the scheduler",
        stock: &["CONFIG_SCHEDSTATS=y"],
        tuned: &["# CONFIG_SCHEDSTATS is not set"],
        published: "stands for TIMER_STATS, which Linux has no more",
    },
    Step {
        name: "no checks of stacks",
        stock: &[
            "CONFIG_SCHED_STACK_END_CHECK=y",
            "CONFIG_DEBUG_STACK_USAGE=y",
        ],
        tuned: &[
            "# CONFIG_SCHED_STACK_END_CHECK is not set",
            "# CONFIG_DEBUG_STACK_USAGE is not set",
        ],
        published: "stands for DEBUG_STACKOVERFLOW, which Linux has no more on this processor",
    },
    Step {
        name: "no checks of lists and memory",
        stock: &["CONFIG_DEBUG_LIST=y", "CONFIG_SLUB_DEBUG=y"],
        tuned: &[
            "# CONFIG_DEBUG_LIST is not set",
            "# CONFIG_SLUB_DEBUG is not set",
        ],
        published: "stands for DEBUG_KERNEL, a menu that no code asks for today; UNUSED_SYMBOLS, \
                    beside it, is no more",
    },
    Step {
        name: "no MAGIC_SYSRQ",
        stock: &["CONFIG_MAGIC_SYSRQ=y"],
        tuned: &["# CONFIG_MAGIC_SYSRQ is not set"],
        published: "the same",
    },
    Step {
        name: "no voluntary preemption",
        stock: &["CONFIG_PREEMPT_VOLUNTARY=y"],
        tuned: &["CONFIG_PREEMPT_NONE=y"],
        published: "tried, without effect",
    },
];

/// The configuration after the first `taken` steps.
pub(super) fn configuration(taken: usize) -> String {
    let lines = STEPS.iter().enumerate().flat_map(|(index, step)| {
        if index < taken {
            step.tuned
        } else {
            step.stock
        }
    });
    let mut text = BASE.to_owned();
    for line in lines {
        text += &format!("{line}\n");
    }
    text
}

/// Lines of `wanted` that a finished configuration does not have: options that can't be chosen
/// there. What is to be off may also not be named at all.
pub(super) fn refused<'a>(wanted: &'a str, finished: &str) -> Vec<&'a str> {
    let lines: Vec<&str> = finished.lines().collect();
    let missing = |line: &&str| match line.strip_prefix("# CONFIG_") {
        Some(rest) if rest.ends_with(" is not set") => {
            let option = rest.trim_end_matches(" is not set");
            let set = format!("CONFIG_{option}=");
            lines.iter().any(|line| line.starts_with(&set))
        }
        _ => line.starts_with("CONFIG_") && !lines.contains(line),
    };
    wanted.lines().filter(missing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_step_changes_its_own_options_and_nothing_else() {
        for (taken, step) in STEPS.iter().enumerate() {
            let (before, after) = (configuration(taken), configuration(taken + 1));
            let (before, after): (HashSet<_>, HashSet<_>) =
                (before.lines().collect(), after.lines().collect());
            let gone: HashSet<_> = before.difference(&after).copied().collect();
            let new: HashSet<_> = after.difference(&before).copied().collect();
            assert_eq!(gone, step.stock.iter().copied().collect());
            assert_eq!(new, step.tuned.iter().copied().collect());
        }
    }

    #[test]
    fn an_option_that_was_not_taken_is_named() {
        let wanted = "# a remark\nCONFIG_A=y\n# CONFIG_B is not set\n# CONFIG_C is not set\n";
        assert!(refused(wanted, "CONFIG_A=y\n# CONFIG_B is not set\n").is_empty());
        assert_eq!(refused(wanted, "CONFIG_AB=y\n"), ["CONFIG_A=y"]);
        assert_eq!(
            refused(wanted, "CONFIG_A=y\nCONFIG_B=m\n"),
            ["# CONFIG_B is not set"]
        );
    }
}
